#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/int_math.h"
#include "exec/team.h"

namespace neo {

// The number of tasks that are worth starting for that many operations: fixed by the shape, whatever the team.
inline int64_t worthwhile_tasks(int64_t flops) {
  return std::clamp<int64_t>(flops / 1000000, 1, 48);
}

// How the tasks of a step are handed to a team. Fixed by the step's shapes.
struct TaskSplit {
  static constexpr int kMaxWorkspaces = 48;

  int64_t tasks = 0;
  int64_t workspaces = 0;       // pieces of scratch memory that the tasks use; 0: they need none
  int64_t workspace_bytes = 0;  // that one task uses
  bool serial = false;          // the calling thread alone is faster than waking others

  // `arithmetic` is the number of operations that all tasks do together. `threads`: of the team that the step is
  // compiled for; members of a larger one share workspaces.
  static TaskSplit of(int64_t tasks, int64_t arithmetic, int64_t workspace_bytes = 0, int threads = kMaxWorkspaces) {
    constexpr int64_t kSerialOperations = 400000;
    constexpr int kMinWorkspaces = 4;
    TaskSplit split{tasks, 0, workspace_bytes, tasks <= 1 || arithmetic < kSerialOperations};
    if (workspace_bytes > 0) {
      const int64_t most = std::clamp(threads, kMinWorkspaces, kMaxWorkspaces);
      split.workspaces = split.serial ? std::min<int64_t>(tasks, 1) : std::min(tasks, most);
    }
    return split;
  }

  // From one workspace to the next. A core's prefetchers run past the end of its workspace, by many of its strides,
  // into what another core is about to write: a gap keeps them off. Steps share their scratch memory: workspaces at the
  // same places in most of them leave what a core wrote in its own cache.
  int64_t workspace_stride() const {
    constexpr int64_t kSmall = 32 << 10, kGap = 128 << 10, kApart = 1 << 20;
    if (workspace_bytes <= kSmall) return 2 * kSmall;
    return ceil_div(workspace_bytes + kGap, kApart) * kApart;
  }

  int64_t scratch_bytes() const {
    return workspaces == 0 ? 0 : (workspaces - 1) * workspace_stride() + workspace_bytes;
  }
};

// f(begin, end, workspace): tasks [begin, end) with the number of a workspace that no other task uses meanwhile.
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

// The same with f(begin, end, T* workspace), which lies in the scratch_bytes() of `scratch`, or is null.
template <class T, class F>
void run_tasks_with(Team& team, const TaskSplit& split, std::byte* scratch, F&& f) {
  run_tasks(team, split, [&](int64_t begin, int64_t end, int workspace) {
    f(begin, end,
      split.workspaces == 0 ? nullptr : reinterpret_cast<T*>(scratch + workspace * split.workspace_stride()));
  });
}

}  // namespace neo
