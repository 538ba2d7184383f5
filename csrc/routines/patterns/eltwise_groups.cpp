#include "routines/patterns/eltwise_groups.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

#include "routines/patterns/compile_program.h"
#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

// How far a group of elementwise nodes reaches.
enum class GroupReach {
  Shape,     // all of one shape, with nothing read from outside
  Repeats,   // and what codes stand for, which other readers then compute once more
  Products,  // none that a product or a convolution may do to its sums
};

bool is_of_product(const Node& node, const Graph::Users& users, const Graph& graph) {
  constexpr std::string_view kProducts[] = {"MatMul", "Gemm", "Conv"};
  return !match_epilogues(node, kProducts, users, graph).empty();
}

// The largest group of elementwise nodes that ends in `root`.
std::vector<const Node*> grow_group(const Node& root, GroupReach reach, const Graph::Users& users, const Graph& graph) {
  constexpr size_t kMaxNodes = 24;
  std::vector<const Node*> group{&root};
  std::set<const Node*> members{&root};
  const Shape& shape = root.outputs.front()->shape();
  for (bool grown = true; grown;) {
    grown = false;
    for (size_t i = 0; i < group.size() && group.size() < kMaxNodes; ++i) {
      for (const Value* v : group[i]->inputs) {
        const Node* p = v ? v->producer : nullptr;
        if (!p || members.count(p) || !is_eltwise(*p) || !(v->shape() == shape)) continue;
        const bool is_repeated = reach == GroupReach::Repeats && p->op == "DequantizeLinear";
        if (graph.is_output(v) && !is_repeated) continue;
        // A half is rounded where the model says so.
        if (v->dtype() == DType::Float16 || v->dtype() == DType::BFloat16) continue;
        const auto it = users.find(v);
        const bool inside = std::all_of(it->second.begin(), it->second.end(),
                                        [&](const auto& u) { return members.count(u.first) > 0; });
        if (!inside && !is_repeated) continue;
        if (reach == GroupReach::Products && is_of_product(*p, users, graph)) continue;
        group.push_back(p);
        members.insert(p);
        grown = true;
      }
    }
  }
  // Topological order: producers first.
  std::vector<const Node*> order;
  std::set<const Node*> done;
  const std::function<void(const Node*)> visit = [&](const Node* n) {
    if (!done.insert(n).second) return;
    for (const Value* v : n->inputs) {
      if (v && v->producer && members.count(v->producer)) visit(v->producer);
    }
    order.push_back(n);
  };
  visit(&root);
  return order;
}

}  // namespace

std::vector<Workload> match_eltwise(const Node& root, const Graph::Users& users, const Graph& graph) {
  std::vector<Workload> found{Workload::of(root)};
  if (!is_eltwise(root)) return found;
  std::set<size_t> sizes{1};  // one group is a part of another
  for (const GroupReach reach : {GroupReach::Shape, GroupReach::Repeats, GroupReach::Products}) {
    std::vector<const Node*> group = grow_group(root, reach, users, graph);
    if (!sizes.insert(group.size()).second) continue;
    Workload together = Workload::of(std::move(group));
    if (compile_eltwise(together, nullptr)) found.push_back(std::move(together));
  }
  return found;
}

}  // namespace neo
