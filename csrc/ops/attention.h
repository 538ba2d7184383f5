#pragma once

#include "ops/op.h"

// Parts of the attention family.

namespace neo {

// Scores of one query as probabilities; all zero when no key is seen. With a precision, scores and probabilities are
// rounded to it; Undefined: not at all.
void softmax_scores(std::vector<double>& scores, bool seen, DType precision);

}  // namespace neo
