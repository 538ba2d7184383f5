#pragma once

#include <optional>
#include <vector>

#include "base/function_ref.h"
#include "routines/gpu/movement/axes.h"
#include "routines/gpu/movement/made.h"
#include "routines/patterns/reduced_axes.h"

// Kernels that work along one axis of arrays seen as [outer, along, inner].
namespace neo::gpu {

struct RowForm {
  bool is_last = true;  // inner is 1 for every size
  DType dtype = DType::Float32;
  bool is_reduced = false;  // the first output has no `along`
};

struct RowSchedule {
  int lanes = 4;
  int threads = 64;
  int together = 1;  // threads that share a row; a power of two, 1 unless `is_last`
};

// The rows of a kernel's thread: one row, or a few neighbouring rows in the lanes of its values.
class Walk {
 public:
  using Map = FunctionRef<kernel::Expr(const kernel::Expr& x, const kernel::Expr& at)>;
  using Combine = FunctionRef<kernel::Expr(const kernel::Expr&, const kernel::Expr&)>;

  kernel::Expr row;     // index of [outer]
  kernel::Expr along;   // its size
  kernel::Expr result;  // index of this row, or of the first of these rows, in [outer, inner]

  // All elements of the row together; `map` sees the element's place along the row.
  kernel::Expr reduce(const kernel::Expr& initial, Map map, Combine combine);
  // Calls body(x, place, index in the array, lanes) for every element, or for vectors of them.
  void each(FunctionRef<void(const kernel::Expr& x, const kernel::Expr& at, const kernel::Expr& index)> body);
  // The elements one by one, in order, by every thread; only where no threads share a row.
  void each_in_order(FunctionRef<void(const kernel::Expr& x, const kernel::Expr& at)> body);
  // A number in the lanes of the rows.
  kernel::Expr number(double value, DType dtype = DType::Float32) const;
  // Runs `body` on only one thread of those that share the row.
  void once(FunctionRef<void()> body);
  int rows() const { return columns_; }

 private:
  friend class RowKernel;
  kernel::Expr place(const kernel::Expr& at) const;
  void across(const kernel::Array& one, Combine combine);

  kernel::Builder* b_ = nullptr;
  const kernel::Array* x_ = nullptr;
  RowForm form_;
  RowSchedule s_;
  int columns_ = 1;      // lanes of neighbouring rows
  kernel::Expr column_;  // where they begin; undefined for rows of contiguous elements
  kernel::Expr inner_;
  kernel::Expr thread_;
  std::optional<kernel::Array> shared_;
};

// Declares sizes and operands and calls `body` where there is a row.
class RowKernel {
 public:
  RowKernel(const std::string& name, const RowForm& form, const RowSchedule& schedule);

  kernel::Builder& builder() { return b_; }
  kernel::Expr outer, along, inner;  // sizes
  const kernel::Array& x() const { return *x_; }
  // Further operands, after x, before the launch's body.
  kernel::Kernel write(FunctionRef<void(Walk&)> body);

 private:
  kernel::Builder b_;
  RowForm form_;
  RowSchedule s_;
  kernel::Expr items_, chunks_;
  std::optional<kernel::Array> x_;
};

// The sizes and x, as RowKernel declares them: the beginning of a launch's arguments.
std::vector<LaunchArgument> row_arguments(const RowForm& form, const RowSchedule& schedule, int64_t outer,
                                          int64_t along, int64_t inner);

struct RowSizes {
  int64_t outer = 1, along = 1, inner = 1;
};
RowSizes row_sizes(const Dims& dims, const AxisRun& run);
// A schedule for rows of these dims.
RowSchedule row_schedule(const RowForm& form, const RowSizes& hint, const BasicOptions& options);

}  // namespace neo::gpu
