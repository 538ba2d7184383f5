#include <algorithm>
#include <cmath>
#include <exception>
#include <set>

#include "base/budget.h"
#include "base/check.h"
#include "exec/block_flow.h"
#include "saved/format.h"
#include "saved/operands.h"
#include "saved/saved.h"
#include "saved/short_text.h"
#include "saved/steps.h"
#include "saved/variants.h"

namespace neo {
namespace {

constexpr int64_t kMaxThreads = 4096;
constexpr int kMaxDepth = 64;          // of bodies
constexpr size_t kMaxItems = 30'000;   // of a region: the memory plan looks at pairs
constexpr size_t kMaxSlots = 500'000;  // of a block

// Bytes that a slot and a step take beside their tensors, about.
constexpr int64_t kSlotBytes = 2 * sizeof(Slot);
constexpr int64_t kStepBytes = 8 << 10;

template <size_t N>
size_t enumerator(const Json& json, const std::string_view (&names)[N]) {
  const std::string& text = json.as_string();
  const auto* it = std::find(std::begin(names), std::end(names), text);
  NEO_CHECK(it != std::end(names), Model, "load", "a name must be known. Got \"", text, "\", expected for example \"",
            names[0], "\"");
  return static_cast<size_t>(it - std::begin(names));
}

double positive(const Json& json) {
  const double x = json.as_number();
  NEO_CHECK(x >= 1e-6 && x <= 1e9, Model, "load", "a target's figure must be positive. Got ", x);
  return x;
}

// Sets the device that a target's name gives beside the CPU. Estimates do not matter any more.
void read_device(Target& target) {
  if (target.name == "cpu" || target.name.starts_with("cpu:")) return;
  NEO_CHECK(kHasDevices, Unsupported, "load",
            "a module with a device must be loaded by a library that was built with devices. Got one for \"",
            target.name, "\"");
  const auto& known = device_targets();
  const auto found = std::find_if(known.begin(), known.end(), [&](const auto& t) { return t.name == target.name; });
  NEO_CHECK(found != known.end(), Unsupported, "load", "the target of a saved module must be known. Got \"",
            target.name, "\"");
  target.device = found->device;
  target.figures = found->figures;
}

Target read_target(const Json& json) {
  Target target;
  target.name = json.at("name").as_string();
  target.isa = parse_isa(json.at("isa").as_string(), "load");
  NEO_CHECK(target.isa.is_subset_of(host_isa()), Unsupported, "load",
            "a saved module must be for an instruction set that runs here. Got ", isa_name(target.isa), ", expected ",
            isa_name(host_isa()), " or weaker\nHint: compile the model for target \"cpu:", isa_name(host_isa()), "\".");
  NEO_CHECK(has_kernels(target.isa), Unsupported, "load",
            "a saved module must be for an instruction set that this library was built for. Got ", isa_name(target.isa),
            ", expected ", built_isa_names(),
            "\nHint: compile the model for that, or build the library with its tier (NEO_ISA of CMake).");
  constexpr int64_t kMaxBytes = int64_t{1} << 46;
  target.threads = static_cast<int>(json.at("threads").as_int(1, kMaxThreads));
  target.gflops_per_thread = positive(json.at("gflops_per_thread"));
  target.l2_gbps = positive(json.at("l2_gbps"));
  target.memory_gbps = positive(json.at("memory_gbps"));
  target.l1_bytes = json.at("l1_bytes").as_int(1 << 10, kMaxBytes);
  target.l2_bytes = json.at("l2_bytes").as_int(1 << 10, kMaxBytes);
  target.kept_bytes = json.at("kept_bytes").as_int(0, kMaxBytes);
  target.cold_constants = json.at("cold_constants").as_bool();
  target.caches = host_caches(target);
  target.machine = Machine::of(target.isa, false);
  read_device(target);
  if (const Json* texels = json.find("image_texels")) target.figures.image_texels = texels->as_int(0, kMaxExtent);
  return target;
}

std::vector<std::string> read_names(const Json& json) {
  std::vector<std::string> names;
  for (const Json& name : json.as_array()) names.push_back(name.as_string());
  return names;
}

Range read_range(const Json& lo, const Json& hi) {
  const int64_t low = lo.as_int(-kMaxExtent, kMaxExtent);
  return {low, hi.as_int(low, kMaxExtent)};
}

bool contains(const Range& outer, const Range& inner) {
  return outer.lo <= inner.lo && inner.hi <= outer.hi;
}

class PlanReader {
 public:
  PlanReader(const Json& json, const Target& target, const SavedBlobs& blobs, const OpRegistry& ops,
             const RoutineTable& routines)
      : json_(json),
        blobs_(blobs),
        device_(target.device),
        memory_gbps_(target.memory_gbps),
        maker_(target, ops, routines, blobs) {}

