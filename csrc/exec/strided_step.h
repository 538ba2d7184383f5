#pragma once

#include <optional>

#include "exec/step.h"

namespace neo {

// A kernel step that can work on parts of a longer memory: what a value lies in that grows (exec/growth.h).
class StridedStep : public KernelStep {
 public:
  // Whether argument `input` may have any strides.
  virtual bool reads_strides(int input) const = 0;
  // The axis along which it puts its other inputs behind its first; -1: it does something else. Its output may then
  // have any strides, and a first input without elements leaves the rest to be written.
  virtual int append_axis() const { return -1; }
};

// A host step that may gather whole parts of a tensor that grows.
class GatherStep : public HostStep {
 public:
  // The axis, maybe counted from the end, of its first input along which its second says what it gives; none: it does
  // something else.
  virtual std::optional<int64_t> gathered_axis() const = 0;
};

}  // namespace neo
