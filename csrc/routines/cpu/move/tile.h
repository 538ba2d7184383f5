#pragma once

#include "exec/step.h"

namespace neo {

// A tensor repeated along its axes. The result is made from the inside out: a block of some axes that is there is
// copied behind itself.
class TileStep final : public KernelStep {
 public:
  Prepared prepare(std::span<const Arg> args) const override;
  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override;
};

// Rows that are copied one by one, of an input and a result of some sizes.
int64_t tiled_rows(const Dims& from, const Dims& to);

}  // namespace neo
