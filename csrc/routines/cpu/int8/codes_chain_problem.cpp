#include "routines/cpu/int8/codes_chain_problem.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>

#include "routines/cpu/int8/code_table.h"
#include "routines/cpu/int8/depthwise_codes.h"
#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

constexpr std::string_view kConv[] = {"Conv"};

bool holds(std::span<const Node* const> nodes, const Node* node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// The convolution of a product's group, where it is depthwise or pointwise; else null.
const Node* convolution_of(const Workload& product, bool is_depthwise) {
  const auto it =
      std::find_if(product.nodes.begin(), product.nodes.end(), [](const Node* node) { return node->op == "Conv"; });
  ConvGeometry geometry;
  if (it == product.nodes.end() || !read_conv_geometry(**it, (*it)->inputs[1]->shape(), geometry)) return nullptr;
  return (is_depthwise ? geometry.is_depthwise() : geometry.is_pointwise()) ? *it : nullptr;
}

// Puts the group that makes the codes that `conv` reads before `nodes`; its convolution, or null where there is none.
const Node* put_before(const Node* conv, bool is_depthwise, const Graph::Users& users, const Graph& graph,
                       std::vector<const Node*>& nodes) {
  const Value* numbers = conv->inputs[0];
  const Value* codes = numbers->producer->inputs[0];
  if (!codes->producer || !read_only_by_one(numbers, users, graph) || !read_only_by_one(codes, users, graph))
    return nullptr;
  for (Workload& product : match_int8_products(*codes->producer, kConv, users, graph)) {
    const Node* found = convolution_of(product, is_depthwise);
    if (!found) continue;
    for (const Node* node : nodes) {
      if (!holds(product.nodes, node)) product.nodes.push_back(node);
    }
    nodes = std::move(product.nodes);
    return found;
  }
  return nullptr;
}

// The nodes of one convolution's group among those of a chain, and the node that makes the codes that it reads; null
// for the first one.
struct ChainPart {
  std::vector<const Node*> nodes;
  const Node* before = nullptr;

  static std::optional<ChainPart> ending_in(const Node* end, const Workload& chain) {
    ChainPart part;
    std::vector<const Node*> members{end};
    const Node* source = nullptr;
    for (size_t i = 0; i < members.size(); ++i) {
      if (members[i] == source) continue;
      if (members[i]->op == "Conv") source = members[i]->inputs[0]->producer;
      for (const Value* value : members[i]->inputs) {
        const Node* maker = value ? value->producer : nullptr;
        if (maker && holds(chain.nodes, maker) && !holds(members, maker)) members.push_back(maker);
      }
    }
    if (!source) return std::nullopt;
    const Node* before = source->inputs[0]->producer;
    if (before && holds(chain.nodes, before)) part.before = before;
    std::copy_if(chain.nodes.begin(), chain.nodes.end(), std::back_inserter(part.nodes),
                 [&](const Node* node) { return holds(members, node); });
    return part;
  }
};

const char* reject_inner(const Int8Problem& problem) {
  const Int8Product& p = problem.product;
  if (p.residual || p.addend || p.middle) return "something is added between the convolutions";
  return p.y_grid ? nullptr : "the result of a convolution is not codes";
}

const char* reject_pointwise(const Int8Problem& problem) {
  constexpr int64_t kMaxSum = 1 << 30;
  const Int8Product& p = problem.product;
  return !p.w->constant->is_absent() && !sums_fit(p, kMaxSum) ? "a sum may leave int32" : nullptr;
}

const char* reject_depthwise_sums(const Int8Problem& problem) {
  constexpr int64_t kMaxProduct = 255 * 255, kWholeFloats = 1 << 24;
  if (problem.geometry.axes > 2) return "more than two spatial axes";
  if (problem.geometry.taps() > kMaxDepthwiseTaps) return "the kernel has more than 256 taps";
  if (problem.geometry.kernel[1] > kDepthwiseMaxRows) return "the kernel has too many rows";
  const Int8Product& p = problem.product;
  for (const Value* constant : {p.w, p.w_scale, p.w_zero, p.bias}) {
    if (constant && constant->constant->is_absent()) return nullptr;
  }
  std::vector<int32_t> columns(static_cast<size_t>(PackedColumns::kArrays * problem.channels));
  problem.pack_columns({columns.data(), problem.channels, false});
  const bool fits = std::all_of(columns.begin(), columns.begin() + problem.channels, [&](int64_t init) {
    return std::abs(init) <= kWholeFloats - problem.geometry.taps() * kMaxProduct;
  });
  return fits ? nullptr : "the bias is too large for sums in float32";
}

}  // namespace

std::vector<Workload> match_codes_chains(const Node& root, CodesChainForm form, const Graph::Users& users,
                                         const Graph& graph) {
  std::vector<Workload> found;
  for (Workload& last : match_int8_products(root, kConv, users, graph)) {
    const Node* conv = convolution_of(last, !form.projects);
    std::vector<const Node*> nodes = std::move(last.nodes);
    if (conv && form.projects) conv = put_before(conv, true, users, graph, nodes);
    if (conv && form.expands) conv = put_before(conv, false, users, graph, nodes);
    if (conv) found.push_back(Workload::of(std::move(nodes)));
  }
  return found;
}

