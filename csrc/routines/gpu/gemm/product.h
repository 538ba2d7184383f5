#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/int_math.h"
#include "routines/gpu/gemm/result.h"
#include "routines/gpu/program.h"
#include "routines/patterns/gemm_problem.h"

namespace neo::gpu {

struct GemmForm {
  GemmGeometry geometry;
  bool packs_b = true;                      // B is a constant
  Dims b_dims;                              // of that constant
  float bias_scale = 1.0f;                  // is in the packed bias
  ResultForm result;                        // its residual is broadcast to the result
  int a = 0, b = -1, residual = -1, c = 1;  // operands; -1: none
};

// A bias filled up to whole panels of so many columns.
int64_t padded_columns(int64_t n, int64_t panel);
void pack_columns(int64_t n, int64_t panel, float scale, std::span<const float> from, float* to);

// The base of kernels of matrix products: parameters, the begins of a group's matrices, the result of a sum.
class ProductKernel {
 protected:
  ProductKernel(const GemmForm& form, std::string name) : f_(form), b_(std::move(name)) {}

  // Parameters: the sizes, then what the kernel asks of B, then the rest. product_launches() gives them in this order.
  void declare_sizes();
  // A group makes so many rows and columns.
  void declare_operands(const kernel::Expr& b_elements, const kernel::Expr& biases, int64_t rows, int64_t columns);
  // Places of a group; order 0: rows are the fastest.
  void declare_groups(int order);
  // Finds the begins of the group's matrices, and their strides.
  void find_matrices();

  // A parameter that counts elements, or parts of so many.
  kernel::Expr count(const char* name, int64_t part = 1) { return b_.size(name, 1, ceil_div(1 << 24, part)); }
  kernel::Expr stride(const std::string& name) { return b_.size(name, 0, kernel::kMaxBufferElements); }
  kernel::Expr elements(const char* name) { return b_.size(name, 1, kernel::kMaxBufferElements); }
  bool dense_a() const { return !f_.geometry.transpose_a; }
  // A number of at most 26 bits, of which nothing else is known.
  kernel::Expr opaque(const char* name, const kernel::Expr& value) { return b_.let(name, value & ((1 << 26) - 1)); }
  // Data >= 0, of which nothing else is known but what guards tell.
  kernel::Expr known_at_run_time(const char* name, const kernel::Expr& value);

  // The extent by strides; that each store lies inside follows from it.
  kernel::Expr results_inside() const { return c_first_ + (m_ - 1) * c_row_ + n_ <= c_elements_; }
  void store(const kernel::Expr& row, const kernel::Expr& column, kernel::Expr sum);

  const GemmForm& f_;
  kernel::Builder b_;
  kernel::Expr m_, n_, k_, a_elements_, c_elements_, a_row_, a_column_, c_row_;
  kernel::Expr group_row_, group_column_;
  kernel::Expr a_first_, b_first_, c_first_;  // that of B in the steps of its batch strides
  std::optional<kernel::Array> a_, w_, c_;
  std::optional<ResultParameters> result_;

 private:
  // An operand's begin in this launch, and its strides of the two batch axes.
  struct Batch {
    kernel::Expr base, outer, inner;
  };
  Batch declare_batch(const std::string& operand);

  kernel::Expr batch0_, batch1_, groups_row_, groups_column_, z_;
  kernel::Expr r_elements_, r_row_, r_column_, r_first_, beta_;
  Batch a_batch_, b_batch_, c_batch_, r_batch_;
};

// B as a kernel reads it.
struct ProductB {
  MatrixView view;                    // its batch strides are in the kernel's own steps
  std::vector<LaunchArgument> sizes;  // what the kernel asks of B
  LaunchArgument memory;
};

// Launches of the kernel 0, one for each step of the batch axes beyond two. A group makes so many rows and columns.
std::vector<KernelLaunch> product_launches(const GemmForm& form, std::span<const Dims> shapes, const ProductB& b,
                                           int64_t rows, int64_t columns);

}  // namespace neo::gpu
