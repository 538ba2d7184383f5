#include "kernel_ir/builder.h"
#include "kernels.h"

namespace neo::kernel::examples {

// C = A B, rows x (vectors x lanes) of C in the registers of each thread. Whole blocks go the fast way, those at the
// edges one by one.
Kernel gemm_registers(const std::string& name, int rows, int vectors, int lanes) {
  const int columns = vectors * lanes;
  Builder b(name);
  const Expr m = b.size("m", 1, 8192), n = b.size("n", 1, 8192), k = b.size("k", 1, 8192);
  const Array a = b.input("a", DType::Float32, m * k);
  const Array w = b.input("b", DType::Float32, k * n);
  const Array c = b.output("c", DType::Float32, m * n);
  const Expr column = b.group(0, "gx", ceildiv(n, columns)) * columns;
  const Expr row = b.group(1, "gy", ceildiv(m, rows)) * rows;
  b.when(
      row + rows <= m && column + columns <= n,
      [&] {
        const Array sums = b.registers("sum", {DType::Float32, lanes}, rows * vectors);
        b.unroll("r", rows * vectors, [&](Expr r) { sums[r] = 0.0f; });
        b.loop("kk", 0, k, [&](Expr kk) {
          const Array wide = b.registers("w", {DType::Float32, lanes}, vectors);
          b.unroll("v", vectors, [&](Expr v) { wide[v] = w.at(kk * n + column + v * lanes, lanes); });
          b.unroll("r", rows, [&](Expr r) {
            const Expr x = b.let("x", a[(row + r) * k + kk]);
            b.unroll("v", vectors, [&](Expr v) { sums[r * vectors + v] = fma(x, wide[v], sums[r * vectors + v]); });
          });
        });
        b.unroll("r", rows, [&](Expr r) {
          b.unroll("v", vectors,
                   [&](Expr v) { c.at((row + r) * n + column + v * lanes, lanes) = sums[r * vectors + v]; });
        });
      },
      [&] {
        b.loop("r", row, min(row + rows, m), [&](Expr r) {
          b.loop("s", column, min(column + columns, n), [&](Expr s) {
            const Array sum = b.registers("one", kFloat, 1);
            sum[0] = 0.0f;
            b.loop("kk", 0, k, [&](Expr kk) { sum[0] = fma(a[r * k + kk], w[kk * n + s], sum[0]); });
            c[r * n + s] = sum[0];
          });
        });
      });
  return b.finish();
}

// C = A B: 64 x 64 of C for each group of 16 x 16 threads, 16 columns of A and rows of B at a time in local memory.
Kernel gemm_local() {
  constexpr int kTile = 64, kDepth = 16, kSide = 16, kBlock = kTile / kSide;
  Builder b("gemm_local");
  const Expr m = b.size("m", 1, 8192), n = b.size("n", 1, 8192), k = b.size("k", 1, 8192);
  const Array a = b.input("a", DType::Float32, m * k);
  const Array w = b.input("b", DType::Float32, k * n);
  const Array c = b.output("c", DType::Float32, m * n);
  const Expr column = b.group(0, "gx", ceildiv(n, kTile)) * kTile;
  const Expr row = b.group(1, "gy", ceildiv(m, kTile)) * kTile;
  const Expr x = b.local(0, "lx", kSide), y = b.local(1, "ly", kSide);
  const Array tile_a = b.shared("tile_a", DType::Float32, kTile * kDepth);
  const Array tile_b = b.shared("tile_b", DType::Float32, kDepth * kTile);
  const Array sums = b.registers("sum", kFloat, kBlock * kBlock);
  b.unroll("i", kBlock * kBlock, [&](Expr i) { sums[i] = 0.0f; });
  b.loop("step", 0, ceildiv(k, kDepth), [&](Expr step) {
    b.unroll("i", kBlock, [&](Expr i) {
      const Expr r = y + i * kSide, depth = step * kDepth + x;
      const Array value = b.registers("value", kFloat, 1);
      value[0] = 0.0f;
      b.when(row + r < m && depth < k, [&] { value[0] = a[(row + r) * k + depth]; });
      tile_a[r * kDepth + x] = value[0];
    });
    b.unroll("i", kBlock, [&](Expr i) {
      const Expr s = x + i * kSide, depth = step * kDepth + y;
      const Array value = b.registers("value", kFloat, 1);
      value[0] = 0.0f;
      b.when(column + s < n && depth < k, [&] { value[0] = w[depth * n + column + s]; });
      tile_b[y * kTile + s] = value[0];
    });
    b.barrier();
    b.loop("d", 0, kDepth, [&](Expr d) {
      const Array left = b.registers("left", kFloat, kBlock), right = b.registers("right", kFloat, kBlock);
      b.unroll("i", kBlock, [&](Expr i) { left[i] = tile_a[(y + i * kSide) * kDepth + d]; });
      b.unroll("i", kBlock, [&](Expr i) { right[i] = tile_b[d * kTile + x + i * kSide]; });
      b.unroll("i", kBlock, [&](Expr i) {
        b.unroll("j", kBlock, [&](Expr j) { sums[i * kBlock + j] = fma(left[i], right[j], sums[i * kBlock + j]); });
      });
    });
    b.barrier();
  });
  b.unroll("i", kBlock, [&](Expr i) {
    b.unroll("j", kBlock, [&](Expr j) {
      const Expr r = row + y + i * kSide, s = column + x + j * kSide;
      b.when(r < m && s < n, [&] { c[r * n + s] = sums[i * kBlock + j]; });
    });
  });
  return b.finish();
}

}  // namespace neo::kernel::examples
