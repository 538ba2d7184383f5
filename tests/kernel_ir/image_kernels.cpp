#include "kernel_ir/builder.h"
#include "kernels.h"

namespace neo::kernel::examples {

// Every texel and its neighbours, lane by lane with weights; at the ends the texel itself stands for what is not there.
Kernel image_blur() {
  constexpr int kThreads = 64, kTaps = 3;
  Builder b("image_blur");
  const Expr n = b.size("n", 1, 1 << 20);
  const Array x = b.image("x", n), w = b.image("w", kTaps);
  const Array y = b.output("y", DType::Float32, n * 4);
  const Expr i = b.let("i", b.group(0, "gx", ceildiv(n, kThreads)) * kThreads + b.local(0, "lx", kThreads));
  b.when(i < n, [&] {
    const Array sum = b.registers("sum", kTexel, 1);
    sum[0] = 0.0f;
    b.loop("tap", 0, kTaps, [&](Expr tap) {
      const Expr texel = b.let("texel", x[min(max(i + tap - 1, 0), n - 1)]);
      sum[0] = fma(texel, w[tap], sum[0]);
    });
    y.at(i * 4, 4) = Expr(sum[0]) * lane(w[kTaps - 1], 3);
  });
  return b.finish();
}

}  // namespace neo::kernel::examples