  std::shared_ptr<const Plan> read() {
    read_symbols();
    const Json::Array& blocks = json_.at("blocks").as_array();
    NEO_CHECK(!blocks.empty(), Model, "load", "a plan must have a block. Got none");
    read_ranges(blocks);
    auto plan = std::make_shared<Plan>();
    plan->device = device_;
    const Json* keeps_denormals = json_.find("keeps_denormals");
    if (keeps_denormals && keeps_denormals->as_bool()) plan->denormals = Denormals::Keep;
    const FloatModeScope mode(plan->denormals);
    plan->root = read_block(0, 0, {});
    NEO_CHECK(blocks_read_ == blocks.size(), Model, "load", "every block must be the body of an item. Got ",
              blocks_read_, ", expected ", blocks.size());
    plan->input_names = read_names(json_.at("inputs"));
    plan->output_names = read_names(json_.at("outputs"));
    NEO_CHECK(plan->input_names.size() == plan->root->arguments.size() &&
                  plan->output_names.size() == plan->root->results.size(),
              Model, "load", "a plan must name its inputs and outputs. Got ", plan->input_names.size(), " and ",
              plan->output_names.size());
    plan->estimate_us = json_.at("estimate_us").as_number();
    return plan;
  }

 private:
  using Known = std::set<std::string>;

  void read_symbols() {
    for (const Json& entry : json_.at("symbols").as_array()) {
      const Json::Array& parts = entry.as_array();
      NEO_CHECK(parts.size() == 4, Model, "load", "a symbol must have a name, a range and a hint. Got ", parts.size(),
                " entries");
      Symbol symbol{parts[0].as_string(), read_range(parts[1], parts[2]), parts[3].as_int(0, kMaxExtent)};
      NEO_CHECK(symbols_.emplace(symbol.name, symbol).second, Model, "load", "symbols must differ. Got \"", symbol.name,
                "\" twice");
    }
  }

  // The widest range that a call may give each symbol. Proofs about sizes hold for this range.
  void read_ranges(const Json::Array& blocks) {
    for (const Json& block : blocks) {
      for (const Json& region : block.at("regions").as_array()) {
        for (const Json& source : region.at("sources").as_array()) {
          const SymbolSource s = read_source(source);
          const auto [it, fresh] = ranges_.emplace(s.symbol.name, s.symbol.range);
          if (!fresh) {
            it->second = {std::min(it->second.lo, s.symbol.range.lo), std::max(it->second.hi, s.symbol.range.hi)};
          }
        }
      }
    }
    for (const auto& [name, symbol] : symbols_) check_range(symbol);
  }

  void check_range(const Symbol& symbol) const {
    const auto it = ranges_.find(symbol.name);
    NEO_CHECK(it == ranges_.end() || contains(symbol.range, it->second), Model, "load",
              "a size must be planned for all values that a call may give it. Got ", symbol.range.lo, " to ",
              symbol.range.hi, ", expected ", it->second.lo, " to ", it->second.hi, " - at size \"", symbol.name, "\"");
  }

  SymbolSource read_source(const Json& json) const {
    const Json::Array& parts = json.as_array();
    NEO_CHECK(parts.size() == 5 || parts.size() == 6, Model, "load",
              "a source must be a symbol, its range, a slot and an axis, or a formula. Got ", parts.size(), " entries");
    const auto it = symbols_.find(parts[0].as_string());
    NEO_CHECK(it != symbols_.end(), Model, "load", "a source must be of a symbol. Got \"", parts[0].as_string(), "\"");
    SymbolSource source;
    source.symbol = it->second;
    source.symbol.range = read_range(parts[1], parts[2]);
    const bool computed = parts.size() == 6;
    source.slot = static_cast<int>(computed ? parts[3].as_int(-1, -1) : parts[3].as_int(0, kMaxSlots));
    source.axis = static_cast<int>(parts[4].as_int(0, 1024));
    if (computed) source.symbol.formula = std::make_shared<const Dim>(read_dim(parts[5]));
    return source;
  }

