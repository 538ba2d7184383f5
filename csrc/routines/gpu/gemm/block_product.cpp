#include "routines/gpu/gemm/block_product.h"

#include <cmath>

namespace neo::gpu {

using kernel::Array;
using kernel::Expr;
using kernel::kFloat;

BlockTile::BlockTile(const BlockShape& shape, int lines, bool along_depth) {
  if (along_depth) {
    constexpr int kApart = 4;
    line_step = shape.depth + (shape.by_matrices ? kApart : 0);
    size = int64_t{lines} * line_step;
  } else {
    constexpr int kApart = 8;
    depth_step = lines + (shape.by_matrices ? kApart : 0);
    size = int64_t{shape.depth} * depth_step;
  }
}

const char* reject_block(const BlockShape& s, int64_t local_size) {
  if (s.threads() > 256) return "too many threads";
  if (s.by_matrices) {
    if (s.threads_column != kMatrixThreads) return "a subgroup has 32 threads";
    if (s.rows % 16 != 0 || s.depth % 8 != 0) return "a matrix has 16 x 8 elements";
    if (s.rows * s.columns > 128) return "too many registers";
    return local_size > 8192 ? "too much local memory" : nullptr;
  }
  if (s.rows * s.columns > 64) return "too many registers";
  if (local_size > 8192) return "too much local memory";
  if (s.unroll && s.rows * s.columns * s.depth > 512) return "too much is written out";
  return nullptr;
}

Profile block_profile(const BlockShape& s, double passes, int64_t local_size) {
  const double products = passes * s.depth;
  const int at_once = s.by_matrices ? 8 : 1;  // products of a result
  Profile p;
  p.threads = s.threads();
  (s.by_matrices ? p.matrix_flops : p.flops) = 2 * products * s.rows * s.columns;
  // A thread holds the 32nd part of a matrix.
  const double loads = products * (s.columns + (s.by_matrices ? s.rows / 32.0 : s.rows));
  p.loads = loads;
  p.local_loaded_bytes = 4 * loads;
  p.other = s.unroll ? 0 : products / at_once;
  p.barriers = 2 * passes;
  p.written = s.rows * s.columns * (s.unroll ? s.depth : at_once) / (s.by_matrices ? 32 : 1);
  p.registers = s.rows * s.columns + (s.by_matrices ? s.rows / 4 + s.columns * 8 : s.rows + s.columns);
  p.local_bytes = 4 * local_size;
  return p;
}

double tf32_error(double products) {
  return 16000 / std::sqrt(products);
}

BlockProduct::BlockProduct(kernel::Builder& b, const BlockShape& shape, const Expr& lx, const Expr& ly)
    : b_(b), s_(shape), lx_(lx), ly_(ly) {
  const int lanes = s_.by_matrices ? 4 : 1, count = s_.rows * s_.columns / lanes;
  if (s_.by_matrices) {
    b_.subgroups(kMatrixThreads);
    eighth_ = b_.let("eighth", lx_ / 4);
    quarter_ = b_.let("quarter", lx_ % 4);
  }
  sums_ = b_.registers("sum", kFloat.with_lanes(lanes), count);
  b_.unroll("i", count, [&](Expr i) { (*sums_)[i] = 0.0f; });
}

Expr BlockProduct::operand(const Expr& value) const {
  return s_.by_matrices ? kernel::make(kernel::Op::ToTf32, {value}) : value;
}

void BlockProduct::add(const Array& left, const BlockTile& left_tile, const Array& right, const BlockTile& right_tile) {
  const auto reads = [](const Array& from, const BlockTile& tile) -> Read {
    return [from, tile](const Expr& line, const Expr& k) {
      return Expr(from[k * tile.depth_step + line * tile.line_step]);
    };
  };
  const auto pass = [&](const Expr& d) {
    if (s_.by_matrices) return multiply_matrices(reads(left, left_tile), reads(right, right_tile), d * 8);
    multiply(reads(left, left_tile), reads(right, right_tile), d);
  };
  const int count = s_.by_matrices ? s_.depth / 8 : s_.depth;
  s_.unroll ? b_.unroll("d", count, pass) : b_.loop("d", 0, count, pass);
}

void BlockProduct::multiply(const Read& left, const Read& right, const Expr& d) {
  const Array a = b_.registers("left", kFloat, s_.rows), b = b_.registers("right", kFloat, s_.columns);
  b_.unroll("i", s_.rows, [&](Expr i) { a[i] = left(ly_ + i * s_.threads_row, d); });
  b_.unroll("j", s_.columns, [&](Expr j) { b[j] = right(lx_ + j * s_.threads_column, d); });
  b_.unroll("i", s_.rows, [&](Expr i) {
    b_.unroll("j", s_.columns, [&](Expr j) {
      const Expr at = i * s_.columns + j;
      (*sums_)[at] = fma(a[i], b[j], (*sums_)[at]);
    });
  });
}

// Eight products of every result of the subgroup, from `d` on: see kernel::MatrixMultiply.
void BlockProduct::multiply_matrices(const Read& left, const Read& right, const Expr& d) {
  const int rows = s_.rows / 16, columns = s_.all_columns() / 8;  // matrices
  const Array a = b_.registers("a", kFloat.with_lanes(4), rows), b = b_.registers("b", kFloat.with_lanes(2), columns);
  b_.unroll("m", rows, [&](Expr m) {
    const auto at = [&](int row, int k) { return left(ly_ * s_.rows + m * 16 + eighth_ + row, d + quarter_ + k); };
    a[m] = kernel::vector({at(0, 0), at(8, 0), at(0, 4), at(8, 4)});
  });
  b_.unroll("n", columns, [&](Expr n) {
    const auto at = [&](int k) { return right(n * 8 + eighth_, d + quarter_ + k); };
    b[n] = kernel::vector({at(0), at(4)});
  });
  b_.unroll("m", rows, [&](Expr m) {
    b_.unroll("n", columns, [&](Expr n) {
      const Expr at = m * columns + n;
      (*sums_)[at] = b_.multiply_matrices(a[m], b[n], (*sums_)[at]);
    });
  });
}

void BlockProduct::each(FunctionRef<void(const Expr&, const Expr&, const Expr&)> take) const {
  if (!s_.by_matrices) {
    b_.unroll("i", s_.rows, [&](Expr i) {
      b_.unroll("j", s_.columns, [&](Expr j) {
        take(ly_ + i * s_.threads_row, lx_ + j * s_.threads_column, (*sums_)[i * s_.columns + j]);
      });
    });
    return;
  }
  const int columns = s_.all_columns() / 8;
  b_.unroll("m", s_.rows / 16, [&](Expr m) {
    b_.unroll("n", columns, [&](Expr n) {
      for (int lane = 0; lane < 4; ++lane) {
        take(ly_ * s_.rows + m * 16 + eighth_ + lane / 2 * 8, n * 8 + quarter_ * 2 + lane % 2,
             kernel::lane((*sums_)[m * columns + n], lane));
      }
    });
  });
}

}  // namespace neo::gpu
