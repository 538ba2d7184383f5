#include "ops/loss.h"
#include "routines/cpu/index/host_functions.h"

namespace neo {
namespace {

// Only what labels choose is read.
template <class T>
void lose(ReferenceContext& ctx) {
  const T* scores = ctx.input(0).as<T>();
  write_loss(ctx, [scores](int64_t i) { return static_cast<double>(scores[i]); });
}

}  // namespace

void run_class_loss(ReferenceContext& ctx) {
  ctx.input(0).dtype() == DType::Float32 ? lose<float>(ctx) : lose<double>(ctx);
}

}  // namespace neo
