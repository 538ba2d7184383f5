#include "runtime/interpreter.h"

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/clock.h"
#include "exec/dependencies.h"

namespace neo {

Interpreter::Interpreter(const Block& block, RunState& run) : block_(block), run_(run), frame_(block, run), lanes_(1) {}

int64_t Interpreter::arena_bytes() const {
  int64_t total = frame_.arena_bytes();
  for (const Lane& lane : lanes_) total += lane.scratch.capacity_bytes();
  for (const auto& [block, child] : children_) total += child->arena_bytes();
  return total;
}

std::vector<HostValue> Interpreter::call(std::span<const HostValue> arguments, const SymbolValues& outer) {
  frame_.take_arguments(arguments, outer);
  for (size_t r = 0; r < block_.regions.size(); ++r) {
    enter_region(r);
    run_region(block_.regions[r]);
    frame_.release(block_.regions[r].released);
  }
  return frame_.take_results();
}

void Interpreter::enter_region(size_t index) {
  frame_.enter_region(index);
  lanes_.front().scratch.reserve(frame_.binding().scratch_bytes);
}

void Interpreter::run_region(const Region& region) {
  if (run_.shuffle) return run_shuffled(region);
  if (has_executors(region)) return run_together(region);
  // A trace and an observer are told of every item.
  const bool together = frame_.device() && !run_.trace && !run_.observer;
  for (size_t i = 0; i < region.items.size();) {
    size_t count = 0;
    if (kHasDevices && together) count = frame_.device()->run_together(i);
    if (count > 0) {
      run_.budget->checkpoint();
      i += count;
    } else {
      execute(region.items[i], i);
      ++i;
    }
  }
}

bool Interpreter::has_executors(const Region& region) const {
  // An observer is told of values in the order of the list.
  return run_.teams.size() > 1 && run_.root == &block_ && run_.observer == nullptr && has_branches(region.dependencies);
}

void Interpreter::run_together(const Region& region) {
  // Other executors do not check what is checked here, or what the caller's checks (Dependencies::needs_caller).
  frame_.check_arguments();
  const size_t executors = run_.teams.size();
  if (lanes_.size() < executors) lanes_.resize(executors);
  for (Lane& lane : lanes_) lane.scratch.reserve(frame_.binding().scratch_bytes);
  size_t arguments = 0;
  for (const Item& item : region.items) {
    if (const auto* call = std::get_if<StepItem>(&item.what))
      arguments = std::max(arguments, call->inputs.size() + call->outputs.size());
  }
  for (Lane& lane : lanes_) lane.pointers.reserve(arguments);
  if (!run_.scheduler || run_.scheduler->executors() < static_cast<int>(executors))
    run_.scheduler = std::make_unique<Scheduler<CriticalPathFirst>>(static_cast<int>(executors));
  if (run_.trace) {
    run_.records.resize(executors);
    for (auto& events : run_.records) events.reserve(region.items.size());
  }

  struct Call {
    Interpreter& interpreter;
    const Region& region;
  } call{*this, region};
  Scheduler<CriticalPathFirst>::Work work;
  work.order = &region.dependencies;
  work.context = &call;
  work.execute = [](void* context, uint32_t index, int executor) {
    const auto& [interpreter, items] = *static_cast<const Call*>(context);
    const Item& item = items.items[index];
    if (executor > 0) return interpreter.execute_beside(item, index, executor);
    interpreter.execute(item, index);
    return true;
  };
  work.wait = [](void* context) { static_cast<const Call*>(context)->interpreter.run_.budget->checkpoint(); };
  if (!run_.scheduler->run(work, *run_.executors)) {
    run_.budget->checkpoint();
    NEO_ASSERT(false, "an executor stopped without a reason");
  }
  if (!run_.trace) return;
  for (auto& events : run_.records) {
    run_.trace->insert(run_.trace->end(), events.begin(), events.end());
    events.clear();
  }
  std::stable_sort(run_.trace->begin(), run_.trace->end(),
                   [](const TraceEvent& a, const TraceEvent& b) { return a.end_ns < b.end_ns; });
}

void Interpreter::run_shuffled(const Region& region) {
  for (const uint32_t i : shuffled_order(region.dependencies, *run_.shuffle)) execute(region.items[i], i);
}

void Interpreter::execute(const Item& item, size_t index) {
  run_.budget->checkpoint();
  const int64_t start = run_.trace ? steady_now_ns() : 0;
  if (const auto* step = std::get_if<StepItem>(&item.what)) {
    run_step(*step, index);
  } else if (const auto* dims = std::get_if<DimsItem>(&item.what)) {
    run_dims(*dims);
  } else if (const auto* branch = std::get_if<IfItem>(&item.what)) {
    run_if(*branch);
  } else {
    run_loop(std::get<LoopItem>(item.what));
  }
  if (run_.observer && run_.root == &block_) observe(item);
  if (run_.trace) record(item, start, 0, *run_.trace);
}

// A kernel's step on another executor than the caller's, which must not throw; false: the call is over.
bool Interpreter::execute_beside(const Item& item, size_t index, int executor) {
  const auto lane = static_cast<size_t>(executor);
  if (run_.budget->is_over()) return false;
  const int64_t start = run_.trace ? steady_now_ns() : 0;
  run_kernel(std::get<StepItem>(item.what), index, executor);
  if (run_.trace) record(item, start, executor, run_.records[lane]);
  // A late team leaves tasks out.
  return !run_.budget->quota().seconds || !run_.budget->is_over();
}

void Interpreter::record(const Item& item, int64_t start_ns, int executor, std::vector<TraceEvent>& events) {
  const int64_t device_ns = kHasDevices && run_.device && item.device != DeviceKind::Cpu ? run_.device->take_ns() : 0;
  const int64_t end = steady_now_ns();
  const int iteration = executor == 0 ? run_.iteration : -1;
  events.push_back({&item, device_ns > 0 ? end - device_ns : start_ns, end, iteration, executor, frame_.bound()});
}

void Interpreter::run_copy(const StepItem& call) {
  const auto from = static_cast<size_t>(call.inputs.front()), to = static_cast<size_t>(call.outputs.front());
  const Slot& slot = block_.slots[to];
  NEO_ASSERT(frame_.binding().sized[to], "a copy makes \"", slot.name, "\" whose size is not known");
  const int64_t bytes =
      element_count(slot.layout.physical_dims(frame_.binding().dims[to])) * item_bytes(slot.type.dtype);
  if (slot.device == DeviceKind::Cpu) {
    frame_.device()->read(from, {frame_.address_of(call.outputs.front()), static_cast<size_t>(bytes)});
  } else {
    frame_.device()->write(to, {frame_.address_of(call.inputs.front()), static_cast<size_t>(bytes)});
  }
}

void Interpreter::run_kernel(const StepItem& call, size_t item, int executor) {
  const Prepared& prepared = frame_.binding().prepared[item];
  if (prepared.is_idle) return;
  Lane& lane = lanes_[static_cast<size_t>(executor)];
  lane.pointers.clear();
  for (int slot : call.inputs) lane.pointers.push_back(frame_.address_of(slot));
  for (int slot : call.outputs) lane.pointers.push_back(frame_.address_of(slot));
  if (!frame_.binding().append_bytes.empty()) lane.pointers.back() += frame_.binding().append_bytes[item];
  static_cast<const KernelStep&>(*call.step)
      .run(prepared.bytes.data(), lane.pointers.data(), lane.scratch.data(),
           *run_.teams[static_cast<size_t>(executor)]);
}

void Interpreter::run_step(const StepItem& call, size_t item) {
  if (call.step->kind() == Step::Kind::Kernel) {
    run_kernel(call, item, 0);
    if (run_.budget->quota().seconds) run_.budget->checkpoint();  // a late team leaves tasks out
    return;
  }
  if (kHasDevices && call.step->kind() == Step::Kind::Device) return frame_.device()->run(call, item);
  if (kHasDevices && call.step->kind() == Step::Kind::Copy) return run_copy(call);
  if (frame_.gather_grown(call, item)) return;
  std::vector<HostValue> inputs;
  inputs.reserve(call.inputs.size());
  for (int slot : call.inputs) inputs.push_back(frame_.read(slot));
  std::vector<HostValue> outputs(call.outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (call.outputs[i] >= 0 && block_.slots[static_cast<size_t>(call.outputs[i])].storage != Slot::Storage::Dynamic) {
      outputs[i] = frame_.read(call.outputs[i]);
    }
  }
  static_cast<const HostStep&>(*call.step).run(inputs, outputs, *run_.teams.front());
  if (run_.budget->quota().seconds) run_.budget->checkpoint();  // a late team leaves tasks out
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (call.outputs[i] >= 0 && block_.slots[static_cast<size_t>(call.outputs[i])].storage == Slot::Storage::Dynamic) {
      frame_.store(call.outputs[i], std::move(outputs[i]));
    }
  }
}

