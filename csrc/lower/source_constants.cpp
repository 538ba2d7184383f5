#include "lower/source_constants.h"

#include <algorithm>

#include "base/arena.h"
#include "base/check.h"

namespace neo {
namespace {

// Smaller constants are written into the texts of workloads.
bool is_large(const Value& value) {
  return value.constant && value.constant->size() > kWrittenElements && value.dtype() != DType::String &&
         !value.constant->is_absent();
}

// Bytes of constants, and their share of all, after which asking the allocator for them is worth the walk through its
// blocks.
constexpr int64_t kMinReturnedBytes = int64_t{4} << 20;
constexpr int64_t kReturns = 16;

}  // namespace

ConstantRelease::ConstantRelease(const Graph& graph) {
  add(graph);
  for (const auto& [value, readers] : readers_) returned_bytes_ += value->constant->bytes();
  returned_bytes_ = std::max(kMinReturnedBytes, returned_bytes_ / kReturns);
  for (const Value* output : graph.outputs) add_reader(output);
}

void ConstantRelease::add(const Graph& graph) {
  for (const auto& value : graph.values()) {
    if (is_large(*value)) readers_.try_emplace(value.get(), 0);
  }
}

void ConstantRelease::add_reader(const Value* value) {
  const auto it = readers_.find(value);
  if (it != readers_.end()) ++it->second;
}

void ConstantRelease::drop_unread(const Graph& graph) {
  for (const auto& value : graph.values()) {
    const auto it = readers_.find(value.get());
    if (it != readers_.end() && it->second == 0)
      value->constant = Tensor::absent(value->constant->dtype(), value->constant->dims());
  }
}

void ConstantRelease::made(const Workload& workload, const PackedStore& packed) {
  for (Value* input : workload.inputs) {
    const auto it = readers_.find(input);
    if (it == readers_.end() || !packed.holds(input) || --it->second > 0) continue;
    give_up(*input);
  }
}

void ConstantRelease::give_up(Value& value) {
  const int64_t bytes = value.constant->bytes();
  value.constant = Tensor::absent(value.constant->dtype(), value.constant->dims());
  if (kept_by_allocator_.fetch_add(bytes) + bytes < returned_bytes_) return;
  kept_by_allocator_ = 0;
  return_freed_memory();
}

void restore_constants(Graph& graph, const Graph& source) {
  for (const auto& value : graph.values()) {
    if (!value->constant || !value->constant->is_absent()) continue;
    const Value* other = source.find_value(value->name);
    NEO_CHECK(other && other->constant && other->constant->dtype() == value->constant->dtype() &&
                  other->constant->dims() == value->constant->dims(),
              Model, "compile", "the model must still have its constants. Got another one for \"", value->name, "\"");
    value->constant = other->constant;
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const auto& bodies = graph.nodes()[i]->bodies;
    for (size_t b = 0; b < bodies.size(); ++b) {
      NEO_CHECK(i < source.nodes().size() && b < source.nodes()[i]->bodies.size(), Model, "compile",
                "the model must still have its bodies. Got fewer");
      restore_constants(*bodies[b].second, *source.nodes()[i]->bodies[b].second);
    }
  }
}

void restore_expansions(SelectionProblem& problem, const OpRegistry& ops) {
  for (const auto& expanded : problem.expansions)
    restore_constants(*expanded.graph, *expand(*expanded.expansion, expanded.nodes, *expanded.around, ops));
}

}  // namespace neo