  Dim read_dim(const Json& json) const { return neo::read_dim(json, lookup_); }

  static std::vector<int> read_slots(const Json& json, int least = 0) {
    std::vector<int> slots;
    for (const Json& s : json.as_array()) slots.push_back(static_cast<int>(s.as_int(least, kMaxSlots)));
    return slots;
  }

  Slot read_slot(const Json& json) const {
    Slot slot;
    slot.storage = static_cast<Slot::Storage>(enumerator(json.at("storage"), kStorageNames));
    slot.name = json.at("name").as_string();
    slot.type = Type::parse(json.at("type").as_string(), lookup_);
    if (const Json* device = json.find("device")) {
      const auto kind = find_device_kind(device->as_string());
      NEO_CHECK(kind && *kind == device_ && *kind != DeviceKind::Cpu, Model, "load",
                "a slot must be on the device of its target. Got \"", device->as_string(), "\" - at \"", slot.name,
                "\"");
      slot.device = *kind;
    }
    const Json* layout = json.find("layout");
    slot.layout = layout ? Layout::parse(layout->as_string()) : plain_schema(slot.type).layout;
    if (slot.storage == Slot::Storage::Constant) slot.constant = blobs_.get(json.at("constant"));
    if (slot.storage == Slot::Storage::View) {
      slot.base = static_cast<int>(json.at("base").as_int(0, kMaxSlots));
      slot.offset = read_dim(json.at("offset"));
    }
    return slot;
  }

  Guard read_guard(const Json& json) const {
    const Json::Array& parts = json.as_array();
    NEO_CHECK(parts.size() == 4, Model, "load", "a guard must be a relation, two sizes and a message. Got ",
              parts.size(), " entries");
    Guard guard;
    guard.relation = static_cast<Guard::Relation>(enumerator(parts[0], kRelationNames));
    guard.left = read_dim(parts[1]);
    guard.right = read_dim(parts[2]);
    guard.message = parts[3].as_string();
    return guard;
  }

  static bool is_known(const Dim& dim, const Known& known) {
    std::map<std::string, Symbol> used;
    dim.collect_symbols(used);
    return std::all_of(used.begin(), used.end(), [&](const auto& s) { return known.count(s.first) > 0; });
  }

  std::shared_ptr<const Block> read_block(int64_t number, int depth, Known known) {
    NEO_CHECK(depth < kMaxDepth, Model, "load", "bodies must nest at most ", kMaxDepth, " deep. Got deeper ones");
    ++blocks_read_;
    const Json& json = json_.at("blocks").as_array()[static_cast<size_t>(number)];
    auto block = std::make_shared<Block>();
    const Json::Array& slots = json.at("slots").as_array();
    NEO_CHECK(slots.size() <= kMaxSlots, Model, "load", "a block must have at most ", kMaxSlots, " slots. Got ",
              slots.size());
    take_memory(static_cast<int64_t>(slots.size()) * kSlotBytes);
    block->slots.reserve(slots.size());
    for (const Json& s : slots) {
      checkpoint();
      block->slots.push_back(read_slot(s));
    }
    block->arguments = read_slots(json.at("arguments"));
    block->results = read_slots(json.at("results"));
    BlockFlow flow(*block);
    for (const Json& r : json.at("regions").as_array()) {
      flow.start_region(block->regions.size());
      block->regions.push_back(read_region(r, number, depth, known, flow));
    }
    NEO_CHECK(!block->regions.empty(), Model, "load", "a block must have a region. Got none");
    flow.check_results();
    plan_memory(*block);
    plan_prefetch(*block, memory_gbps_);
    return block;
  }

  Region read_region(const Json& json, int64_t block, int depth, Known& known, BlockFlow& flow) {
    Region region;
    for (const Json& s : json.at("sources").as_array()) {
      region.sources.push_back(read_source(s));
      const SymbolSource& source = region.sources.back();
      if (source.symbol.formula) {
        NEO_CHECK(is_known(*source.symbol.formula, known), Model, "load",
                  "a formula must be of sizes that are known before it. Got ", source.symbol.formula->to_string());
        maker_.note_formula(source.symbol);
      } else {
        flow.check_source(source);
      }
      known.insert(source.symbol.name);
    }
    for (const Json& g : json.at("guards").as_array()) region.guards.push_back(read_guard(g));
    const Json::Array& items = json.at("items").as_array();
    NEO_CHECK(items.size() <= kMaxItems, Model, "load", "a region must have at most ", kMaxItems, " items. Got ",
              items.size());
    for (const Json& item : items) {
      const std::string& node = item.at("node").as_string();
      try {
        region.items.push_back(read_item(item, block, depth, known, region, flow));
      } catch (const Error& error) {
        fail_at(error, "node \"" + node + "\"");
      }
    }
    return region;
  }

