#pragma once

#include "exec/step.h"

namespace neo {

// A host step that may share its work among the threads of the call.
class TeamHostStep : public HostStep {
 public:
  virtual void run_with(std::span<const HostValue> inputs, std::span<HostValue> outputs, Team& team) const = 0;
  void run(std::span<const HostValue> inputs, std::span<HostValue> outputs) const final {
    SerialTeam alone;
    run_with(inputs, outputs, alone);
  }
};

}  // namespace neo
