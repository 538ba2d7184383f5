#include <algorithm>

#include "ops/infer.h"

namespace neo {

int64_t longest_reduction(const Graph& graph, const OpRegistry& ops) {
  int64_t longest = 1;
  for (const auto& node : graph.nodes()) {
    for (const auto& [name, body] : node->bodies) longest = std::max(longest, longest_reduction(*body, ops));
    const Op* op = ops.find(node->op);
    if (!op || !op->work || node->outputs.empty() || !node->outputs.front()) continue;
    const Value* out = node->outputs.front();
    if (!out->type.is_tensor() || !out->shape().has_rank()) continue;
    const int64_t elements = std::max<int64_t>(1, out->shape().element_count().hint());
    longest = std::max(longest, op->work(*node).flops.hint() / (2 * elements));
  }
  return longest;
}

}  // namespace neo
