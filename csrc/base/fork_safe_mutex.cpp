#include "base/fork_safe_mutex.h"

#include <pthread.h>

#include "base/check.h"

namespace neo {

// Every mutex of the process, in a list whose own mutex is taken first.
struct ForkGuard {
  static ForkGuard& get() {
    static ForkGuard* const guard = new ForkGuard();  // modules may outlive what is destroyed at exit
    return *guard;
  }

  ForkGuard() {
    NEO_CHECK(pthread_atfork(before_fork, after_fork, after_fork) == 0, Resource, "threads",
              "the system must register a fork handler. Got a refusal, expected memory for it");
  }

  static void before_fork() {
    ForkGuard& guard = get();
    guard.mutex.lock();
    for (ForkSafeMutex* m = guard.first; m; m = m->next_) m->mutex_.lock();
  }
  static void after_fork() {
    ForkGuard& guard = get();
    for (ForkSafeMutex* m = guard.first; m; m = m->next_) m->mutex_.unlock();
    guard.mutex.unlock();
  }

  void add(ForkSafeMutex* m) {
    const std::lock_guard lock(mutex);
    m->next_ = first;
    if (first) first->previous_ = m;
    first = m;
  }
  void remove(ForkSafeMutex* m) {
    const std::lock_guard lock(mutex);
    (m->previous_ ? m->previous_->next_ : first) = m->next_;
    if (m->next_) m->next_->previous_ = m->previous_;
  }

  std::mutex mutex;
  ForkSafeMutex* first = nullptr;
};

ForkSafeMutex::ForkSafeMutex() {
  ForkGuard::get().add(this);
}

ForkSafeMutex::~ForkSafeMutex() {
  ForkGuard::get().remove(this);
}

}  // namespace neo
