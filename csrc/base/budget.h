#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace neo {

// The memory and time that loading a module, and later any one call of it, may take.
struct Quota {
  std::optional<int64_t> bytes;   // held at once; none: what the system has free
  std::optional<double> seconds;  // none: any time
};

// The memory that one load or call holds, and its deadline. Any thread may give memory back, all else is for the
// thread that it is current on.
class Budget {
 public:
  // `before`: one whose polls this one goes on with; may be null.
  explicit Budget(const Quota& quota = {}, const Budget* before = nullptr);

  // Begins anew with `held` bytes. `cancelled` and `poll` may be null and are for checkpoint().
  void start(int64_t held, const std::atomic<bool>* cancelled, const std::function<void()>* poll);
  const Quota& quota() const { return quota_; }

  // Counts memory before it is allocated; a Memory error beyond the limit.
  void take(int64_t bytes);
  void give(int64_t bytes) noexcept { held_.fetch_sub(bytes, std::memory_order_relaxed); }
  int64_t held() const { return held_.load(std::memory_order_relaxed); }

  // A Cancelled error when the caller said so, a Time error when the time is up. Polls every 50 ms or so; what that
  // throws goes through.
  void checkpoint() {
    if (is_over_.load(std::memory_order_relaxed) || (cancelled_ && cancelled_->load(std::memory_order_relaxed)))
      fail_late();
    if ((poll_ || quota_.seconds) && --until_clock_ <= 0) look_at_clock();
  }

  // The same test for a thread that works for the current one, and must not throw. Once true it stays so.
  bool is_over() noexcept;

  // The budget of what this thread does; null: none.
  static const std::shared_ptr<Budget>& current();

 private:
  friend class BudgetScope;
  void look_at_clock();
  [[noreturn]] void fail_late() const;

  Quota quota_;
  std::atomic<int64_t> held_{0};
  int64_t asked_from_ = 0;               // beyond this the system is asked for what it has
  std::optional<int64_t> system_bytes_;  // what it had
  const std::atomic<bool>* cancelled_ = nullptr;
  const std::function<void()>* poll_ = nullptr;
  int64_t deadline_ns_ = 0;
  int64_t last_poll_ns_ = 0;
  int until_clock_ = 0;
  std::atomic<bool> is_over_{false};
};

// Makes a budget the current one of this thread while it lives.
class BudgetScope {
 public:
  explicit BudgetScope(std::shared_ptr<Budget> budget);
  BudgetScope(const BudgetScope&) = delete;
  BudgetScope& operator=(const BudgetScope&) = delete;
  ~BudgetScope();

 private:
  std::shared_ptr<Budget> outer_;
};

// Counts memory against the current budget. Without one, blocks that the system has not are refused.
void take_memory(int64_t bytes);
// That so much could be taken now, for what is given back soon.
void require_memory(int64_t bytes);
// An array for a while, of a length that a model may say: required before it is allocated. A length that wrapped is
// more than there is.
template <class T>
std::vector<T> make_scratch(int64_t count, const T& value = T()) {
  constexpr int64_t kMax = int64_t{1} << 60, kItem = static_cast<int64_t>(sizeof(T));
  require_memory(count < 0 || count > kMax / kItem ? kMax : count * kItem);
  return std::vector<T>(static_cast<size_t>(count), value);
}
// Called by loops whose number of rounds a model says: Budget::checkpoint() of the current one.
void checkpoint();

// Bytes that the system and the control groups of this process would still grant; none where they do not say.
std::optional<int64_t> free_memory_bytes();

}  // namespace neo
