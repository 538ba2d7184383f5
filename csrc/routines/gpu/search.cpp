#include "routines/gpu/search.h"

#include <mutex>
#include <unordered_map>

#include "base/check.h"

namespace neo::gpu {
namespace {

constexpr size_t kMostRemembered = 4096;

struct Memory {
  std::mutex mutex;
  std::unordered_map<std::string, std::optional<Schedule>> schedules;
};

Memory& memory() {
  static Memory all;
  return all;
}

}  // namespace

std::optional<Schedule> remember_schedule(const std::string& key,
                                          const std::function<std::optional<Schedule>()>& search) {
  Memory& m = memory();
  {
    const std::lock_guard lock(m.mutex);
    if (const auto found = m.schedules.find(key); found != m.schedules.end()) return found->second;
  }
  std::optional<Schedule> found = search();
  const std::lock_guard lock(m.mutex);
  if (m.schedules.size() >= kMostRemembered) m.schedules.clear();
  m.schedules.emplace(key, found);
  return found;
}

std::string key_of(const DeviceModel& m) {
  return str(m.name, " ", m.gflops, " ", m.gbps, " ", m.launch_us, " ", m.matrix_gflops);
}

}  // namespace neo::gpu