  Item read_item(const Json& json, int64_t block, int depth, const Known& known, Region& region, BlockFlow& flow) {
    take_memory(kStepBytes);
    checkpoint();
    Item item;
    item.node = json.at("node").as_string();
    item.op = json.at("op").as_string();
    item.routine = json.at("routine").as_string();
    item.estimate_us = json.at("estimate_us").as_number();
    if (const Json* alone_us = json.find("alone_us")) item.alone_us = alone_us->as_number();
    item.flops = read_dim(json.at("flops"));
    item.bytes = read_dim(json.at("bytes"));
    const std::string& kind = json.at("kind").as_string();
    if (kind == "step") {
      const Json* spec = json.find(kSpecKey);
      SavedStep step = maker_.make(spec ? *spec : json.at(kOlderSpecKey), item.node, lookup_);
      step.item.inputs = read_slots(json.at("reads"));
      step.item.outputs = read_slots(json.at("writes"));
      for (const auto& [name, symbol] : step.symbols) check_range(symbol);
      const Step::Kind how = step.item.step->kind();
      if (how == Step::Kind::Device || how == Step::Kind::Copy) item.device = device_;
      item.what = std::move(step.item);
      flow.add(item);
      check_operands(flow.block(), std::get<StepItem>(item.what), step);
      for (const Guard& guard : step.guards) add_guard(guard, known, region);
    } else if (kind == "dims") {
      DimsItem dims;
      for (const Json& d : json.at("elements").as_array()) dims.elements.push_back(read_dim(d));
      dims.output = static_cast<int>(json.at("output").as_int(0, kMaxSlots));
      item.what = std::move(dims);
      flow.add(item);
    } else if (kind == "if") {
      IfItem branch;
      branch.predicate = static_cast<int>(json.at("predicate").as_int(0, kMaxSlots));
      branch.arguments = read_slots(json.at("arguments"));
      branch.results = read_slots(json.at("results"), -1);
      branch.then_block = read_body(json.at("then"), block, depth, known);
      branch.else_block = read_body(json.at("else"), block, depth, known);
      item.what = std::move(branch);
      flow.add(item);
    } else {
      NEO_CHECK(kind == "loop" || kind == "scan", Model, "load", "an item must be of a known kind. Got \"", kind, "\"");
      LoopItem loop;
      loop.kind = kind == "loop" ? LoopItem::Kind::Loop : LoopItem::Kind::Scan;
      loop.trip_count = static_cast<int>(json.at("trip_count").as_int(-1, kMaxSlots));
      loop.condition = static_cast<int>(json.at("condition").as_int(-1, kMaxSlots));
      loop.carried = read_slots(json.at("carried"));
      loop.scanned = read_slots(json.at("scanned"));
      loop.scanned_axes = read_axes(json.at("scanned_axes"));
      loop.captured = read_slots(json.at("captured"));
      loop.results = read_slots(json.at("results"), -1);
      loop.collected_axes = read_axes(json.at("collected_axes"));
      loop.body = read_body(json.at("body"), block, depth, known);
      item.what = std::move(loop);
      flow.add(item);
    }
    return item;
  }

  static std::vector<LoopItem::Axis> read_axes(const Json& json) {
    std::vector<LoopItem::Axis> axes;
    for (const Json& entry : json.as_array()) {
      const Json::Array& parts = entry.as_array();
      NEO_CHECK(parts.size() == 2, Model, "load", "an axis must have a direction. Got ", parts.size(), " entries");
      axes.push_back({static_cast<int>(parts[0].as_int(-1024, 1024)), parts[1].as_bool()});
    }
    return axes;
  }

  // Bodies come after the block that holds them, so none holds itself, and each is read once.
  std::shared_ptr<const Block> read_body(const Json& number, int64_t block, int depth, const Known& known) {
    const auto count = static_cast<int64_t>(json_.at("blocks").as_array().size());
    const int64_t body = number.as_int(block + 1, count - 1);
    NEO_CHECK(bodies_.insert(body).second, Model, "load", "a block must be the body of one item. Got block ", body,
              " again");
    return read_block(body, depth + 1, known);
  }

