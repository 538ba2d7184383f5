#pragma once

#include <functional>
#include <optional>

#include "base/function_ref.h"
#include "kernel_ir/builder.h"
#include "routines/gpu/device_model.h"

namespace neo::gpu {

// A block of a product whose operands come through local memory: threads_row x threads_column threads make rows x
// columns results each, after so many products of each between two barriers. With `by_matrices` the operands are
// rounded to tf32 on their way to local memory, and each subgroup of 32 threads makes its rows of all columns of the
// group by matrix instructions: 32 threads along the columns, rows in sixteens, depth in eights.
struct BlockShape {
  bool by_matrices = false;
  int threads_row = 1, threads_column = 1;
  int rows = 1, columns = 1;
  int depth = 8;
  bool unroll = false;  // the products between two barriers are written out

  int threads() const { return threads_row * threads_column; }
  int all_rows() const { return threads_row * rows; }
  int all_columns() const { return threads_column * columns; }
};

inline constexpr int kMatrixThreads = 32;  // of a subgroup

// The place of element k of a line in local memory. A line is a row of the left operand or a column of the right one.
struct BlockTile {
  int line_step = 1, depth_step = 1;
  int64_t size = 0;

  // Lines beside each other, or what is summed. Matrices are read without two threads at one bank.
  BlockTile(const BlockShape& shape, int lines, bool along_depth);
};

const char* reject_block(const BlockShape& shape, int64_t local_size);
// The work of a thread in so many passes over the depth, without filling the tiles.
Profile block_profile(const BlockShape& shape, double passes, int64_t local_size);
// Cost::error of that many products of operands rounded to tf32, beside one sum after the other in float32.
double tf32_error(double products);

class BlockProduct {
 public:
  // `lx`, `ly`: the thread's places along the columns and the rows.
  BlockProduct(kernel::Builder& b, const BlockShape& shape, const kernel::Expr& lx, const kernel::Expr& ly);

  // As an element of a tile.
  kernel::Expr operand(const kernel::Expr& value) const;
  // Adds one pass over the depth of two tiles. Barriers before and after are the caller's.
  void add(const kernel::Array& left, const BlockTile& left_tile, const kernel::Array& right,
           const BlockTile& right_tile);
  // Calls `take` with the row and the column in the block, and the sum, of each of the thread's results.
  void each(FunctionRef<void(const kernel::Expr&, const kernel::Expr&, const kernel::Expr&)> take) const;

 private:
  // `at`: element (line, k) of a tile.
  using Read = std::function<kernel::Expr(const kernel::Expr&, const kernel::Expr&)>;
  void multiply(const Read& left, const Read& right, const kernel::Expr& d);
  void multiply_matrices(const Read& left, const Read& right, const kernel::Expr& d);

  kernel::Builder& b_;
  BlockShape s_;
  kernel::Expr lx_, ly_, eighth_, quarter_;
  std::optional<kernel::Array> sums_;
};

}  // namespace neo::gpu
