#pragma once

#include <limits>
#include <optional>
#include <string>

#include "kernel_ir/builder.h"
#include "routines/gpu/program.h"
#include "routines/patterns/eltwise_program.h"

namespace neo::gpu {

// The work of a convolution or a matrix product on its sums before it stores them: adds the bias (where sums begin),
// adds a tensor of the result's form, then clamps or applies an activation.
struct ResultForm {
  bool has_bias = false;
  bool has_residual = false;
  bool has_clamp = false;
  std::optional<EltwiseStep> activation;  // unary
  DType storage = DType::Float32;         // of operands, weights and results in memory; no part of tag()
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();

  std::string tag() const;  // what of it a kernel depends on, as a part of its name
};

// The parameters of a kernel that a form asks for. `declare` comes last among the parameters of the kernel.
class ResultParameters {
 public:
  ResultParameters(kernel::Builder& b, const ResultForm& form, const kernel::Expr& biases, const kernel::Expr& results);

  kernel::Expr bias(const kernel::Expr& index, int lanes) const;  // zero without one
  // What is stored at `index` for sums.
  kernel::Expr finish(const kernel::Expr& sums, const kernel::Expr& index) const;
  // The same without the residual, which the caller has added.
  kernel::Expr shape(kernel::Expr value) const;
  kernel::Expr residual(const kernel::Expr& index, int lanes) const;
  bool has_residual() const { return form_.has_residual; }

 private:
  ResultForm form_;
  std::optional<kernel::Array> bias_, residual_;
  kernel::Expr lo_, hi_;
};

// The arguments of those parameters, in their order.
void append_result_arguments(const ResultForm& form, LaunchArgument bias, LaunchArgument residual,
                             std::vector<LaunchArgument>& arguments);

// A unary step on a scalar or vector of float32.
kernel::Expr apply_step(const EltwiseStep& step, const kernel::Expr& x);

}  // namespace neo::gpu
