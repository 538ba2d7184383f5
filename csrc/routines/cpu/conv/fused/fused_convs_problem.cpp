#include "routines/cpu/conv/fused/fused_convs_problem.h"

#include <algorithm>

namespace neo {
namespace {

enum class ConvKind { Other, Depthwise, Pointwise, Stem };

ConvKind kind_of(const Node& node) {
  if (node.op != "Conv" || node.inputs.size() < 2 || !node.inputs[1] || !node.inputs[1]->constant) {
    return ConvKind::Other;
  }
  const Shape& weight = node.inputs[1]->shape();
  const int64_t groups = node.int_attr("group", 1);
  if (weight.rank() < 3 || weight.rank() > 4) return ConvKind::Other;
  if (groups > 1) {
    return weight[0].is(groups) && weight[1].is(1) ? ConvKind::Depthwise : ConvKind::Other;
  }
  const auto all = [&](std::string_view attr, int64_t wanted) {
    const std::vector<int64_t> list = node.ints_attr(attr);
    return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == wanted; });
  };
  if (!weight.is_static()) return ConvKind::Other;
  int64_t taps = 1;
  for (int axis = 2; axis < weight.rank(); ++axis) taps *= std::min(weight[axis].value(), kStemProducts + 1);
  const int64_t ic = weight[1].value();
  if (taps == 1) return all("strides", 1) && all("pads", 0) ? ConvKind::Pointwise : ConvKind::Other;
  return ic <= kStemChannels && ic * taps <= kStemProducts ? ConvKind::Stem : ConvKind::Other;
}

// Walks a chain from its end, collecting its nodes.
class Walk {
 public:
  Walk(const Graph::Users& users, const Graph& graph) : users_(users), graph_(graph) {}

  // The nodes from the convolution behind which `end` stands up to the first one; none where the form is another.
  std::optional<std::vector<const Node*>> back(const Node* end, ChainForm form) const {
    std::vector<const Node*> nodes;
    const Node* at = end;
    if (form.project) {
      if (!take(at, ConvKind::Pointwise, nodes)) return std::nullopt;
      at = inner(at->inputs[0]);
    }
    if (!take(at, ConvKind::Depthwise, nodes)) return std::nullopt;
    if (form.expansion != Expansion::None) {
      at = inner(at->inputs[0]);
      const bool is_pointwise = form.expansion == Expansion::Pointwise;
      if (!take(at, is_pointwise ? ConvKind::Pointwise : ConvKind::Stem, nodes)) return std::nullopt;
    }
    std::reverse(nodes.begin(), nodes.end());
    return nodes;
  }

  // The producer of a value that nobody else reads, or null.
  const Node* inner(const Value* value) const {
    return read_only_by_one(value, users_, graph_) ? value->producer : nullptr;
  }

 private:
  // The convolution at `at`, or before the activation there; `at` becomes the convolution.
  bool take(const Node*& at, ConvKind kind, std::vector<const Node*>& nodes) const {
    const Node* activation = at && at->op != "Conv" && at->input(0) ? at : nullptr;
    if (activation) at = inner(at->inputs[0]);
    if (!at || kind_of(*at) != kind || (activation && !find_activation_step(*activation))) return false;
    if (activation) nodes.push_back(activation);
    nodes.push_back(at);
    return true;
  }

  const Graph::Users& users_;
  const Graph& graph_;
};

std::optional<ChainLink> read_link(const Node& conv, const Node* activation, std::string* why) {
  std::optional<ConvProblem> problem = read_conv(Workload::of(conv), why);
  if (!problem) return std::nullopt;
  ChainLink link;
  link.conv = *problem;
  if (activation) link.activation = find_activation_step(*activation);
  return link;
}

}  // namespace

bool is_pointwise(const Node& node) {
  return kind_of(node) == ConvKind::Pointwise;
}