  // A step relies on what inference of its workload could not decide, whatever the file says.
  static void add_guard(const Guard& guard, const Known& known, Region& region) {
    if (!is_known(guard.left, known) || !is_known(guard.right, known)) return;
    const bool is_there = std::any_of(region.guards.begin(), region.guards.end(), [&](const Guard& g) {
      return g.relation == guard.relation && g.left == guard.left && g.right == guard.right;
    });
    if (!is_there) region.guards.push_back(guard);
  }

  const Json& json_;
  const SavedBlobs& blobs_;
  DeviceKind device_;
  const double memory_gbps_;
  StepMaker maker_;
  std::map<std::string, Symbol, std::less<>> symbols_;
  std::map<std::string, Range, std::less<>> ranges_;
  std::set<int64_t> bodies_;
  size_t blocks_read_ = 0;
  SymbolLookup lookup_ = [this](std::string_view name) -> std::optional<Symbol> {
    const auto it = symbols_.find(name);
    return it == symbols_.end() ? std::nullopt : std::optional<Symbol>(it->second);
  };
};

std::vector<SavedModule> load(const FileBytes& file, const OpRegistry& ops, const RoutineTable& routines) {
  const Safetensors parts = read_safetensors(file.bytes);
  const SavedBlobs blobs(parts.blobs, file.owner);
  std::vector<SavedModule> modules;
  for (VariantEntry& entry : choose_variants(parts.metadata, host_isa())) {
    const Json json = Json::parse(entry.is_short ? lengthen(*entry.plan, kMaxPlanBytes) : *entry.plan);
    SavedModule& module = modules.emplace_back();
    module.target = read_target(json.at("target"));
    NEO_CHECK(!entry.isa || module.target.isa == *entry.isa, Model, "load",
              "a variant must be for the instruction set that the header says. Got ", isa_name(module.target.isa),
              ", expected ", isa_name(*entry.isa));
    module.plan = PlanReader(json, module.target, blobs, ops, routines).read();
    module.notes = std::move(entry.notes);
    if (const Json* chosen = json.find("executors")) {
      const Json::Array& both = chosen->as_array();
      NEO_CHECK(both.size() == 2, Model, "load", "executors must be their number and the threads of each. Got ",
                both.size(), " entries");
      module.chosen = {static_cast<int>(both[0].as_int(1, kMaxThreads)),
                       static_cast<int>(both[1].as_int(1, kMaxThreads))};
    }
    NEO_CHECK(module.plan->input_names == modules.front().plan->input_names &&
                  module.plan->output_names == modules.front().plan->output_names,
              Model, "load", "variants must have the same inputs and outputs. Got others in variant ", modules.size());
  }
  return modules;
}

}  // namespace

SavedModule load_module(const FileBytes& file, const std::string& place, const OpRegistry& ops,
                        const RoutineTable& routines, const Quota& quota, const std::function<void()>* poll) {
  return std::move(load_variants(file, place, ops, routines, quota, poll).front());
}

std::vector<SavedModule> load_variants(const FileBytes& file, const std::string& place, const OpRegistry& ops,
                                       const RoutineTable& routines, const Quota& quota,
                                       const std::function<void()>* poll) {
  std::exception_ptr interrupt;
  const std::function<void()> noted_poll = [&] {
    try {
      (*poll)();
    } catch (...) {
      interrupt = std::current_exception();
      throw;
    }
  };
  const auto budget = std::make_shared<Budget>(quota);
  budget->start(0, nullptr, poll ? &noted_poll : nullptr);
  const BudgetScope scope(budget);
  try {
    return load(file, ops, routines);
  } catch (const Error& error) {
    // An assertion that a file breaks is the file's fault.
    const ErrorKind kind = error.kind() == ErrorKind::Internal ? ErrorKind::Model : error.kind();
    fail_at(Error(kind, error.what()), place);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::Memory, "load", "a saved module must fit in memory. Got no memory - at " + place);
  } catch (const std::exception& error) {
    if (interrupt) std::rethrow_exception(interrupt);
    fail(ErrorKind::Model, "load", str("a saved module must hold together. Got ", error.what(), " - at ", place));
  }
}

}  // namespace neo
