#include "base/budget.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/topology.h"

namespace neo {
namespace {

// The system is asked for its free memory only by those that hold so much, since asking takes tens of microseconds.
constexpr int64_t kUnaskedBytes = int64_t{64} << 20;
constexpr int kChecksPerClock = 16;
constexpr int64_t kPollNs = 50'000'000;

thread_local std::shared_ptr<Budget> current_budget;

[[noreturn]] void fail_memory(int64_t bytes, int64_t held, int64_t limit, std::string_view whose) {
  fail(ErrorKind::Memory, "memory",
       str("memory must stay within ", whose, ". Got ", bytes, " bytes more than the ", held,
           " that are held, expected at most ", limit, " in all"));
}

}  // namespace

Budget::Budget(const Quota& quota, const Budget* before) : quota_(quota) {
  until_clock_ = before ? before->until_clock_ : kChecksPerClock;
  last_poll_ns_ = before ? before->last_poll_ns_ : 0;
  start(0, nullptr, nullptr);
}

void Budget::start(int64_t held, const std::atomic<bool>* cancelled, const std::function<void()>* poll) {
  held_.store(held, std::memory_order_relaxed);
  asked_from_ = held > INT64_MAX - kUnaskedBytes ? held : held + kUnaskedBytes;
  system_bytes_.reset();
  cancelled_ = cancelled;
  poll_ = poll;
  is_over_.store(false, std::memory_order_relaxed);
  if (quota_.seconds) {
    const double ns = *quota_.seconds * 1e9;
    const int64_t now = steady_now_ns();
    until_clock_ = 1;
    deadline_ns_ = ns < 9e18 - static_cast<double>(now) ? now + static_cast<int64_t>(ns) : INT64_MAX;
  }
}

void Budget::take(int64_t bytes) {
  const int64_t held = this->held();
  int64_t sum = 0;
  const bool overflows = __builtin_add_overflow(held, bytes, &sum);
  if (quota_.bytes && (overflows || sum > *quota_.bytes)) fail_memory(bytes, held, *quota_.bytes, "its limit");
  if (overflows || sum > asked_from_) {
    if (!system_bytes_) {
      // Held memory has been granted already, and most of it was touched.
      const int64_t free = free_memory_bytes().value_or(INT64_MAX);
      system_bytes_ = free > INT64_MAX - held ? INT64_MAX : held + free;
    }
    if (overflows || sum > *system_bytes_) fail_memory(bytes, held, *system_bytes_, "what the system has free");
  }
  held_.fetch_add(bytes, std::memory_order_relaxed);
}

void Budget::fail_late() const {
  NEO_CHECK(!cancelled_ || !cancelled_->load(std::memory_order_relaxed), Cancelled, "run",
            "the call was cancelled. Got cancel(), expected none");
  fail(ErrorKind::Time, "limit",
       str("compiling, loading and each call must end in time. Got longer, expected at most ", *quota_.seconds, " s"));
}

void Budget::look_at_clock() {
  const int64_t now = steady_now_ns();
  if (quota_.seconds && now >= deadline_ns_) {
    is_over_.store(true, std::memory_order_relaxed);
    fail_late();
  }
  const bool is_due = poll_ && now - last_poll_ns_ >= kPollNs;
  // Checks that lie far apart look at the clock every time, and so does one with a deadline.
  until_clock_ = is_due || quota_.seconds ? 1 : kChecksPerClock;
  if (!is_due) return;
  last_poll_ns_ = now;
  (*poll_)();
}

bool Budget::is_over() noexcept {
  if (is_over_.load(std::memory_order_relaxed)) return true;
  if ((cancelled_ && cancelled_->load(std::memory_order_relaxed)) ||
      (quota_.seconds && steady_now_ns() >= deadline_ns_)) {
    is_over_.store(true, std::memory_order_relaxed);
    return true;
  }
  return false;
}

const std::shared_ptr<Budget>& Budget::current() {
  return current_budget;
}

BudgetScope::BudgetScope(std::shared_ptr<Budget> budget) : outer_(std::exchange(current_budget, std::move(budget))) {}

BudgetScope::~BudgetScope() {
  current_budget = std::move(outer_);
}

void take_memory(int64_t bytes) {
  if (Budget* budget = current_budget.get()) {
    budget->take(bytes);
  } else if (bytes > kUnaskedBytes) {
    const int64_t free = free_memory_bytes().value_or(INT64_MAX);
    if (bytes > free) fail_memory(bytes, 0, free, "what the system has free");
  }
}

void require_memory(int64_t bytes) {
  take_memory(bytes);
  if (Budget* budget = current_budget.get()) budget->give(bytes);
}

void checkpoint() {
  if (Budget* budget = current_budget.get()) budget->checkpoint();
}

std::optional<int64_t> free_memory_bytes() {
  return read_free_bytes("");
}

}  // namespace neo
