#include "kernel_ir/builder.h"
#include "kernels.h"

namespace neo::kernel::examples {

// Sums of the products of four bytes, which wrap around.
Kernel dot_bytes() {
  Builder b("dot_bytes");
  const Expr n = b.size("n", 1, 1 << 20);
  const Array x = b.input("x", DType::Int32, n), z = b.input("z", DType::Int32, n), c = b.input("c", DType::Int32, n);
  const Array y = b.output("y", DType::Int32, n);
  const Expr i = b.let("i", b.group(0, "gx", ceildiv(n, 64)) * 64 + b.local(0, "lx", 64));
  b.when(i < n, [&] { y[i] = dot4(x[i], z[i], c[i]); });
  return b.finish();
}

// Bytes with and without a sign in vectors; a product and a sum that are each rounded.
Kernel scale_codes() {
  Builder b("scale_codes");
  b.round_each();
  const Expr n = b.size("n", 1, 1 << 20), scale = b.number("scale", DType::Float32);
  const Array x = b.input("x", DType::UInt8, n * 4), z = b.input("z", DType::Int8, n * 4);
  const Array y = b.output("y", DType::Float32, n * 4), low = b.output("low", DType::UInt8, n * 4);
  const Expr i = b.let("i", b.group(0, "gx", ceildiv(n, 64)) * 64 + b.local(0, "lx", 64));
  b.when(i < n, [&] {
    const Expr sum = b.let("sum", cast(x.at(i * 4, 4), DType::Int32) + cast(z.at(i * 4, 4), DType::Int32));
    y.at(i * 4, 4) = cast(sum, DType::Float32) * broadcast(scale, 4) + broadcast(real(1), 4);
    low.at(i * 4, 4) = cast(sum & 255, DType::UInt8);
  });
  return b.finish();
}

}  // namespace neo::kernel::examples
