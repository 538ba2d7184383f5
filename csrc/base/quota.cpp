#include "base/quota.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/check.h"

namespace neo {
namespace {

thread_local std::shared_ptr<Quota> current;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t deadline(double seconds) {
  constexpr double kMostSeconds = 1e9;
  return seconds < kMostSeconds ? now_ns() + static_cast<int64_t>(seconds * 1e9) : Quota::kNoLimit;
}

}  // namespace

Quota::Quota(double seconds, int64_t limit_bytes, int64_t held_bytes)
    : seconds_(seconds), deadline_ns_(deadline(seconds)), limit_bytes_(limit_bytes), held_bytes_(held_bytes) {
  NEO_ASSERT(seconds >= 0 && limit_bytes >= 0, "for a quota. Got ", seconds, " s, ", limit_bytes, " bytes");
}

void Quota::check_time(std::string_view where) const {
  NEO_CHECK(deadline_ns_ == kNoLimit || now_ns() <= deadline_ns_, Time, where,
            "compiling must end within its limit of ", seconds_,
            " s. Got more\nHint: neo.Limits(seconds=...) sets the limit.");
}

void Quota::take(int64_t bytes) {
  int64_t held = held_bytes_.load(std::memory_order_relaxed);
  do {
    NEO_CHECK(bytes <= limit_bytes_ - held, Memory, "memory", "tensors must fit the limit of ", limit_bytes_,
              " bytes. Got ", bytes, " bytes more than the ", held,
              " that are held\nHint: neo.Limits(memory=...) sets the limit.");
  } while (!held_bytes_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
}

const std::shared_ptr<Quota>& current_quota() {
  return current;
}

QuotaScope::QuotaScope(std::shared_ptr<Quota> quota) : before_(std::exchange(current, std::move(quota))) {}

QuotaScope::~QuotaScope() {
  current = std::move(before_);
}

int64_t machine_bytes() {
  static const int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return bytes;
}

}  // namespace neo
