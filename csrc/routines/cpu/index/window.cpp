#include <cmath>
#include <numbers>

#include "ops/signal_window.h"
#include "ops/sizes.h"
#include "routines/cpu/index/host_functions.h"
#include "routines/cpu/index/index.h"

namespace neo {
namespace {

struct Turn {
  double cosine, sine;
};

Turn turn_of(double angle) {
  return {std::cos(angle), std::sin(angle)};
}

template <class T>
void write_window(const SignalWindow& window, int64_t size, double step, T* y) {
  // The angle of n is that of n / kFine * kFine and of the rest: two short tables instead of one of all angles.
  constexpr int64_t kFine = 32;
  Turn fine[kFine];
  for (int64_t i = 0; i < kFine; ++i) fine[i] = turn_of(step * static_cast<double>(i));
  for (int64_t first = 0; first < size; first += kFine) {
    const Turn coarse = turn_of(step * static_cast<double>(first));
    const int64_t count = std::min(kFine, size - first);
    for (int64_t i = 0; i < count; ++i) {
      const double cosine = coarse.cosine * fine[i].cosine - coarse.sine * fine[i].sine;
      y[first + i] = static_cast<T>(window.a + window.b * cosine + window.c * (2 * cosine * cosine - 1));
    }
  }
}

}  // namespace

void run_window(ReferenceContext& ctx) {
  const int64_t size = scalar_int(ctx, 0);
  if (size < 0) ctx.fail(ErrorKind::Shape, str("size must not be negative. Got ", size));
  const Tensor& y = ctx.output(0, dtype_attr(ctx.node(), "output_datatype", DType::Float32), {size});
  const SignalWindow& window = signal_window(ctx.node().op);
  const bool periodic = ctx.node().int_attr("periodic", 1) != 0;
  if (size == 1) {
    const double one = periodic ? window.a + window.b + window.c : 1;
    return store_doubles(y, std::span(&one, 1));
  }
  const double step = 2 * std::numbers::pi / static_cast<double>(std::max<int64_t>(1, periodic ? size : size - 1));
  y.dtype() == DType::Float64 ? write_window(window, size, step, y.as<double>())
                              : write_window(window, size, step, y.as<float>());
}

}  // namespace neo
