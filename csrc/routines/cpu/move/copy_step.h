#pragma once

#include <memory>

#include "exec/strided_step.h"
#include "routines/cpu/move/transpose.h"
#include "routines/patterns/copy_plan.h"

namespace neo {

// Transpositions of planes, for the widths of elements that have one.
struct PlaneKernels {
  void (*floats)(const TransposePlane&);
  void (*words)(const WordPlane&);
  void (*bytes)(const BytePlane&);

  void operator()(const TransposePlane& plane) const { floats(plane); }
  void operator()(const WordPlane& plane) const { words(plane); }
  void operator()(const BytePlane& plane) const { bytes(plane); }
};

// A part of no more elements is not worth waking a team.
constexpr int64_t kSerialCopied = 16384;

// Movement by strided copies of elements of a fixed size.
class CopyStep final : public StridedStep {
 public:
  CopyStep(std::unique_ptr<const CopyPattern> pattern, const Target& target);
  bool reads_strides(int) const override { return true; }
  int append_axis() const override { return pattern_->append_axis(); }
  Prepared prepare(std::span<const Arg> args) const override;
  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override;

 private:
  std::unique_ptr<const CopyPattern> pattern_;
  PlaneKernels transpose_;
};

}  // namespace neo
