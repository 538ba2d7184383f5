#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

#include "base/check.h"

namespace neo::capi {

// A number that no other handle of this process has or had.
inline uintptr_t next_handle() {
  static std::atomic<uintptr_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed) << 4;
}

// The objects behind the handles of one type. A handle is a number in the place of a pointer: it is looked up, never
// followed, so one that was released or invented is an error like any other.
template <class Handle, class Object>
class Handles {
 public:
  Handle* give_out(std::shared_ptr<Object> object) {
    const uintptr_t number = next_handle();
    const std::unique_lock lock(mutex_);
    objects_.emplace(number, std::move(object));
    return reinterpret_cast<Handle*>(number);
  }

  // The object lives on for as long as it is held. `what`: "a module".
  std::shared_ptr<Object> get(const Handle* handle, std::string_view where, std::string_view what) const {
    {
      const std::shared_lock lock(mutex_);
      const auto it = objects_.find(reinterpret_cast<uintptr_t>(handle));
      if (it != objects_.end()) return it->second;
    }
    refuse(handle, where, what);
  }

  void release(Handle* handle, std::string_view where, std::string_view what) {
    if (!handle) return;
    std::shared_ptr<Object> object;  // ends without the lock
    {
      const std::unique_lock lock(mutex_);
      const auto it = objects_.find(reinterpret_cast<uintptr_t>(handle));
      if (it != objects_.end()) {
        object = std::move(it->second);
        objects_.erase(it);
      }
    }
    if (!object) refuse(handle, where, what);
  }

 private:
  [[noreturn]] static void refuse(const Handle* handle, std::string_view where, std::string_view what) {
    fail(ErrorKind::Model, where,
         str(what, " must be a handle that was given out and not released. Got ", handle ? "another" : "NULL"));
  }

  mutable std::shared_mutex mutex_;
  std::unordered_map<uintptr_t, std::shared_ptr<Object>> objects_;
};

}  // namespace neo::capi