std::vector<Workload> match_chains(const Node& root, ChainForm form, const Graph::Users& users, const Graph& graph) {
  const Walk walk(users, graph);
  std::vector<Workload> found;
  const auto add_chain = [&](const Node* end, const std::vector<const Node*>& tail) {
    auto nodes = walk.back(end, form);
    if (!nodes) return;
    nodes->insert(nodes->end(), tail.begin(), tail.end());
    found.push_back(Workload::of(std::move(*nodes)));
  };
  static constexpr std::string_view kConv[] = {"Conv"};
  for (const Workload& end : match_epilogues(root, kConv, users, graph)) {
    const bool sums = end.nodes.size() > 1 && end.nodes[1]->op == "Add" && !read_epilogue(end).activation;
    if (sums && form.project) add_chain(end.nodes.front(), {end.nodes.begin() + 1, end.nodes.end()});
  }
  if (found.empty()) add_chain(&root, {});
  return found;
}

std::optional<ChainProblem> read_chain(const Workload& workload, std::string* why) {
  ChainProblem p;
  const std::vector<const Node*>& nodes = workload.nodes;
  size_t at = 0;
  // The next convolution and its activation, if it has one.
  const auto next = [&]() -> std::optional<ChainLink> {
    const Node& conv = *nodes[at++];
    const Node* activation = nullptr;
    if (at < nodes.size() && nodes[at]->op != "Conv" && nodes[at]->op != "Add") activation = nodes[at++];
    return read_link(conv, activation, why);
  };
  const ConvKind kind = kind_of(*nodes[0]);
  if (kind != ConvKind::Depthwise) {
    p.expansion = kind == ConvKind::Pointwise ? Expansion::Pointwise : Expansion::Stem;
    p.expand = next();
    if (!p.expand) return std::nullopt;
  }
  std::optional<ChainLink> depthwise = next();
  if (!depthwise) return std::nullopt;
  p.depthwise = std::move(*depthwise);
  if (at < nodes.size()) {
    const size_t first = at;
    p.project = next();
    if (!p.project) return std::nullopt;
    Epilogue epilogue = p.project->conv.epilogue;
    if (at < nodes.size())
      epilogue = read_epilogue(Workload::of({nodes.begin() + static_cast<long>(first), nodes.end()}));
    p.residual = epilogue.residual;
    p.lo = epilogue.lo;
    p.hi = epilogue.hi;
  }
  p.x = p.expand ? p.expand->conv.x : p.depthwise.conv.x;
  p.y = workload.outputs.front();
  for (const Value* v : workload.inputs) {
    const bool is_operand = v == p.x || v == p.residual;
    if (is_operand && (v->constant || !v->type.is_tensor() || v->dtype() != DType::Float32)) {
      *why = "an operand is not a float32 tensor that arrives at run time";
      return std::nullopt;
    }
    if (!is_operand && !v->constant) {
      *why = "the weights are not constants";
      return std::nullopt;
    }
  }
  if (p.expansion == Expansion::Stem && p.residual == p.x) {
    *why = "the input is the residual too";
    return std::nullopt;
  }
  const ConvGeometry& window = p.depthwise.conv.geometry;
  if (window.kernel[1] > kDepthwiseMaxRows) {
    *why = "the kernel has too many rows";
    return std::nullopt;
  }
  return p;
}

ChainShape ChainProblem::shape(const Dims& x, const Dims& y) const {
  ChainShape s;
  s.expansion = expansion;
  s.project = project.has_value();
  Dims inner_x = x, inner_y = y;
  if (s.has_stem()) {
    inner_x = expand->conv.geometry.output(x);
    s.stem = expand->conv.geometry.shape(x, inner_x);
  }
  inner_x[1] = inner_y[1] = depthwise.conv.geometry.ic;
  s.depthwise = depthwise.conv.geometry.shape(inner_x, inner_y);
  s.ic = ic();
  s.oc = oc();
  return s;
}

}  // namespace neo
