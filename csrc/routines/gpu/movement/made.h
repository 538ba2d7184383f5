#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "routines/gpu/channels.h"
#include "routines/gpu/program.h"
#include "routines/routine.h"

namespace neo::gpu {

// The program of a workload, and what its operands are.
struct Made {
  std::function<std::unique_ptr<Program>()> program;  // makes it; while the workload lives
  std::vector<std::vector<float>> tables;             // that the program reads as Packed, in this order
  std::vector<int> inputs;                            // workload inputs that are operands, ascending
  std::vector<Layout> layouts;                        // of the operands' memory; plain where it is empty
  double flops = 0;                                   // at the hint, for estimates
};

// The options from which a device gains.
struct BasicOptions {
  int lanes = 4;         // of loads
  int threads = 64;      // of a group
  int64_t together = 1;  // channels, as of channels.h
  int64_t few_rows = 0;  // with fewer rows than this, threads share one
};

// One family's reading of a workload; none, and why in `why`, where it does not take it.
using Reader = std::optional<Made> (*)(const Workload& workload, const BasicOptions& options, std::string* why);

// None, with the reason.
inline std::optional<Made> not_made(std::string* why, std::string reason) {
  if (why != nullptr) *why = std::move(reason);
  return std::nullopt;
}

struct Family {
  std::string_view name;                     // "gpu/eltwise"
  std::vector<std::string_view> (*roots)();  // ops that it may take
  Reader read;
  // The groups that it takes; null: single nodes.
  std::vector<Workload> (*matches)(const Node& root, const Graph::Users& users, const Graph& graph) = nullptr;
  // It reads workloads of float32 alone, and one of halves by its twin of float32.
  bool reads_twin = false;
};
const std::vector<Family>& basic_families();

}  // namespace neo::gpu
