#pragma once

#include <algorithm>
#include <cstdint>

#include "exec/team.h"
#include "routines/cpu/gemm/split.h"

namespace neo {

// How the tasks of a step are handed to a team. Fixed by the step's shapes.
struct TaskSplit {
  int64_t tasks = 0;
  int64_t workspaces = 0;  // pieces of scratch memory that the tasks use; 0: they need none
  bool serial = false;     // the calling thread alone is faster than waking others

  // `arithmetic` is the number of operations that all tasks do together.
  static TaskSplit of(int64_t tasks, int64_t arithmetic, bool needs_workspace = false) {
    constexpr int64_t kSerialOperations = 400000;
    constexpr int64_t kMaxWorkspaces = 48;
    return {tasks, needs_workspace ? std::min(tasks, kMaxWorkspaces) : 0, tasks <= 1 || arithmetic < kSerialOperations};
  }
};

// f(begin, end, workspace): tasks [begin, end) with a workspace that no other task uses meanwhile.
template <class F>
void run_tasks(Team& team, const TaskSplit& split, F&& f) {
  if (split.serial) {
    if (split.tasks > 0) f(int64_t{0}, split.tasks, 0);
  } else if (split.workspaces == 0 || team.size() <= split.workspaces) {
    team.parallel_for(split.tasks, f);
  } else {
    team.parallel_for(split.workspaces, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const IndexRange part = even_part(split.tasks, split.workspaces, i);
        f(part.begin, part.end, static_cast<int>(i));
      }
    });
  }
}

}  // namespace neo
