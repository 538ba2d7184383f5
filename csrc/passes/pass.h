#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace neo {

// Bytes by which folded constants may be larger than what they are made of, in all of a run of passes.
inline constexpr int64_t kMaxFoldedBytes = int64_t{1} << 28;

// Groups of a convolution that may become a node each.
inline constexpr int64_t kMaxSplitGroups = 16;

// The arguments of passes. `evaluate` runs one node on constants; injected, for passes do not depend on how.
// `keep_codes`: constants that a DequantizeLinear reads stay codes.
struct PassContext {
  const OpRegistry& ops;
  std::function<std::vector<HostValue>(const Node&, std::span<const HostValue>)> evaluate;
  bool keep_codes = false;
  // The rest of kMaxFoldedBytes; shared by the copies of a context.
  std::shared_ptr<int64_t> foldable_bytes = std::make_shared<int64_t>(kMaxFoldedBytes);
};

// A pass changes a graph in place, bodies included unless it says otherwise, and says whether it did anything. Types of
// values it makes are inferred before it returns.
struct Pass {
  std::string_view name;
  bool (*run)(Graph&, const PassContext&);
};

// The pipeline, one page: pipeline.cpp.
std::span<const Pass> standard_pipeline();

// Told after each pass: printing, timing and verifying hang on here.
using PassObserver = std::function<void(const Pass&, const Graph&, bool changed)>;

// In order, again and again until none of them changes anything (or a bound, which only a loop of passes would reach).
void run_passes(Graph& graph, std::span<const Pass> passes, const PassContext& context,
                const PassObserver& observer = {});

// The standard context: evaluation by the ops' references.
PassContext reference_context(const OpRegistry& ops);

// Passes, one file each.
bool fold_constants(Graph& graph, const PassContext& context);
bool fold_shapes(Graph& graph, const PassContext& context);
bool inline_branches(Graph& graph, const PassContext& context);
bool refine_ranks(Graph& graph, const PassContext& context);
bool settle_sizes(Graph& graph, const PassContext& context);
bool remove_dead_nodes(Graph& graph, const PassContext& context);
bool merge_common_nodes(Graph& graph, const PassContext& context);
bool remove_identities(Graph& graph, const PassContext& context);
bool split_reductions(Graph& graph, const PassContext& context);
bool binarize_sum(Graph& graph, const PassContext& context);
bool expand_deform_conv(Graph& graph, const PassContext& context);
bool expand_double_convs(Graph& graph, const PassContext& context);
bool expand_einsum(Graph& graph, const PassContext& context);
bool expand_attention(Graph& graph, const PassContext& context);
bool expand_losses(Graph& graph, const PassContext& context);
bool expand_normalizations(Graph& graph, const PassContext& context);
bool fold_scales(Graph& graph, const PassContext& context);
bool fold_batch_norms(Graph& graph, const PassContext& context);
bool fold_biases(Graph& graph, const PassContext& context);
bool split_groups(Graph& graph, const PassContext& context);
bool split_volumes(Graph& graph, const PassContext& context);
bool gather_frames(Graph& graph, const PassContext& context);
bool fold_clamps(Graph& graph, const PassContext& context);
bool fold_pads(Graph& graph, const PassContext& context);
bool eliminate_transposes(Graph& graph, const PassContext& context);
bool eliminate_reshapes(Graph& graph, const PassContext& context);
bool check_sequence_lengths(Graph& graph, const PassContext& context);
bool accumulate_concats(Graph& graph, const PassContext& context);
bool interleave_concats(Graph& graph, const PassContext& context);
bool normalize_quantization(Graph& graph, const PassContext& context);
bool flip_transposed_convs(Graph& graph, const PassContext& context);
bool merge_parallel_convs(Graph& graph, const PassContext& context);
bool merge_covered_axes(Graph& graph, const PassContext& context);
bool multiply_single_pixels(Graph& graph, const PassContext& context);
bool multiply_patches(Graph& graph, const PassContext& context);
bool thin_single_taps(Graph& graph, const PassContext& context);
bool swap_pool_and_pointwise(Graph& graph, const PassContext& context);
bool recognize_activations(Graph& graph, const PassContext& context);
bool recognize_cells(Graph& graph, const PassContext& context);
bool join_steps(Graph& graph, const PassContext& context);
bool join_slices(Graph& graph, const PassContext& context);
bool turn_loops_into_scans(Graph& graph, const PassContext& context);
bool lift_from_scans(Graph& graph, const PassContext& context);
bool split_scans(Graph& graph, const PassContext& context);
bool recognize_normalizations(Graph& graph, const PassContext& context);
bool recognize_pools(Graph& graph, const PassContext& context);
bool require_exact_sums(Graph& graph, const PassContext& context);
bool widen_halves(Graph& graph, const PassContext& context);

// For passes that work on one graph: applies `run` to the graph and to every body inside it.
bool for_each_body(Graph& graph, const std::function<bool(Graph&)>& run);

}  // namespace neo
