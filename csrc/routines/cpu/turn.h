#pragma once

#include <atomic>

namespace neo {

// Whether a call of a step goes backwards through its weights: every other one does, for the caches have what the one
// before read last. Calls at the same time may both go one way, which changes no result.
class Turn {
 public:
  bool next() const {
    const bool turn = !now();
    backwards_.store(turn, std::memory_order_relaxed);
    return turn;
  }
  bool now() const { return backwards_.load(std::memory_order_relaxed); }

 private:
  mutable std::atomic<bool> backwards_ = true;
};

}  // namespace neo
