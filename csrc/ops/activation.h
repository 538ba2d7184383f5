#pragma once

#include <string_view>
#include <vector>

#include "ops/op.h"

// Activation functions that operators of several families apply.

namespace neo {

double sigmoid(double x);
double softplus(double x);

// An activation named by an attribute of a recurrent or a fused operator, with its two parameters.
class NamedActivation {
 public:
  // `params` may hold fewer than the function takes; the rest have ONNX's defaults. An empty name is the identity.
  // An Unsupported error that names the node when the name is not known.
  NamedActivation(const Node& node, std::string_view name, const std::vector<double>& params);
  double operator()(double x) const { return function_(x, a_, b_); }
  // As ONNX spells it, and the parameters, defaults filled in.
  std::string_view name() const { return name_; }
  double a() const { return a_; }
  double b() const { return b_; }
  // How many parameters a function of this name takes.
  static int parameter_count(const Node& node, std::string_view name);

 private:
  std::string_view name_;
  double (*function_)(double, double, double);
  double a_;
  double b_;
};

}  // namespace neo
