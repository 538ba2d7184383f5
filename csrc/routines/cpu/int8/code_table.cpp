#include "routines/cpu/int8/code_table.h"

#include "routines/cpu/tier.h"

namespace neo {

CodeTable::CodeTable(const CodeFunction& function, const Target& target, const OpRegistry& ops, PackedStore& packed)
    : kernels_(NEO_PICK_TIER(target.isa, codes_kernels)()) {
  table_ = packed.floats(kCodeTable / 4, {},
                         [&](float* to) { fill_code_table(function, ops, reinterpret_cast<uint8_t*>(to)); });
}

void CodeTable::apply(const uint8_t* x, uint8_t* y, int64_t count) const {
  kernels_.look_up(reinterpret_cast<const uint8_t*>(table_.as<float>()), x, y, count);
}

void CodeTable::apply(uint8_t* y, int64_t pixels, int64_t lanes, int64_t valid) const {
  apply(y, y, pixels * lanes);
  if (valid < lanes) kernels_.clear_lanes(y, pixels, valid);
}

}  // namespace neo