std::optional<CodesChainProblem> CodesChainProblem::read(const Workload& workload, std::string* why) {
  const auto reject = [&](const char* reason) {
    if (why) *why = reason;
    return std::nullopt;
  };
  std::vector<Int8Problem> problems;  // the last one first
  for (const Node* end = &workload.root(); end;) {
    const auto part = ChainPart::ending_in(end, workload);
    if (!part) return reject("there is no convolution");
    auto problem = Int8Problem::read(Workload::of(part->nodes), why);
    if (!problem) return std::nullopt;
    if (problem->product.x_scale || problem->product.x_zero) return reject("the grid is known to the call alone");
    problems.push_back(std::move(*problem));
    end = part->before;
  }
  CodesChainProblem chain;
  const auto it = std::find_if(problems.begin(), problems.end(),
                               [](const Int8Problem& problem) { return problem.geometry.is_depthwise(); });
  if (it == problems.end()) return reject("there is no depthwise convolution");
  chain.depthwise = *it;
  if (it != problems.begin()) chain.project = problems.front();
  if (it + 1 != problems.end()) chain.expand = problems.back();
  if (const char* reason = reject_depthwise_sums(chain.depthwise)) return reject(reason);
  for (const auto* inner : {chain.expand ? &*chain.expand : nullptr, chain.project ? &chain.depthwise : nullptr}) {
    const char* reason = inner ? reject_inner(*inner) : nullptr;
    if (reason) return reject(reason);
  }
  for (const auto* pointwise : {chain.expand ? &*chain.expand : nullptr, chain.project ? &*chain.project : nullptr}) {
    const char* reason = pointwise ? reject_pointwise(*pointwise) : nullptr;
    if (reason) return reject(reason);
  }
  const Int8Product& last = chain.last().product;
  if (!last.y_grid) return reject("the result is not codes");
  if (!chain.project && (last.residual || last.addend)) return reject("something is added to depthwise sums");
  const Int8Product* expanded = chain.expand ? &chain.expand->product : nullptr;
  if (expanded && expanded->function.nodes.empty() && expanded->y_grid->zero != chain.depthwise.product.x_grid.zero)
    return reject("codes are read from another zero point");
  return chain;
}

bool CodesChainProblem::flips_strip(int64_t codes) const {
  return codes == kByteCodes && project && project->product.x_grid.is_signed() &&
         depthwise.product.function.nodes.empty();
}

CodesChainShape CodesChainProblem::shape(const Dims& x, const Dims& y, int64_t codes) const {
  CodesChainShape s;
  s.expands = expand.has_value();
  s.projects = project.has_value();
  Dims inner_x = x, inner_y = y;
  inner_x[1] = inner_y[1] = depthwise.geometry.ic;
  s.depthwise = depthwise.geometry.shape(inner_x, inner_y);
  s.ic = first().geometry.ic;
  s.oc = last().geometry.oc;
  const bool bytes = codes == kByteCodes;
  s.x_is_bytes = bytes && !first().product.x_grid.is_signed();
  s.strip_is_bytes = bytes && project && (!project->product.x_grid.is_signed() || flips_strip(codes));
  return s;
}

bool is_hard_swish(const Int8Problem& problem) {
  const std::vector<const Node*>& nodes = problem.product.function.nodes;
  return nodes.size() == 3 && nodes[1]->op == "HardSwish" && read_code_grid(*nodes[0]) && read_code_grid(*nodes[2]);
}

std::optional<CodesHardSwish> read_hard_swish(const Int8Problem& problem, const CodeTable& table) {
  if (!is_hard_swish(problem)) return std::nullopt;
  const CodeGrid from = *read_code_grid(*problem.product.function.nodes.front()),
                 to = *read_code_grid(*problem.product.function.nodes.back());
  CodesHardSwish f;
  f.slope = from.scale / 6;
  f.factor = from.scale / to.scale;
  f.lo = static_cast<float>(to.lo() - to.zero);
  f.hi = static_cast<float>(to.hi() - to.zero);
  f.zero = to.zero;
  f.is_signed = to.is_signed();
  for (int32_t code = from.lo(); code <= from.hi(); ++code) {
    // As the kernels compute it.
    const auto x = static_cast<float>(code - from.zero);
    const float part = std::min(1.0f, std::max(0.0f, x * f.slope + 0.5f));
    const float steps = std::nearbyint(std::min(f.hi, std::max(f.lo, x * f.factor * part)));
    if (!(static_cast<uint8_t>(static_cast<int32_t>(steps) + to.zero) == table[static_cast<uint8_t>(code)]))
      return std::nullopt;
  }
  return f;
}

}  // namespace neo
