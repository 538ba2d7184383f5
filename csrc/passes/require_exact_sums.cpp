#include <algorithm>
#include <array>
#include <deque>
#include <string_view>
#include <unordered_map>

#include "passes/pattern.h"
#include "passes/rewriter.h"

namespace neo {
namespace {

constexpr std::array<std::string_view, 4> kProducts = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
// Operators that move elements of their first input, or compute each from one of them and keep a zero.
constexpr std::array<std::string_view, 19> kKeepsElements = {
    "Abs", "Clip", "Expand",  "Flatten", "Gather", "Identity", "LeakyRelu", "Neg",       "PRelu",    "Pad",
    "Pow", "Relu", "Reshape", "Slice",   "Split",  "Sqrt",     "Squeeze",   "Transpose", "Unsqueeze"};
constexpr std::array<std::string_view, 6> kReductions = {"ReduceL1",   "ReduceL2",  "ReduceMax",
                                                         "ReduceMean", "ReduceSum", "ReduceSumSquare"};
constexpr std::array<std::string_view, 4> kComparisons = {"Greater", "GreaterOrEqual", "Less", "LessOrEqual"};

// A divisor that is at least this large keeps errors as small as they were.
constexpr double kSafeDivisor = 1e-6;
// Values followed from one product.
constexpr size_t kMaxFollowed = 256;

template <size_t N>
bool is_among(const std::array<std::string_view, N>& ops, const Node& node) {
  return std::find(ops.begin(), ops.end(), node.op) != ops.end();
}

// How a value follows from a product: element by element, or as a norm of it.
enum class Image { Elements, Norm };

// Finds out whether a product's readers tell a zero from a rounding error.
class Follower {
 public:
  explicit Follower(const Rewriter& rewriter) : rewriter_(rewriter) {}

  bool magnifies(const Value* product) {
    follow(product, Image::Elements);
    while (!waiting_.empty()) {
      const Value* value = waiting_.front();
      waiting_.pop_front();
      for (const Node* reader : rewriter_.readers(value)) {
        if (reads(*reader, value)) return true;
      }
    }
    return false;
  }

 private:
  void follow(const Value* value, Image image) {
    if (value && images_.size() < kMaxFollowed && images_.emplace(value, image).second) waiting_.push_back(value);
  }

  void follow_outputs(const Node& node, Image image) {
    for (const Value* output : node.outputs) follow(output, image);
  }

  bool is(const Value* value, Image image) const {
    const auto found = images_.find(value);
    return found != images_.end() && found->second == image;
  }

  // Whether a norm is bounded away from zero: a constant is added to it, or it is at least that.
  static bool is_bounded(const Node& node, const Value* value) {
    if (node.op == "Add" || node.op == "Max") {
      const Value* other = node.inputs.front() == value ? node.input(1) : node.inputs.front();
      return uniform(other).value_or(0) >= kSafeDivisor;
    }
    const std::optional<Bounds> bounds = bounds_of(node);
    return bounds && bounds->lo >= kSafeDivisor;
  }

  // Takes a reader up; true where it is one that magnifies.
  bool reads(const Node& node, const Value* value) {
    const Image image = images_.at(value);
    const bool is_first = node.inputs.front() == value;
    if (image == Image::Elements && decides(node, value)) return true;
    if (node.op == "Div" || node.op == "Mul") return scales(node, value);
    if (image == Image::Norm && is_bounded(node, value)) return false;
    if (is_among(kReductions, node) && is_first) {
      follow_outputs(node, Image::Norm);
    } else if (node.op == "Concat" || (is_first && is_among(kKeepsElements, node)) ||
               (image == Image::Norm && (node.op == "Max" || node.op == "Reciprocal"))) {
      follow_outputs(node, image);
    } else if (node.op == "Where") {
      if (node.inputs[0] != value) follow_outputs(node, image);
    } else if (node.op == "Add" || node.op == "Sub") {
      const Value* other = is_first ? node.inputs[1] : node.inputs.front();
      if (other->is_constant()) follow_outputs(node, image);
    }
    return false;
  }

  // Operators whose result jumps at zero.
  static bool decides(const Node& node, const Value* value) {
    if (node.op == "LpNormalization" || node.op == "Sign" || node.op == "NonZero" || node.op == "Equal") return true;
    if (node.op == "Cast") return node.outputs.front()->dtype() == DType::Bool;
    if (!is_among(kComparisons, node)) return false;
    return uniform(node.inputs.front() == value ? node.inputs[1] : node.inputs.front()) == 0.0;
  }

  // Products and quotients: of a value by its norm, or by something else.
  bool scales(const Node& node, const Value* value) {
    const Value *a = node.inputs[0], *b = node.inputs[1];
    if (is(b, Image::Norm) && (is(a, Image::Elements) || (node.op == "Div" && is(a, Image::Norm)))) return true;
    if (node.op == "Mul" && is(a, Image::Norm) && is(b, Image::Elements)) return true;
    if (node.op == "Mul" || value == a) follow_outputs(node, images_.at(value));
    return false;
  }

  const Rewriter& rewriter_;
  std::unordered_map<const Value*, Image> images_;
  std::deque<const Value*> waiting_;
};

bool mark_products(Graph& graph, const PassContext& context) {
  const Rewriter rewriter(graph, context);
  bool changed = false;
  for (Node* node : rewriter.nodes()) {
    if (!is_among(kProducts, *node) || node->int_attr("exact", 0) != 0) continue;
    if (!is_float(node->outputs.front()->dtype()) || !Follower(rewriter).magnifies(node->outputs.front())) continue;
    node->attrs["exact"] = int64_t{1};
    changed = true;
  }
  return changed;
}

}  // namespace

// Marks the products whose result is divided by its own norm, or compared with zero. Where a row of such a result is
// zero, or small beside the others, an algorithm that mixes rows (Strassen's, Winograd's) leaves a rounding error of
// the others there, which the division makes as large as anything.
bool require_exact_sums(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return mark_products(g, context); });
}

}  // namespace neo
