#include "routines/gpu/remember.h"

#include <mutex>
#include <unordered_map>

namespace neo::gpu {
namespace {

template <class T>
class Memory {
 public:
  explicit Memory(size_t most) : most_(most) {}

  T get(const std::string& key, FunctionRef<T()> make) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = made_.find(key); found != made_.end()) return found->second;
    }
    T made = make();
    const std::lock_guard lock(mutex_);
    if (made_.size() >= most_) made_.clear();
    made_.emplace(key, made);
    return made;
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::unordered_map<std::string, T> made_;
};

}  // namespace

std::vector<Schedule> remember_schedules(const std::string& key, FunctionRef<std::vector<Schedule>()> search) {
  static Memory<std::vector<Schedule>> memory(4096);
  return memory.get(key, search);
}

kernel::Kernel remember_kernel(const std::string& name, FunctionRef<kernel::Kernel()> build) {
  static Memory<kernel::Kernel> memory(256);
  return memory.get(name, build);
}

}  // namespace neo::gpu
