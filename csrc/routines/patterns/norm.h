#pragma once

#include <optional>
#include <string>

#include "routines/routine.h"

namespace neo {

// Why a value is no tensor of this dtype and of known rank.
std::optional<std::string> reject_value(const Value* v, DType dtype);
// Why a LayerNormalization, RMSNormalization, InstanceNormalization or GroupNormalization is not one of whole rows of
// this dtype.
std::optional<std::string> reject_norm(const Workload& workload, DType dtype);

}  // namespace neo
