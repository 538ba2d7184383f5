#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/float_mode.h"
#include "exec/bit_matrix.h"
#include "exec/step.h"
#include "ir/graph.h"
#include "ir/schema.h"

namespace neo {

struct Block;

// How many executors run a plan at once, and the threads of each.
struct Configuration {
  int executors = 1, threads = 1;

  int all_threads() const { return static_cast<int>(std::min<int64_t>(int64_t{executors} * threads, INT32_MAX)); }
  friend bool operator==(const Configuration&, const Configuration&) = default;
};

// A place for a value inside one block.
struct Slot {
  enum class Storage : uint8_t {
    Argument,  // given by the caller of the block
    Constant,  // `constant`, in this slot's layout
    Arena,     // planned memory of the region that writes it
    Result,    // memory of the block's result, handed out to the caller
    View,      // a part of another slot
    Dynamic,   // allocated by the step that writes it: size, rank or kind is not known before
  };
  Storage storage = Storage::Arena;
  DeviceKind device = DeviceKind::Cpu;  // whose memory; arguments and results are the host's
  std::string name;                     // the value's
  Type type;                            // the logical shape; sizes are formulas of the block's symbols
  Layout layout;                        // tensors
  Tensor constant;
  int base = -1;  // views: the slot, and where in it, in elements of the base's memory
  Dim offset = 0;
  std::vector<Dim> strides;  // views: by physical axis, in elements; empty: dense
};

// The source of a symbol's value when a region starts: the symbol's formula, or the size of a slot that exists by
// then.
struct SymbolSource {
  Symbol symbol;
  int slot = 0;
  int axis = 0;
};

// The description from which a saved module makes a step again.
struct StepSpec {
  std::string routine;   // empty: a conversion from inputs[0] to outputs[0]
  std::string workload;  // docs/workloads.md; of a conversion the value's type
  std::vector<std::optional<Schema>> inputs;
  std::vector<Schema> outputs;
  std::map<std::string, int64_t, std::less<>> schedule;
  int in_place = -1;
  std::vector<Tensor> packed;     // blobs, in the order in which the routine takes them
  std::vector<Tensor> constants;  // by number of the workload's constant; undefined: `packed` or the text has it
  std::map<std::string, std::vector<Dim>> contents;  // known elements of integer inputs, by the workload's name
  std::map<std::string, Tensor> attributes;          // tensors in attributes that the text names by their hash
};

struct StepItem {
  std::shared_ptr<const Step> step;
  std::shared_ptr<const StepSpec> spec;
  std::vector<int> inputs;  // slots; -1: an optional argument left out
  std::vector<int> outputs;
};

// Elements of an integer tensor that are formulas of the symbols.
struct DimsItem {
  std::vector<Dim> elements;
  int output = 0;
};

struct IfItem {
  int predicate = 0;
  std::vector<int> arguments;  // of both blocks
  std::vector<int> results;
  std::shared_ptr<const Block> then_block;
  std::shared_ptr<const Block> else_block;
};

// Loop and Scan. The body's arguments: for Loop the iteration number and the condition; the carried values; one slice
// of each scanned input (base + i x stride); the captured values. Its results: for Loop the condition; the carried
// values; one element of each collected output.
struct LoopItem {
  enum class Kind : uint8_t { Loop, Scan };
  struct Axis {
    int axis = 0;
    bool reverse = false;
  };
  Kind kind = Kind::Loop;
  int trip_count = -1;  // Loop: slot of the largest number of iterations, -1: none
  int condition = -1;   // Loop: slot of the first condition, -1: true
  std::vector<int> carried;
  std::vector<int> scanned;
  std::vector<Axis> scanned_axes;
  std::vector<int> captured;
  std::vector<int> results;  // carried values, then collected outputs
  std::vector<Axis> collected_axes;
  std::shared_ptr<const Block> body;
};

struct Item {
  std::variant<StepItem, DimsItem, IfItem, LoopItem> what;
  std::string node;  // name of the model's node, for messages and traces
  std::string op;
  std::string routine;                  // "cpu:float32/direct_nchwc{...}"
  DeviceKind device = DeviceKind::Cpu;  // where it runs; of a copy the device that is not the CPU
  double estimate_us = 0;               // at the team size that the plan was made for
  double alone_us = 0;                  // on one thread
  Dim flops = 0;
  Dim bytes = 0;
  std::span<const float> later;  // constants of a later item that this one fetches
};

// Which items of a region wait for which others, all of them earlier in the list (exec/dependencies.h).
struct Dependencies {
  std::vector<uint32_t> first;       // by item: where its successors begin; behind the last one the end
  std::vector<uint32_t> successors;  // of all items, those of each in order
  std::vector<int32_t> waits;        // by item: how many it waits for
  std::vector<double> levels_us;     // by item: the longest way from its start to the end, as expected
  std::vector<bool> is_small;        // by item: takes less than handing it to another thread
  std::vector<bool> needs_caller;    // by item: may throw, allocate or wait; the caller's thread runs it
  double work_us = 0;                // of all items
  double critical_us = 0;            // of the longest way

  std::span<const uint32_t> after(size_t item) const {
    return std::span(successors).subspan(first[item], first[item + 1] - first[item]);
  }
};

// A run of items whose sizes are all known when it starts.
struct Region {
  std::vector<Item> items;
  std::vector<SymbolSource> sources;  // read in order when the region starts; a symbol bound twice is checked
  std::vector<Guard> guards;
  std::vector<int> planned;    // the arena slots it writes
  std::vector<bool> outlives;  // by planned: later regions read it, or it is a result
  // The block's arena of the slots that outlive the region; a later region has the same one once nobody reads them.
  int place = -1;             // -1: none does
  std::vector<int> released;  // dynamic slots that nobody reads behind it
  Dependencies dependencies;
  // (i, j): planned[i] and planned[j] may share bytes, because the dependencies order all uses of one before the
  // writers of the other. Symmetric.
  BitMatrix may_share;
};

struct Block {
  std::vector<Slot> slots;
  std::vector<int> arguments;
  std::vector<int> results;
  std::vector<Region> regions;
};

// Fills in what regions say of memory (`planned` to `may_share`).
void plan_memory(Block& block);

// Fills in `later` of the items of every region: products of few rows read their weights once and do little else, so
// that they wait for the memory, which is idle during the steps before them. `memory_gbps`: GB/s that it gives.
void plan_prefetch(Block& block, double memory_gbps);

// A compiled model: immutable, shared by all calls.
struct Plan {
  std::shared_ptr<const Block> root;
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  double estimate_us = 0;               // the selection's total
  DeviceKind device = DeviceKind::Cpu;  // that it uses besides the CPU; Cpu: none
  Denormals denormals = Denormals::Flush;
};

}  // namespace neo
