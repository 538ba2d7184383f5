#include <cstring>

#include "ops/pool.h"
#include "routines/cpu/index/element_rows.h"
#include "routines/cpu/index/host_functions.h"

namespace neo {

void run_max_unpool(ReferenceContext& ctx) {
  const Unpooling unpooling(ctx);
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.output(0, x.dtype(), unpooling.output());
  std::memset(y.data(), 0, static_cast<size_t>(y.size() * item_bytes(y.dtype())));
  std::vector<int64_t> room;
  const int64_t* index = wide_indices(ctx.input(1), room);
  with_width(item_bytes(x.dtype()), [&](auto width) {
    const auto* from = x.as<std::byte>();
    auto* to = y.as<std::byte>();
    const int64_t count = x.size(), limit = unpooling.whole_limit();
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = index[i], place = at >= 0 && at < limit ? at : unpooling.place(at);
      std::memcpy(to + place * width, from + i * width, width);
    }
  });
}

}  // namespace neo
