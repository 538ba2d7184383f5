#include <algorithm>

#include "ops/window.h"
#include "passes/rewriter.h"

namespace neo {
namespace {

// Fewer filters than these do not repay the transpose that brings a covered axis to the channels.
constexpr int64_t kMinFilters = 8;

// A Conv of one group whose kernel is as large as its image along some axes, which its output has one place of.
struct CoveredAxes {
  std::vector<int64_t> covered, others;  // axes of the image, from 2 on
  int64_t inputs = 0, filters = 0;       // channels
  int64_t places = 1;                    // of a kernel along the covered axes

  // Whether the covered axes follow the channels in memory.
  bool is_in_order() const { return others.empty() || covered.back() < others.front(); }
};

bool is_covered(const Window& window, int axis, const Dim& input, int64_t kernel) {
  return kernel > 1 && input.is(kernel) && window.dilations[static_cast<size_t>(axis)] == 1 &&
         window_pad_total(window, axis, kernel, kernel) == 0;
}

std::optional<CoveredAxes> find_covered_axes(const Node& node) {
  const Shape& x = node.inputs[0]->shape();
  const std::optional<Tensor>& weight = node.inputs[1]->constant;
  if (!weight || !x.has_rank() || x.rank() < 3 || !x[1].is_constant() || node.int_attr("group", 1) != 1) {
    return std::nullopt;
  }
  CoveredAxes found;
  found.filters = weight->dims()[0];
  found.inputs = weight->dims()[1];
  const Window window = read_window(node, x.rank() - 2);
  int64_t open = 0;
  for (int axis = 2; axis < x.rank(); ++axis) {
    const int64_t kernel = weight->dims()[static_cast<size_t>(axis)];
    const bool is_whole = is_covered(window, axis - 2, x[axis], kernel);
    (is_whole ? found.covered : found.others).push_back(axis);
    if (is_whole) found.places *= kernel;
    open += !x[axis].is_constant();
  }
  if (found.covered.empty() || found.filters == 0 || found.inputs == 0) return std::nullopt;
  // A Reshape finds one size by the number of elements.
  if (!found.is_in_order() && (open > 1 || found.filters < kMinFilters)) return std::nullopt;
  return found;
}

class Merge {
 public:
  Merge(Rewriter& rewriter, Node& node, const CoveredAxes& axes) : rewriter_(rewriter), node_(node), axes_(axes) {}

  Value* run() { return axes_.others.empty() ? product() : convolution(); }

 private:
  Value* insert(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return rewriter_.insert(&node_, op, std::move(inputs), std::move(attrs));
  }
  Value* reshape(Value* value, const std::vector<int64_t>& dims) {
    return insert("Reshape", {value, rewriter_.add_ints("dims", dims)});
  }

  // An image of one place: the product of all that each filter reads.
  Value* product() {
    Attrs attrs{{"transB", int64_t{1}}};
    for (const char* kept : {"clamp_min", "clamp_max", "exact"}) {
      if (const auto it = node_.attrs.find(kept); it != node_.attrs.end()) attrs.insert(*it);
    }
    std::vector<Value*> operands = {insert("Flatten", {node_.inputs[0]}, {{"axis", int64_t{1}}}),
                                    reshape(node_.inputs[1], {axes_.filters, -1})};
    if (Value* bias = node_.input(2)) operands.push_back(bias);
    Value* y = insert("Gemm", std::move(operands), std::move(attrs));
    std::vector<int64_t> dims(axes_.covered.size() + 2, 1);
    dims[0] = 0;
    dims[1] = axes_.filters;
    return reshape(y, dims);
  }

  // The covered axes of an operand behind its channels, as channels; each is left as an axis of one place.
  Value* merged(Value* operand, int64_t first) {
    if (!axes_.is_in_order()) {
      std::vector<int64_t> order = {0, 1};
      for (const auto& axes : {axes_.covered, axes_.others}) order.insert(order.end(), axes.begin(), axes.end());
      operand = insert("Transpose", {operand}, {{"perm", order}});
    }
    std::vector<int64_t> dims(axes_.covered.size() + axes_.others.size() + 2, 1);
    dims[0] = first;
    dims[1] = axes_.inputs * axes_.places;
    const Shape& shape = operand->shape();
    for (size_t i = 0; i < axes_.others.size(); ++i) {
      const Dim& size = shape[shape.rank() - static_cast<int>(axes_.others.size() - i)];
      dims[static_cast<size_t>(axes_.others[i])] = axes_.is_in_order() ? 0 : size.is_constant() ? size.value() : -1;
    }
    return reshape(operand, dims);
  }

  Value* convolution() {
    Attrs attrs = node_.attrs;
    for (const char* name : {"kernel_shape", "strides"}) {
      const auto it = attrs.find(name);
      if (it == attrs.end()) continue;
      std::vector<int64_t> numbers = node_.ints_attr(name);
      for (const int64_t axis : axes_.covered) numbers[static_cast<size_t>(axis - 2)] = 1;
      it->second = numbers;
    }
    std::vector<Value*> operands = {merged(node_.inputs[0], 0), merged(node_.inputs[1], axes_.filters)};
    for (size_t i = 2; i < node_.inputs.size(); ++i) operands.push_back(node_.inputs[i]);
    return insert("Conv", std::move(operands), std::move(attrs));
  }

  Rewriter& rewriter_;
  Node& node_;
  const CoveredAxes& axes_;
};

bool merge_covered_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "Conv" || rewriter.is_retired(node)) continue;
    if (const auto axes = find_covered_axes(*node)) {
      rewriter.replace(node->outputs[0], Merge(rewriter, *node, *axes).run());
    }
  }
  return rewriter.finish();
}

}  // namespace

// Along an axis that a kernel covers whole a convolution sums as over channels: words' vectors, an image's last places.
bool merge_covered_axes(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& body) { return merge_covered_in_body(body, context); });
}

}  // namespace neo
