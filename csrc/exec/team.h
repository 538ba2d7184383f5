#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace neo {

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

  // Runs the phases 0 ... phases - 1 one after another. Each covers [0, count) like run() and begins when all tasks of
  // the one before are done, whose writes it sees. A member has the same range in every phase while it keeps up, so
  // what it reads again stays in its own caches; others take over from a member that is late. For short phases.
  virtual void run_phases(int64_t phases, int64_t count, PhaseTask task, void* context) {
    for (int64_t phase = 0; phase < phases; ++phase) {
      parallel_for(count, [&](int64_t begin, int64_t end, int member) { task(context, phase, begin, end, member); });
    }
  }

  // f(phase, begin, end, member)
  template <class F>
  void parallel_phases(int64_t phases, int64_t count, F&& f) {
    using Body = std::remove_reference_t<F>;
    run_phases(
        phases, count,
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
