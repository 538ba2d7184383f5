#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace neo {

// Before which phases the ranges of members may change: first, first + every, ...; before none where every is 0.
// Members that took longer have fewer tasks from then on. A team's next run that may change them begins with the last
// speeds.
struct ShareChanges {
  int64_t first = 0, every = 0;

  bool are_before(int64_t phase) const { return every > 0 && phase >= first && (phase - first) % every == 0; }
};

// The threads that one call may use. The caller is member 0. Implemented by runtime/thread_pool.
//
// A step splits its work into `count` tasks; how many and which is fixed by its schedule, never by the
// team, so the result has the same bits for any team size. Tasks may run in any order on any member.
class Team {
 public:
  using Task = void (*)(void* context, int64_t begin, int64_t end, int member);

  virtual ~Team() = default;
  virtual int size() const = 0;

  // Runs task(context, begin, end, member) over disjoint ranges that cover [0, count); returns when all are done.
  // Never throws for lack of threads. Must not be called from inside a task. Tasks must not throw.
  virtual void run(int64_t count, Task task, void* context) = 0;

  using PhaseTask = void (*)(void* context, int64_t phase, int64_t begin, int64_t end, int member);

  // Runs the phases 0 ... phases - 1 one after another. Each begins when all tasks of the one before are done, whose
  // writes it sees, and calls the task with ranges that cover [0, count): the same ones in every phase until `changes`
  // says otherwise, each for the same member while that keeps up, so that what it reads again stays in its own caches.
  // Others take over from a member that is late. For short phases.
  virtual void run_phases(int64_t phases, int64_t count, ShareChanges, PhaseTask task, void* context) {
    const int64_t parts = std::min<int64_t>(count, size());
    for (int64_t phase = 0; phase < phases; ++phase) {
      parallel_for(parts, [&](int64_t begin, int64_t end, int member) {
        for (int64_t i = begin; i < end; ++i) task(context, phase, count * i / parts, count * (i + 1) / parts, member);
      });
    }
  }

  // f(phase, begin, end, member)
  template <class F>
  void parallel_phases(int64_t phases, int64_t count, F&& f, ShareChanges changes = {}) {
    using Body = std::remove_reference_t<F>;
    run_phases(
        phases, count, changes,
        [](void* context, int64_t phase, int64_t begin, int64_t end, int member) {
          (*static_cast<Body*>(context))(phase, begin, end, member);
        },
        const_cast<void*>(static_cast<const void*>(&f)));
  }

  // f(begin, end, member)
  template <class F>
  void parallel_for(int64_t count, F&& f) {
    using Body = std::remove_reference_t<F>;
    run(
        count,
        [](void* context, int64_t begin, int64_t end, int member) {
          (*static_cast<Body*>(context))(begin, end, member);
        },
        const_cast<void*>(static_cast<const void*>(&f)));
  }
};

// A team of the calling thread alone.
class SerialTeam final : public Team {
 public:
  int size() const override { return 1; }
  void run(int64_t count, Task task, void* context) override {
    if (count > 0) task(context, 0, count, 0);
  }
};

}  // namespace neo
