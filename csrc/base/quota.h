#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

namespace neo {

// What work on one thread may take: wall time from now on, and bytes of tensors and arenas held at once.
class Quota {
 public:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  // `held_bytes` are taken already. Seconds beyond what a clock can count are no limit.
  Quota(double seconds, int64_t limit_bytes, int64_t held_bytes = 0);

  // A Time error once the time is up.
  void check_time(std::string_view where) const;
  // A Memory error where the bytes do not fit; then nothing is taken.
  void take(int64_t bytes);
  void give(int64_t bytes) noexcept { held_bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  double seconds_;
  int64_t deadline_ns_;
  int64_t limit_bytes_;
  std::atomic<int64_t> held_bytes_;
};

// The quota of this thread; null where there is none.
const std::shared_ptr<Quota>& current_quota();

// Makes a quota this thread's while it lives.
class QuotaScope {
 public:
  explicit QuotaScope(std::shared_ptr<Quota> quota);
  ~QuotaScope();
  QuotaScope(const QuotaScope&) = delete;
  QuotaScope& operator=(const QuotaScope&) = delete;

 private:
  std::shared_ptr<Quota> before_;
};

// Bytes taken from this thread's quota until the end of the charge, for what grows one small piece at a time.
class QuotaCharge {
 public:
  QuotaCharge() : quota_(current_quota()) {}
  QuotaCharge(QuotaCharge&& other) noexcept : quota_(std::move(other.quota_)), bytes_(std::exchange(other.bytes_, 0)) {}
  QuotaCharge& operator=(QuotaCharge&&) = delete;
  ~QuotaCharge() {
    if (quota_) quota_->give(bytes_);
  }
  void add(int64_t bytes) {
    if (!quota_) return;
    quota_->take(bytes);
    bytes_ += bytes;
  }

 private:
  std::shared_ptr<Quota> quota_;
  int64_t bytes_ = 0;
};

// For loops that a model can make long: a Time error once the time of this thread's quota is up.
inline void check_time(std::string_view where) {
  if (const auto& quota = current_quota()) quota->check_time(where);
}

// The memory of this machine: the system grants more than it has and kills whoever touches it.
int64_t machine_bytes();

}  // namespace neo
