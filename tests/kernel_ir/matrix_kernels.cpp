#include "kernel_ir/builder.h"
#include "kernels.h"

namespace neo::kernel::examples {

// C = A B of operands rounded to tf32: 16 x 8 of C for each of a group's two subgroups, eight products at a time.
Kernel gemm_matrices() {
  constexpr int kRows = 16, kColumns = 8, kDepth = 8, kSubgroups = 2;
  Builder b("gemm_matrices");
  const Expr m = b.size("m", 1, 8192), n = b.size("n", 1, 8192), k = b.size("k", 1, 8192);
  const Array left = b.input("a", DType::Float32, m * k), right = b.input("b", DType::Float32, k * n);
  const Array c = b.output("c", DType::Float32, m * n);
  const Expr row = b.let("row", b.group(1, "gy", ceildiv(m, kRows)) * kRows);
  const Expr column = b.let("column", b.group(0, "gx", ceildiv(n, kColumns * kSubgroups)) * (kColumns * kSubgroups) +
                                          b.local(1, "ly", kSubgroups) * kColumns);
  const Expr thread = b.local(0, "lx", 32);
  b.subgroups(32);
  const Expr eighth = b.let("eighth", thread / 4), quarter = b.let("quarter", thread % 4);
  const auto a_at = [&](const Expr& r, const Expr& kk) {
    const Expr value = left[min(r, m - 1) * k + min(kk, k - 1)];
    return make(Op::ToTf32, {select(r < m && kk < k, value, 0.0f)});
  };
  const auto b_at = [&](const Expr& kk, const Expr& s) {
    const Expr value = right[min(kk, k - 1) * n + min(s, n - 1)];
    return make(Op::ToTf32, {select(kk < k && s < n, value, 0.0f)});
  };
  const Array sum = b.registers("sum", kFloat.with_lanes(4), 1);
  sum[0] = 0.0f;
  b.loop("step", 0, ceildiv(k, kDepth), [&](Expr step) {
    const Expr r = row + eighth, kk = step * kDepth + quarter, s = column + eighth;
    sum[0] = b.multiply_matrices(vector({a_at(r, kk), a_at(r + 8, kk), a_at(r, kk + 4), a_at(r + 8, kk + 4)}),
                                 vector({b_at(kk, s), b_at(kk + 4, s)}), sum[0]);
  });
  for (int i = 0; i < 4; ++i) {
    const Expr r = row + eighth + i / 2 * 8, s = column + quarter * 2 + i % 2;
    b.when(r < m && s < n, [&] { c[r * n + s] = lane(sum[0], i); });
  }
  return b.finish();
}

Kernel round_to_tf32() {
  Builder b("round_to_tf32");
  const Expr n = b.size("n", 1, 1 << 20);
  const Array x = b.input("x", DType::Float32, n), y = b.output("y", DType::Float32, n);
  const Expr i = b.let("i", b.group(0, "gx", ceildiv(n, 64)) * 64 + b.local(0, "lx", 64));
  b.when(i < n, [&] { y[i] = make(Op::ToTf32, {x[i]}); });
  return b.finish();
}

// Four at a time, and what is left one by one.
Kernel round_to_half(DType storage) {
  Builder b("round_to_" + std::string(name(storage)));
  const Expr n = b.size("n", 1, 1 << 20);
  const Array x = b.input("x", DType::Float32, n), y = b.output("y", DType::Float32, n, storage);
  const Expr i = b.let("i", (b.group(0, "gx", ceildiv(n, 64)) * 16 + b.local(0, "lx", 16)) * 4);
  b.when(
      i + 4 <= n, [&] { y.at(i, 4) = x.at(i, 4); }, [&] { b.loop("j", i, n, [&](const Expr& j) { y[j] = x[j]; }); });
  return b.finish();
}

}  // namespace neo::kernel::examples
