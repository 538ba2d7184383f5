#pragma once

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

}  // namespace neo
