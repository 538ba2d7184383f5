#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/spin.h"

namespace neo {

// A word on which a thread sleeps.
using StateWord = std::atomic<uint32_t>;
static_assert(sizeof(StateWord) == sizeof(uint32_t) && StateWord::is_always_lock_free, "a word is a futex");

// Returns when woken, when the word is another one, after `timeout_us` where that is positive, or without a reason.
void sleep_while(StateWord& word, uint32_t value, int64_t timeout_us = 0);
void wake_sleeper(StateWord& word);

// Polls until is_done() or until the time is over; whether it was done.
template <class IsDone>
bool poll(int64_t spin_us, IsDone&& is_done) {
  constexpr int kPollsPerLook = 32;
  if (is_done()) return true;
  if (spin_us <= 0) return false;
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(spin_us);
  do {
    for (int i = 0; i < kPollsPerLook; ++i) {
      pause_briefly();
      if (is_done()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace neo
