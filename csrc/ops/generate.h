#pragma once

#include "ops/op.h"

namespace neo {

// How many numbers a Range has; a Shape error where that is not finite.
int64_t range_count(double start, double limit, double delta);
int64_t range_count(int64_t start, int64_t limit, int64_t delta);

}  // namespace neo
