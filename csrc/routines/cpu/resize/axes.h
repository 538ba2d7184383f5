#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/isa.h"
#include "exec/step.h"
#include "ops/resize.h"

namespace neo {

// The axes that a Resize is given, and what their tables follow from.
class ResizedAxes {
 public:
  // As the node's constants say.
  explicit ResizedAxes(const Node& node);
  // As the operands of a call say.
  ResizedAxes(const Node& node, const std::vector<AxisResize>& axes);

  // Its op, name and attributes.
  const Node& node() const { return *node_; }
  // The factor of an axis; none where sizes are given, or where it stays.
  std::optional<double> factor(int axis) const;
  // The axes that change, in the order of the node's list, for tensors of these sizes.
  std::vector<AxisResize> changed(const Dims& input, const Dims& output) const;

 private:
  struct Axis {
    int axis = 0;
    std::optional<double> factor;
    double begin = 0, end = 1;
  };

  std::shared_ptr<Node> node_ = std::make_shared<Node>();  // without inputs and outputs
  std::vector<Axis> axes_;
};

// Resizes the last two axes of a float32 tensor in the plain layout.
std::unique_ptr<KernelStep> make_row_resize(const ResizedAxes& axes, int rank, Isa isa);

}  // namespace neo
