#pragma once

#include <memory>

#include "exec/step.h"
#include "routines/cpu/move/transpose.h"
#include "routines/patterns/copy_plan.h"

namespace neo {

// Movement by strided copies of elements of a fixed size.
class CopyStep final : public KernelStep {
 public:
  CopyStep(std::unique_ptr<const CopyPattern> pattern, const Target& target);
  Prepared prepare(std::span<const Arg> args) const override;
  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override;

 private:
  std::unique_ptr<const CopyPattern> pattern_;
  void (*transpose_)(const TransposePlane&);
};

}  // namespace neo
