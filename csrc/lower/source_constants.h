#pragma once

#include <atomic>
#include <unordered_map>

#include "candidates/problem.h"
#include "ir/graph.h"
#include "routines/packed_store.h"
#include "routines/routine.h"

namespace neo {

// Whether lowering leaves the graph the constants that the plan holds packed.
enum class SourceConstants : uint8_t { Keep, Release };

// Gives up the elements of a graph's constants, each as soon as the last of its readers has packed it: weights are in
// memory once, not as the model's and as the plan's. A constant stays where a reader takes it as it is.
class ConstantRelease {
 public:
  explicit ConstantRelease(const Graph& graph);

  // The constants of an inner graph, too.
  void add(const Graph& graph);
  // Every reader is added before the first is made.
  void add_reader(const Value* value);
  // After all readers: constants that nobody reads, as codes are of which only numbers are read, or the other way
  // round.
  void drop_unread(const Graph& graph);
  // A step of this workload was made with `packed`. Thread-safe.
  void made(const Workload& workload, const PackedStore& packed);

 private:
  void give_up(Value& value);

  std::unordered_map<const Value*, std::atomic<int>> readers_;  // by constant: how many have not packed it
  int64_t returned_bytes_ = 0;                                  // how many it is asked for at a time
  std::atomic<int64_t> kept_by_allocator_{0};                   // bytes at most, since it was last asked for them
};

// Takes back from `source`, the same graph made once more, the constants that were given up, those in bodies included.
// A Model error where `source` has others.
void restore_constants(Graph& graph, const Graph& source);
// Makes the constants of inner graphs anew from those of the graphs around them.
void restore_expansions(SelectionProblem& problem, const OpRegistry& ops);

}  // namespace neo
