#include "base/budget.h"
#include "ops/infer.h"
#include "passes/pass.h"

namespace neo {
namespace {

// Rounds at most: one pass makes another's pattern; few models change in a third round.
constexpr int kMaxRounds = 6;

}  // namespace

// From the graph of an exporter to one for neo's routines. Order matters: one float type first, then constants and
// shapes, so that the rest sees numbers; recognition before folding, so that patterns are whole; folds of neighbours
// last. They run in rounds until nothing changes.
std::span<const Pass> standard_pipeline() {
  static const Pass passes[] = {
      {"widen_halves", widen_halves},
      {"fold_constants", fold_constants},
      {"settle_sizes", settle_sizes},
      {"fold_shapes", fold_shapes},
      {"inline_branches", inline_branches},
      {"refine_ranks", refine_ranks},
      {"remove_identities", remove_identities},
      {"remove_dead_nodes", remove_dead_nodes},
      {"merge_common_nodes", merge_common_nodes},
      {"binarize_sum", binarize_sum},
      {"expand_einsum", expand_einsum},
      {"expand_deform_conv", expand_deform_conv},
      {"expand_attention", expand_attention},
      {"expand_losses", expand_losses},
      {"check_sequence_lengths", check_sequence_lengths},
      {"normalize_quantization", normalize_quantization},
      {"recognize_activations", recognize_activations},
      {"recognize_normalizations", recognize_normalizations},
      {"turn_loops_into_scans", turn_loops_into_scans},
      {"recognize_cells", recognize_cells},
      {"join_steps", join_steps},
      {"join_slices", join_slices},
      {"lift_from_scans", lift_from_scans},
      {"split_scans", split_scans},
      {"eliminate_reshapes", eliminate_reshapes},
      {"eliminate_transposes", eliminate_transposes},
      {"recognize_pools", recognize_pools},
      {"split_reductions", split_reductions},
      {"flip_transposed_convs", flip_transposed_convs},
      {"swap_pool_and_pointwise", swap_pool_and_pointwise},
      {"accumulate_concats", accumulate_concats},
      {"interleave_concats", interleave_concats},
      {"fold_pads", fold_pads},
      {"fold_batch_norms", fold_batch_norms},
      {"merge_parallel_convs", merge_parallel_convs},
      {"expand_normalizations", expand_normalizations},
      {"fold_scales", fold_scales},
      {"fold_biases", fold_biases},
      {"thin_single_taps", thin_single_taps},
      {"merge_covered_axes", merge_covered_axes},
      {"expand_double_convs", expand_double_convs},
      {"fold_clamps", fold_clamps},
      {"split_volumes", split_volumes},
      {"multiply_single_pixels", multiply_single_pixels},
      {"require_exact_sums", require_exact_sums},
  };
  return passes;
}

bool for_each_body(Graph& graph, const std::function<bool(Graph&)>& run) {
  bool changed = run(graph);
  for (const auto& node : graph.nodes()) {
    for (auto& [name, body] : node->bodies) changed = for_each_body(*body, run) || changed;
  }
  return changed;
}

void run_passes(Graph& graph, std::span<const Pass> passes, const PassContext& context, const PassObserver& observer) {
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    changed = false;
    for (const Pass& pass : passes) {
      checkpoint();
      const bool did = pass.run(graph, context);
      if (observer) observer(pass, graph, did);
      changed = changed || did;
    }
  }
}

PassContext reference_context(const OpRegistry& ops) {
  return {ops, [&ops](const Node& node, std::span<const HostValue> inputs) { return evaluate_node(node, ops, inputs); },
          false};
}

}  // namespace neo
