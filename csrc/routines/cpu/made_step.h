#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/fork_safe_mutex.h"
#include "exec/step.h"

namespace neo {

// The kernel step that a host step makes for numbers which only a call tells. The last one is kept.
class MadeStep {
 public:
  // Runs the step from `x` to `y`. `make` gives it where the numbers or the sizes of x and y are not those of the call
  // before; it depends on nothing else.
  void run(std::vector<int64_t> numbers, const Tensor& x, const Tensor& y, Team& team,
           const std::function<std::unique_ptr<KernelStep>()>& make) const;

 private:
  struct Made {
    std::vector<int64_t> key;
    std::unique_ptr<KernelStep> step;
    Prepared prepared;
  };

  mutable ForkSafeMutex mutex_;
  mutable std::shared_ptr<const Made> last_;
};

}  // namespace neo