void Interpreter::run_dims(const DimsItem& item) {
  const auto i = static_cast<size_t>(item.output);
  const DType dtype = block_.slots[i].type.dtype;
  const int64_t width = item_bytes(dtype);
  for (size_t e = 0; e < item.elements.size(); ++e) {
    store_int64(dtype, frame_.data(i) + static_cast<int64_t>(e) * width, item.elements[e].evaluate(frame_.symbols()));
  }
}

Interpreter& Interpreter::child(const Block& block) {
  auto& child = children_[&block];
  if (!child) child = std::make_unique<Interpreter>(block, run_);
  return *child;
}

void Interpreter::run_if(const IfItem& item) {
  const Tensor predicate = frame_.read(item.predicate).tensor;
  NEO_CHECK(predicate.size() == 1, Shape, "If", "the condition must hold one element. Got ",
            to_string(predicate.dims()));
  std::vector<HostValue> arguments;
  for (int slot : item.arguments) arguments.push_back(frame_.read(slot));
  const Block& block = load_int64(DType::Bool, predicate.data()) ? *item.then_block : *item.else_block;
  std::vector<HostValue> results = child(block).call(arguments, frame_.symbols());
  for (size_t i = 0; i < item.results.size(); ++i) {
    if (item.results[i] >= 0) frame_.store(item.results[i], std::move(results[i]));
  }
}

}  // namespace neo
