#include <algorithm>
#include <map>
#include <set>

#include "ops/einsum.h"
#include "passes/rewriter.h"

namespace neo {
namespace {

bool has(const EinsumTerm& term, EinsumLabel label) {
  return std::find(term.begin(), term.end(), label) != term.end();
}

struct LabelledValue {
  Value* value = nullptr;
  EinsumTerm term;
};

EinsumTerm joined(const EinsumTerm& a, const EinsumTerm& b, const EinsumTerm& c = {}) {
  EinsumTerm all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

// The axes of two operands: of both and kept, of both and summed, of one alone. If rows lie along several axes, all but
// the last lead: the second operand repeats along them, as it does for MatMul. `repeated`: columns that lead likewise,
// along which the first operand repeats.
struct ProductAxes {
  EinsumTerm lead, repeated, batch, summed, rows, columns;

  static ProductAxes of(const EinsumTerm& a, const EinsumTerm& b, const std::set<EinsumLabel>& kept) {
    ProductAxes axes;
    for (const EinsumLabel label : a)
      (!has(b, label) ? axes.rows : kept.count(label) > 0 ? axes.batch : axes.summed).push_back(label);
    for (const EinsumLabel label : b) {
      if (!has(a, label)) axes.columns.push_back(label);
    }
    if (axes.rows.size() > 1) {
      axes.lead.assign(axes.rows.begin(), axes.rows.end() - 1);
      axes.rows.erase(axes.rows.begin(), axes.rows.end() - 1);
    }
    return axes;
  }

  EinsumTerm outer() const { return joined(lead, repeated, batch); }
  // Axes of one operand along which the other one repeats.
  EinsumTerm alone() const { return joined(lead, repeated); }
  EinsumTerm result() const { return joined(outer(), rows, columns); }
};

class EinsumExpansion {
 public:
  EinsumExpansion(Rewriter& rewriter, const Node& node) : rewriter_(rewriter), node_(node) {}

  // The result; null where nothing was done.
  Value* run() {
    std::vector<int> ranks;
    for (const Value* v : node_.inputs) {
      if (!v->shape().has_rank()) return nullptr;
      ranks.push_back(v->shape().rank());
    }
    const EinsumEquation equation = parse_einsum(node_, ranks);
    if (!note_sizes(equation)) return nullptr;
    std::vector<LabelledValue> operands;
    for (size_t i = 0; i < equation.operands.size(); ++i) operands.push_back({node_.inputs[i], equation.operands[i]});
    if (!is_expressible(equation)) return nullptr;
    while (operands.size() > 1) {
      const std::set<EinsumLabel> kept = kept_by(operands, 2, equation.output);
      const LabelledValue a = sum_out(operands[0], operands[1].term, kept);
      const LabelledValue b = sum_out(operands[1], operands[0].term, kept);
      operands.erase(operands.begin());
      operands.front() = multiply(a, b, axes_of(a.term, b.term, kept));
    }
    const LabelledValue sum =
        sum_out(operands.front(), {}, std::set<EinsumLabel>(equation.output.begin(), equation.output.end()));
    return order(sum, equation.output).value;
  }

 private:
  // False where an operand has a label twice, or a size is 0. A label whose sizes may differ broadcasts.
  bool note_sizes(const EinsumEquation& equation) {
    for (size_t i = 0; i < equation.operands.size(); ++i) {
      const EinsumTerm& term = equation.operands[i];
      for (size_t axis = 0; axis < term.size(); ++axis) {
        const Dim& size = node_.inputs[i]->shape()[static_cast<int>(axis)];
        if (std::count(term.begin(), term.end(), term[axis]) > 1 || size.is(0)) return false;
        if (!(sizes_.emplace(term[axis], size).first->second == size)) broadcast_.insert(term[axis]);
      }
    }
    return true;
  }

  bool is_known(const EinsumTerm& term) const {
    return std::all_of(term.begin(), term.end(), [&](EinsumLabel label) { return sizes_.at(label).is_constant(); });
  }

  // Columns along several axes of open sizes cannot become one axis: all but the last lead.
  ProductAxes axes_of(const EinsumTerm& a, const EinsumTerm& b, const std::set<EinsumLabel>& kept) const {
    ProductAxes axes = ProductAxes::of(a, b, kept);
    if (axes.summed.empty() || axes.columns.size() < 2 || is_known(axes.columns)) return axes;
    axes.repeated.assign(axes.columns.begin(), axes.columns.end() - 1);
    axes.columns.erase(axes.columns.begin(), axes.columns.end() - 1);
    return axes;
  }

  // Whether every reshape leads from axes that stay where they are to axes of known sizes, and only axes of both
  // operands that are kept broadcast: MatMul and Mul do that, sums do not.
  bool is_expressible(const EinsumEquation& equation) const {
    EinsumTerm first = equation.operands.front();
    for (size_t i = 1; i < equation.operands.size(); ++i) {
      std::set<EinsumLabel> kept(equation.output.begin(), equation.output.end());
      for (size_t j = i + 1; j < equation.operands.size(); ++j)
        kept.insert(equation.operands[j].begin(), equation.operands[j].end());
      const EinsumTerm &second = equation.operands[i], a = remaining(first, second, kept),
                       b = remaining(second, first, kept);
      const ProductAxes axes = axes_of(a, b, kept);
      first = axes.result();
      for (const EinsumLabel label : joined(axes.alone(), joined(axes.rows, axes.columns, axes.summed))) {
        if (broadcast_.count(label) > 0) return false;
      }
      if (axes.summed.empty()) continue;
      const auto fits = [&](const EinsumTerm& outer, const EinsumTerm& inner) {
        return outer.size() <= 1 ? inner.size() <= 1 || is_known(inner) : is_known(outer) && is_known(inner);
      };
      if (!fits(axes.rows, axes.summed) || !fits(axes.summed, axes.columns) || !fits(axes.rows, axes.columns))
        return false;
    }
    return true;
  }

  static EinsumTerm remaining(const EinsumTerm& term, const EinsumTerm& other, const std::set<EinsumLabel>& kept) {
    EinsumTerm rest;
    for (const EinsumLabel label : term) {
      if (has(other, label) || kept.count(label) > 0) rest.push_back(label);
    }
    return rest;
  }

  static std::set<EinsumLabel> kept_by(const std::vector<LabelledValue>& operands, size_t first,
                                       const EinsumTerm& output) {
    std::set<EinsumLabel> kept(output.begin(), output.end());
    for (size_t i = first; i < operands.size(); ++i) kept.insert(operands[i].term.begin(), operands[i].term.end());
    return kept;
  }

  Value* insert(std::string_view op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return rewriter_.insert(&node_, op, std::move(inputs), std::move(attrs));
  }

  Value* at_axes(std::string_view op, Value* value, const std::vector<int64_t>& axes, Attrs attrs = {}) {
    return axes.empty() ? value : insert(op, {value, rewriter_.add_ints("axes", axes)}, std::move(attrs));
  }

  // Without the axes that neither the other operand nor anything later has.
  LabelledValue sum_out(const LabelledValue& x, const EinsumTerm& other, const std::set<EinsumLabel>& kept) {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < x.term.size(); ++i) {
      if (!has(other, x.term[i]) && kept.count(x.term[i]) == 0) axes.push_back(static_cast<int64_t>(i));
    }
    return {at_axes("ReduceSum", x.value, axes, {{"keepdims", int64_t{0}}}), remaining(x.term, other, kept)};
  }

  LabelledValue order(const LabelledValue& x, const EinsumTerm& term) {
    std::vector<int64_t> perm;
    for (const EinsumLabel label : term)
      perm.push_back(std::find(x.term.begin(), x.term.end(), label) - x.term.begin());
    if (std::is_sorted(perm.begin(), perm.end())) return {x.value, term};
    return {insert("Transpose", {x.value}, {{"perm", perm}}), term};
  }

  // Axes one behind the other, of which `first` stay; each group becomes one axis.
  Value* flatten(const LabelledValue& x, size_t first, const std::vector<EinsumTerm>& groups) {
    std::vector<int64_t> sizes(first, 0);
    std::vector<int64_t> added;
    bool reshapes = false;
    for (const EinsumTerm& group : groups) {
      reshapes = reshapes || group.size() > 1;
      if (group.empty()) added.push_back(static_cast<int64_t>(first + static_cast<size_t>(&group - groups.data())));
    }
    if (!reshapes) return at_axes("Unsqueeze", x.value, added);
    for (const EinsumTerm& group : groups) {
      int64_t size = 1;
      const bool stays = group.size() == 1 && sizes.size() == first && !sizes_.at(group.front()).is_constant();
      for (const EinsumLabel label : group) size *= stays ? 0 : sizes_.at(label).value();
      sizes.push_back(size);
    }
    return insert("Reshape", {x.value, rewriter_.add_ints("sizes", sizes)});
  }

  LabelledValue multiply(const LabelledValue& a, const LabelledValue& b, const ProductAxes& axes) {
    const EinsumTerm outer = axes.outer();
    const size_t batch = axes.batch.size();
    if (axes.summed.empty()) {
      std::vector<int64_t> behind, between;
      for (size_t i = 0; i < axes.columns.size(); ++i)
        behind.push_back(static_cast<int64_t>(outer.size() + axes.rows.size() + i));
      for (size_t i = 0; i < axes.rows.size(); ++i) between.push_back(static_cast<int64_t>(batch + i));
      Value* left = at_axes("Unsqueeze", order(a, joined(outer, axes.rows)).value, behind);
      Value* right = at_axes("Unsqueeze", order(b, joined(axes.batch, axes.columns)).value, between);
      return {insert("Mul", {left, right}), axes.result()};
    }
    const EinsumTerm of_left = joined(axes.lead, axes.batch), of_right = joined(axes.repeated, axes.batch);
    std::vector<int64_t> repeated;
    for (size_t i = 0; i < axes.repeated.size(); ++i) repeated.push_back(static_cast<int64_t>(axes.lead.size() + i));
    Value* left = at_axes(
        "Unsqueeze",
        flatten(order(a, joined(of_left, axes.rows, axes.summed)), of_left.size(), {axes.rows, axes.summed}), repeated);
    Value* right =
        flatten(order(b, joined(of_right, axes.summed, axes.columns)), of_right.size(), {axes.summed, axes.columns});
    return {unflatten(insert("MatMul", {left, right}), outer.size(), {axes.rows, axes.columns}), axes.result()};
  }

  // The other way round.
  Value* unflatten(Value* value, size_t first, const std::vector<EinsumTerm>& groups) {
    std::vector<int64_t> left_out, sizes(first, 0);
    bool reshapes = false;
    for (size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].empty()) left_out.push_back(static_cast<int64_t>(first + i));
      reshapes = reshapes || groups[i].size() > 1;
      for (const EinsumLabel label : groups[i]) {
        const Dim& size = sizes_.at(label);
        sizes.push_back(size.is_constant() ? size.value() : 0);
      }
    }
    return reshapes ? insert("Reshape", {value, rewriter_.add_ints("sizes", sizes)})
                    : at_axes("Squeeze", value, left_out);
  }

  Rewriter& rewriter_;
  const Node& node_;
  std::map<EinsumLabel, Dim> sizes_;
  std::set<EinsumLabel> broadcast_;  // whose sizes may differ
};

bool expand_equations(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "Einsum") continue;
    Value* result = EinsumExpansion(rewriter, *node).run();
    if (result && std::count(node->inputs.begin(), node->inputs.end(), result) == 0)
      rewriter.replace(node->outputs.front(), result);
  }
  return rewriter.finish();
}

}  // namespace

// Einsum becomes products, sums and transpositions, where no operand has an axis twice.
bool expand_einsum(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return expand_equations(g, context); });
}

}  // namespace neo
