#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "candidates/problem.h"
#include "exec/device.h"
#include "exec/plan.h"
#include "exec/team.h"
#include "tune/benchmark.h"

namespace neo {

// One time that a selection problem is made of: a candidate of a workload or a conversion, once for all its uses.
struct Trial {
  std::string workload;        // the workload's text; a conversion's "neo.Adapt float32[1,64,56,56]"
  std::string candidate_text;  // "cpu:float32/direct_nchwc{ic_bn=16} cpu:float32:NCHW16c -> cpu:float32:NCHW16c"
  std::string routine;         // without the schedule; "cpu:adapt"
  std::optional<std::string> unmeasurable;  // why it has no time of its own here
  double estimate_us = 0;
  double weight = 0;  // expected executions per call, if all its uses chose it
  int64_t packed_bytes = 0;
  std::vector<std::pair<int, int>> uses;  // node variable, choice
  int conversion = -1;
  std::optional<Candidate> candidate;  // where it is no conversion
};

// A candidate with its schemas, as in Trial::candidate_text.
std::string trial_text(const Candidate& candidate);

// The workload and the candidate_text of what an item of a plan runs; none where that is no candidate or conversion.
std::optional<std::pair<std::string, std::string>> trial_name(const Item& item, const Block& block);

std::vector<Trial> list_trials(const SelectionProblem& problem);

// Bytes that one call touches: every constant, as the choices that are expected to be fastest keep it where that is
// larger (Winograd's transforms are), and the most that one node reads and writes, at the hints.
int64_t footprint_bytes(const Graph& graph, const SelectionProblem& problem);

// The cache level that holds a step's constants when a model calls it, after the model's other steps. Its
// inputs were just written, its outputs' and scratch memory was just in use; that holds for every model.
enum class CacheLevel : uint8_t {
  Private,  // the whole model stays in the cores' own caches
  Shared,   // in the last-level cache
  Memory,
};
CacheLevel cache_level_of(int64_t footprint_bytes, int threads);

struct MeasureResult {
  std::optional<double> time_us;
  int rounds = 0;
  double spread_us = 0;  // as in BenchmarkTime
  std::string failure;   // why there is no time
};

// Times trials. Keeps the memory that it evicts caches with from one use to the next.
class Measurer {
 public:
  // `device`: where trials of a device run; null where there are none.
  explicit Measurer(std::shared_ptr<Device> device = nullptr);
  ~Measurer();

  // Runs trials of one workload against each other, on synthetic inputs at the hints' sizes and the node's own
  // constants.
  std::vector<MeasureResult> measure(const SelectionProblem& problem, std::span<const Trial* const> trials,
                                     CacheLevel cache_level, const OpRegistry& ops, const Target& target, Team& team,
                                     const BenchmarkOptions& options);

  class Caches;

 private:
  std::unique_ptr<Caches> caches_;
  std::shared_ptr<Device> device_;
};

}  // namespace neo
