#pragma once

#include <mutex>

namespace neo {

// A mutex that fork() finds free: the forking thread waits for every holder, and the child may lock it, and trust what
// it guards. For short sections in which no other ForkSafeMutex is taken, made or destroyed, and nothing forks.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ~ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  friend struct ForkGuard;

  std::mutex mutex_;
  ForkSafeMutex* previous_ = nullptr;
  ForkSafeMutex* next_ = nullptr;
};

}  // namespace neo
