#pragma once

#include <optional>
#include <string>
#include <vector>

#include "routines/routine.h"

namespace neo {

// An operand or the result of an attention as the group reads or writes it: axis i of the matrices is axis order[i] of
// the value's.
struct AttentionOperand {
  const Value* value = nullptr;
  std::vector<int> order;
  int repeated_axis = -1;  // of the matrices, a batch axis, each position of which stands for `repeats` in a row; or -1
  int64_t repeats = 1;

  int rank() const { return static_cast<int>(order.size()); }
  const Dim& dim(int axis) const { return value->shape()[order[static_cast<size_t>(axis)]]; }
};

// A change of the scores before the softmax: a tensor is added, or a number is put where a condition says so.
struct ScoreTerm {
  const Value* value = nullptr;  // broadcast to the scores, but along the keys
  bool is_condition = false;
  bool fills_where = true;  // the condition holds, not where it does not
  float number = 1.0f;      // times the tensor; or the number that is put
};
constexpr int kMaxScoreTerms = 2;

// A group softmax(scale q k + terms) v, with the transposes and the constant factors around it.
struct AttentionProblem {
  AttentionOperand q;  // [..., queries, size]
  AttentionOperand k;  // [..., size, keys]
  AttentionOperand v;  // [..., keys, value size]
  AttentionOperand y;  // [..., queries, value size]
  float scale = 1.0f;
  std::vector<ScoreTerm> terms;  // in the order of their work
  bool nan_is_zero = false;      // a row of probabilities that are NaN, as of a query without keys, counts as zeros
};

// The ops that such groups end in, and these groups.
std::vector<std::string_view> attention_roots();
std::vector<Workload> match_attention(const Node& root, const Graph::Users& users, const Graph& graph);

// None, with the reason, where no routine takes it.
std::optional<AttentionProblem> read_attention(const Workload& workload, std::string* why);

}  // namespace neo
