#include <algorithm>
#include <array>

#include "passes/rewriter.h"

namespace neo {
namespace {

constexpr size_t kSequenceLengths = 4;
constexpr std::array<std::string_view, 4> kLayers = {"LSTM", "GRU", "RNN", "com.microsoft.DynamicQuantizeLSTM"};

// Whether constant lengths are those of sequences in X; none where only a call tells.
std::optional<bool> are_lengths(const Value& lengths, const Dim& steps, const Dim& batch) {
  if (!lengths.constant || lengths.constant->is_absent() || !steps.is_constant()) return std::nullopt;
  const auto given = load_ints(*lengths.constant);
  return lengths.dtype() == DType::Int32 && batch.is(static_cast<int64_t>(given.size())) &&
         std::all_of(given.begin(), given.end(), [&](int64_t n) { return n >= 0 && n <= steps.value(); });
}

// Whether a node has looked at the lengths for this layer.
bool looks_at(const Node* checker, const Node& layer) {
  return checker && checker->op == "neo.SequenceLengths" && checker->input(1) == layer.input(0) &&
         checker->int_attr("layout", 0) == layer.int_attr("layout", 0);
}

bool check_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  bool changed = false;
  for (Node* node : rewriter.nodes()) {
    if (std::find(kLayers.begin(), kLayers.end(), node->op) == kLayers.end()) continue;
    Value* lengths = node->input(kSequenceLengths);
    const Value* x = node->input(0);
    if (!lengths || !x->type.is_tensor() || !x->shape().has_rank()) continue;
    const bool batch_first = node->int_attr("layout", 0) != 0;
    const Dim &steps = x->shape()[batch_first ? 1 : 0], &batch = x->shape()[batch_first ? 0 : 1];
    const std::optional<bool> fits = are_lengths(*lengths, steps, batch);
    // A model may have the attribute, too.
    const bool is_checked = fits.value_or(false) || looks_at(lengths->producer, *node);
    if (is_checked && node->has_attr("checked_lengths")) continue;
    changed = true;
    if (!is_checked) {
      Value* checked = rewriter.insert(node, "neo.SequenceLengths", {lengths, node->input(0)},
                                       {{"layout", node->int_attr("layout", 0)}}, lengths->name);
      rewriter.set_input(node, kSequenceLengths, checked);
    } else if (fits.value_or(false)) {
      const auto given = load_ints(*lengths->constant);
      const auto is_whole = [&](int64_t n) { return n == steps.value(); };
      if (std::all_of(given.begin(), given.end(), is_whole)) {
        rewriter.set_input(node, kSequenceLengths, nullptr);
        continue;
      }
    }
    node->attrs["checked_lengths"] = int64_t{1};
  }
  return rewriter.finish() || changed;
}

}  // namespace

// The lengths of a recurrent layer's sequences are looked at by a node of its own, which may fail; the layer's
// attribute `checked_lengths` says that it need not. As long as X are sequences that have no lengths.
bool check_sequence_lengths(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return check_in_body(g, context); });
}

}  // namespace neo
