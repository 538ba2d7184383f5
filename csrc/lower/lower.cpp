#include "lower/lower.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/budget.h"
#include "base/check.h"
#include "base/knobs.h"
#include "candidates/alone.h"
#include "exec/verify_plan.h"
#include "lower/chosen.h"
#include "lower/pack_steps.h"

namespace neo {
namespace {

class BlockBuilder {
 public:
  BlockBuilder(const Graph& graph, const SelectionProblem& problem, const std::vector<int>& choices,
               const OpRegistry& ops, const Target& target, Team& team, SourceConstants constants,
               KnownSizes outer_sizes)
      : graph_(graph),
        problem_(problem),
        choices_(choices),
        chosen_(problem, choices),
        nodes_(chosen_.nodes(graph)),
        ops_(ops),
        target_(target),
        alone_(alone(target)),
        team_(team),
        constants_(constants),
        known_(std::move(outer_sizes)) {}

  std::shared_ptr<const Block> build() {
    for (const Value* input : graph_.inputs) {
      const int slot = add_slot(*input, Slot::Storage::Argument, plain_schema(input->type));
      block_->arguments.push_back(slot);
      held_[{input, plain_schema(input->type).to_string()}] = slot;
    }
    find_live();
    make_steps();
    start_region();
    for (const Node* node : nodes_) {
      checkpoint();
      const Node& executing = chosen_.executing_node(*node);
      if (&executing == node || chosen_.of(executing).candidate->workload->has_inner_outputs())
        emit_in_order(executing);
    }
    for (const Value* output : graph_.outputs) block_->results.push_back(slot_of(*output, plain_schema(output->type)));
    plan_memory(*block_);
    plan_prefetch(*block_, target_.memory_gbps);
    return block_;
  }

 private:
  using Key = std::pair<const Value*, std::string>;

  // The first node that makes a value with this symbol as a size of its own, for those that only running tells.
  std::map<std::string, const Node*> find_makers() const {
    std::map<std::string, const Node*> makers;
    KnownSizes given = known_;
    for (const Value* v : graph_.inputs) given.learn(v->type);
    for (const auto& node : graph_.nodes()) {
      if (node->bodies.empty() && problem_.open.count(node.get()) == 0) continue;
      for (const Value* v : node->outputs) {
        if (!v || !v->type.is_tensor() || !v->shape().has_rank()) continue;
        for (const Dim& d : v->shape().dims()) {
          const auto symbol = d.as_symbol();
          if (symbol && !given.contains(symbol->name)) makers.emplace(symbol->name, node.get());
        }
      }
    }
    return makers;
  }

  // Nodes whose results or whose sizes are read at run time: inputs that only shape inference needed keep nothing
  // alive.
  void find_live() {
    std::vector<const Value*> wanted(graph_.outputs.begin(), graph_.outputs.end());
    const std::map<std::string, const Node*> makers = find_makers();
    std::set<std::string> wanted_sizes;
    const std::function<void(const Dim&)> want_size = [&](const Dim& dim) {
      std::map<std::string, Symbol> used;
      dim.collect_symbols(used);
      for (const auto& [name, symbol] : used) {
        if (!wanted_sizes.insert(name).second) continue;
        if (const auto it = makers.find(name); it != makers.end()) {
          const auto& outputs = it->second->outputs;
          wanted.push_back(*std::find_if(outputs.begin(), outputs.end(), [](const Value* v) { return v != nullptr; }));
        } else if (symbol.formula) {
          want_size(*symbol.formula);
        }
      }
    };
    const auto want_sizes_of = [&](const Value* v) {
      if (!v || !v->type.is_tensor() || !v->shape().has_rank()) return;
      for (const Dim& d : v->shape().dims()) want_size(d);
    };
    const std::function<void(const Node&)> want_sizes = [&](const Node& node) {
      for (const Value* v : node.inputs) want_sizes_of(v);
      for (const Value* v : node.outputs) want_sizes_of(v);
      if (node.op == "neo.Dims") {
        for (const Dim& d : std::get<std::vector<Dim>>(node.attrs.at("dims"))) want_size(d);
      }
      for (const auto& [name, body] : node.bodies) {
        for (const auto& inner : body->nodes()) want_sizes(*inner);
      }
    };
    const auto want_node = [&](const Node& node) {
      if (!live_.insert(&node).second) return;
      want_sizes(node);
      for (const Value* v : chosen_.read_values(node)) wanted.push_back(v);
    };
    while (!wanted.empty()) {
      const Node* maker = chosen_.maker(*wanted.back());
      wanted.pop_back();
      if (maker) want_node(*maker);
    }
    for (const Node* node : live_) {
      for (const Value* v : chosen_.read_values(*node)) ++reads_[v];
    }
    for (const Value* v : graph_.outputs) reads_[v] += 2;
  }

  void make_steps() {
    std::vector<const Candidate*> chosen;
    for (const Node* node : nodes_) {
      if (!live_.count(node)) continue;
      const auto& candidate = chosen_.of(*node).candidate;
      if (candidate && candidate->kind != Candidate::Kind::View && candidate->kind != Candidate::Kind::ConcatInPlace) {
        chosen.push_back(&*candidate);
      }
    }
    std::optional<ConstantRelease> release;
    if (constants_ == SourceConstants::Release) {
      release.emplace(graph_);
      const std::vector<const Graph*> inner = chosen_.inner_graphs(graph_);
      for (const Graph* graph : inner) release->add(*graph);
      for (const Node* node : live_) add_readers(*node, *release);
      release->drop_unread(graph_);
      for (const Graph* graph : inner) release->drop_unread(*graph);
    }
    std::vector<StepItem> made = pack_steps(chosen, target_, ops_, team_, release ? &*release : nullptr);
    for (size_t i = 0; i < chosen.size(); ++i) steps_[chosen[i]] = std::move(made[i]);
  }

  void add_readers(const Node& node, ConstantRelease& release) const {
    const SelectionProblem::Choice& choice = chosen_.of(node);
    if (choice.candidate) {
      for (const Value* v : choice.candidate->workload->inputs) release.add_reader(v);
    } else if (choice.absorbed_by == -1) {
      for (const Value* v : node.inputs) release.add_reader(v);
    }
  }

  int add_slot(const Value& value, Slot::Storage storage, const Schema& schema) {
    Slot slot;
    slot.storage = storage;
    slot.device = schema.device;
    slot.name = value.name;
    slot.type = value.type;
    slot.layout = schema.layout;
    block_->slots.push_back(std::move(slot));
    return static_cast<int>(block_->slots.size()) - 1;
  }

  Slot& slot(int index) { return block_->slots[static_cast<size_t>(index)]; }
  Region& region() { return block_->regions.back(); }

  // A formula of known sizes is computed when the region starts.
  bool is_known(const Dim& dim) {
    const auto define = [this](const Symbol& symbol) { region().sources.push_back({symbol, -1, 0}); };
    return !known_.find_unknown(dim, define);
  }

  bool is_known(const Type& type) {
    if (!type.is_tensor() || !type.shape.has_rank()) return false;
    return std::all_of(type.shape.dims().begin(), type.shape.dims().end(), [&](const Dim& d) { return is_known(d); });
  }

  // Calls visit(symbol, slot, axis) for the sizes of arguments and of what host steps made that were not read so far.
  template <class F>
  void visit_new_sizes(const F& visit) const {
    for (size_t i = 0; i < block_->slots.size(); ++i) {
      const Slot& s = block_->slots[i];
      if (s.storage != Slot::Storage::Argument && s.storage != Slot::Storage::Dynamic) continue;
      if (!s.type.is_tensor() || !s.type.shape.has_rank()) continue;
      for (int axis = 0; axis < s.type.shape.rank(); ++axis) {
        const auto symbol = s.type.shape[axis].as_symbol();
        if (symbol && sourced_.count({static_cast<int>(i), axis}) == 0) visit(*symbol, static_cast<int>(i), axis);
      }
    }
  }

  // Every size that exists by now becomes known: arguments first, then what host steps made.
  void start_region() {
    block_->regions.emplace_back();
    std::vector<SymbolSource> sources;
    visit_new_sizes([&](const Symbol& symbol, int slot, int axis) { sources.push_back({symbol, slot, axis}); });
    for (SymbolSource& source : sources) {
      sourced_.insert({source.slot, source.axis});
      known_.insert(source.symbol.name);
      source.symbol.formula = nullptr;
      region().sources.push_back(std::move(source));
    }
  }

  void need_known(const Type& type, const Node& node) {
    if (is_known(type)) return;
    start_region();
    NEO_ASSERT(is_known(type), "the size ", type.to_string(), " is not known where ", node.place(), " needs it");
  }

  void emit_item(Item item) { region().items.push_back(std::move(item)); }

  void describe(Item& item, const Node& node, std::string routine, double estimate, const Work& work) {
    item.node = node.name;
    item.op = node.op;
    item.routine = std::move(routine);
    item.estimate_us = estimate;
    item.flops = work.flops;
    item.bytes = work.bytes;
  }

  // Sized output memory, or an owned slot where a size is not known yet, which a step with `open` sizes may write.
  int add_output(const Value& inner_value, const Schema& schema, bool open) {
    const Value& value = *problem_.outer(&inner_value);
    const bool is_result = graph_.is_output(&value) && schema == plain_schema(value.type);
    const bool sized = is_known(value.type);
    NEO_ASSERT(sized || open, "a kernel step writes \"", value.name, "\" whose size is not known");
    const bool strings = value.type.is_tensor() && value.type.dtype == DType::String;
    const Slot::Storage storage = !sized || strings ? Slot::Storage::Dynamic
                                  : is_result       ? Slot::Storage::Result
                                                    : Slot::Storage::Arena;
    const int index = add_slot(value, storage, schema);
    held_[{&value, schema.to_string()}] = index;
    made_[&value] = {index, schema};
    written_in_[index] = block_->regions.size();
    return index;
  }

  // The slot that holds a value in a schema, converting it once where nobody has.
  int slot_of(const Value& inner_value, const Schema& schema) {
    const Value& value = *problem_.outer(&inner_value);
    const Key key{&value, schema.to_string()};
    if (auto it = held_.find(key); it != held_.end()) return it->second;
    if (value.constant) {
      const int index = add_slot(value, Slot::Storage::Constant, schema);
      const Schema plain = plain_schema(value.type);
      const bool as_is = schema.on(DeviceKind::Cpu) == plain;
      slot(index).constant = as_is ? *value.constant : adapt_constant(*value.constant, plain, schema);
      slot(index).constant.data();
      return held_[key] = index;
    }
    const auto made = made_.find(&value);
    Schema from = plain_schema(value.type);
    int source = -1;
    if (made != made_.end()) {
      source = made->second.first;
      from = made->second.second;
    } else {
      source = held_.at({&value, from.to_string()});
    }
    if (!is_known(value.type)) start_region();  // a counted step made it
    if (const auto between = intermediate_schema(from, schema)) {
      source = slot_of(value, *between);
      from = *between;
    }
    const bool is_result = graph_.is_output(&value) && schema == plain_schema(value.type);
    const int index = add_slot(value, is_result ? Slot::Storage::Result : Slot::Storage::Arena, schema);
    held_[key] = index;
    written_in_[index] = block_->regions.size();
    Item item;
    item.what = conversion_step(value.type, from, schema, source, index);
    item.node = value.producer ? value.producer->name : value.name;
    item.op = "neo.Adapt";
    item.device = schema.device == DeviceKind::Cpu ? from.device : schema.device;
    item.routine = adapt_name(from, schema);
    const SelectionProblem::Conversion* conversion = problem_.conversion(value, from, schema);
    const double estimate_us = adapt_time_us(value.type, from, schema, target_);
    item.estimate_us = conversion ? conversion->time_us : estimate_us;
    item.alone_us = item.estimate_us;
    if (estimate_us > 0) item.alone_us *= adapt_time_us(value.type, from, schema, alone_) / estimate_us;
    item.bytes = value.shape().element_count() * Dim(2 * item_bytes(value.dtype()));
    emit_item(std::move(item));
    return index;
  }

  StepItem conversion_step(const Type& type, const Schema& from, const Schema& to, int source, int place) {
    StepSpec spec;
    spec.workload = type.to_string();
    spec.inputs = {from};
    spec.outputs = {to};
    return {make_adapt(type, from, to, target_), std::make_shared<StepSpec>(std::move(spec)), {source}, {place}};
  }

  // A group with inner outputs stands before some nodes whose results it reads: they are emitted first.
  void emit_in_order(const Node& node) {
    if (live_.count(&node) == 0 || !emitted_.insert(&node).second) return;
    for (const Value* v : chosen_.read_values(node)) {
      if (const Node* maker = chosen_.maker(*v)) emit_in_order(*maker);
    }
    emit(node);
  }

  void emit(const Node& node) {
    const SelectionProblem::Choice& choice = chosen_.of(node);
    if (choice.absorbed_by != -1) return;
    if (!choice.candidate) {
      node.op == "If" ? emit_if(node) : emit_loop(node);
      return;
    }
    add_guards(*choice.candidate->workload);
    if (node.op == "neo.Dims") {
      emit_dims(node);
      return;
    }
    switch (choice.candidate->kind) {
      case Candidate::Kind::Step:
      case Candidate::Kind::Host:
      case Candidate::Kind::DataDependent:
        emit_step(node, *choice.candidate);
        break;
      case Candidate::Kind::View:
        emit_view(node, *choice.candidate);
        break;
      case Candidate::Kind::ConcatInPlace:
        emit_concat_in_place(node, *choice.candidate);
        break;
    }
  }

  void add_guards(const Workload& workload) {
    for (const Node* node : workload.nodes) {
      for (const Guard& guard : node->guards) {
        if (is_known(guard.left) && is_known(guard.right)) region().guards.push_back(guard);
      }
    }
  }

  void emit_step(const Node& node, const Candidate& candidate) {
    const bool open = candidate.kind == Candidate::Kind::Host || candidate.kind == Candidate::Kind::DataDependent;
    const Workload& workload = *candidate.workload;
    if (candidate.kind != Candidate::Kind::Host) {
      for (size_t i = 0; i < workload.inputs.size(); ++i) {
        if (candidate.inputs[i]) need_known(workload.inputs[i]->type, node);
      }
    }
    if (!open) {
      for (const Value* v : workload.outputs) need_known(v->type, node);
    }
    StepItem call = std::move(steps_.at(&candidate));
    for (size_t i = 0; i < workload.inputs.size(); ++i) {
      if (candidate.inputs[i]) call.inputs.push_back(slot_of(*workload.inputs[i], *candidate.inputs[i]));
    }
    for (size_t i = 0; i < workload.outputs.size(); ++i) {
      const int reused = i == 0 ? in_place_slot(candidate) : -1;
      call.outputs.push_back(reused >= 0 ? view_output(*workload.outputs[i], candidate.outputs[i], reused, 0)
                                         : add_output(*workload.outputs[i], candidate.outputs[i], open));
    }
    Item item;
    item.what = std::move(call);
    if (!candidate.outputs.empty()) item.device = candidate.outputs.front().device;
    describe(item, node, candidate.text(), candidate.cost.time_us, workload.work(ops_));
    item.alone_us = time_alone_us(candidate, target_, alone_, ops_);
    emit_item(std::move(item));
  }

  int view_output(const Value& inner_value, const Schema& schema, int base, const Dim& offset) {
    const Value& value = *problem_.outer(&inner_value);
    const int index = add_slot(value, Slot::Storage::View, schema);
    slot(index).base = base;
    slot(index).offset = offset;
    has_views_.insert(base);
    held_[{&value, schema.to_string()}] = index;
    made_[&value] = {index, schema};
    return index;
  }

  // The slot of the input whose memory the first output may take over; -1 where somebody else still reads it.
  int in_place_slot(const Candidate& candidate) {
    if (candidate.in_place < 0 || graph_.is_output(problem_.outer(candidate.workload->outputs.front()))) return -1;
    const auto i = static_cast<size_t>(candidate.in_place);
    const Value* input = problem_.outer(candidate.workload->inputs[i]);
    if (!candidate.inputs[i] || *candidate.inputs[i] != candidate.outputs.front() || input->is_constant() ||
        reads_[input] != 1)
      return -1;
    const int index = held_.at({input, candidate.inputs[i]->to_string()});
    const auto region_written = written_in_.find(index);
    if (slot(index).storage != Slot::Storage::Arena || region_written == written_in_.end() || has_views_.count(index))
      return -1;
    return region_written->second == block_->regions.size() ? index : -1;
  }

  void emit_view(const Node& node, const Candidate& candidate) {
    const Workload& workload = *candidate.workload;
    for (const Value* v : workload.outputs) need_known(v->type, node);
    const int base = slot_of(*workload.inputs.front(), *candidate.inputs.front());
    for (size_t i = 0; i < workload.outputs.size(); ++i) {
      view_output(*workload.outputs[i], candidate.outputs[i], base, candidate.offsets[i]);
    }
  }

  // Follows views that cover all of their base, as in-place steps and reshapes make them.
  int whole_memory(int index) {
    while (slot(index).storage == Slot::Storage::View && slot(index).offset.is(0)) {
      const int base = slot(index).base;
      if (slot(base).type.shape.element_count() != slot(index).type.shape.element_count()) break;
      if (slot(base).layout.is_blocked() != slot(index).layout.is_blocked()) break;
      index = base;
    }
    return index;
  }

  void emit_concat_in_place(const Node& node, const Candidate& candidate) {
    const Workload& workload = *candidate.workload;
    const Value& output = *workload.outputs.front();
    for (const Value* v : workload.inputs) need_known(v->type, node);
    need_known(output.type, node);
    const size_t here = block_->regions.size();
    std::vector<int> pieces;
    for (size_t i = 0; i < workload.inputs.size(); ++i)
      pieces.push_back(slot_of(*workload.inputs[i], *candidate.inputs[i]));
    const int whole = add_output(output, candidate.outputs.front(), false);
    has_views_.insert(whole);
    for (size_t p = 0; p < candidate.offsets.size(); ++p) {
      // A Concat may name one input twice; `offsets` follows the node's inputs.
      const Value* value = node.inputs[p];
      const auto i = static_cast<size_t>(workload.input_index(value));
      const int piece = whole_memory(pieces[i]);
      const auto written = written_in_.find(piece);
      if (slot(piece).storage == Slot::Storage::Arena && piece != whole && written != written_in_.end() &&
          written->second == here) {
        slot(piece).storage = Slot::Storage::View;
        slot(piece).base = whole;
        slot(piece).offset = candidate.offsets[p];
        continue;
      }
      const int place = add_slot(*value, Slot::Storage::View, candidate.outputs.front());
      slot(place).base = whole;
      slot(place).offset = candidate.offsets[p];
      Item item;
      item.what = conversion_step(value->type, *candidate.inputs[i], *candidate.inputs[i], pieces[i], place);
      describe(item, node, str("cpu:adapt/copy ", candidate.inputs[i]->to_string()), 0, {});
      item.bytes = value->shape().element_count() * Dim(2 * item_bytes(value->dtype()));
      emit_item(std::move(item));
    }
  }

  void emit_dims(const Node& node) {
    const Value& output = *node.outputs.front();
    DimsItem dims{std::get<std::vector<Dim>>(node.attrs.at("dims")), 0};
    for (const Dim& d : dims.elements) {
      if (!is_known(d)) {
        start_region();
        break;
      }
    }
    need_known(output.type, node);
    dims.output = add_output(output, plain_schema(output.type), false);
    // Sizes are written to memory of their own: nothing may become a view into another value.
    written_in_.erase(dims.output);
    Item item;
    item.what = std::move(dims);
    describe(item, node, "cpu:int64/dims", 0, {});
    emit_item(std::move(item));
  }

  std::shared_ptr<const Block> lower_body(const Graph& body) {
    bool has_new_sizes = false;
    visit_new_sizes([&](const Symbol&, int, int) { has_new_sizes = true; });
    if (has_new_sizes) start_region();
    return BlockBuilder(body, problem_, choices_, ops_, target_, team_, constants_, known_).build();
  }

  int owned_output(const Value* value) {
    if (!value) return -1;
    const Schema schema = plain_schema(value->type);
    const int index = add_slot(*value, Slot::Storage::Dynamic, schema);
    held_[{value, schema.to_string()}] = index;
    made_[value] = {index, schema};
    return index;
  }

  int plain_slot(const Value* value) { return value ? slot_of(*value, plain_schema(value->type)) : -1; }

  void emit_if(const Node& node) {
    IfItem item;
    item.predicate = plain_slot(node.inputs.front());
    for (size_t i = 1; i < node.inputs.size(); ++i) item.arguments.push_back(plain_slot(node.inputs[i]));
    item.then_block = lower_body(node.body("then_branch"));
    item.else_block = lower_body(node.body("else_branch"));
    for (const Value* v : node.outputs) item.results.push_back(owned_output(v));
    Item out;
    out.what = std::move(item);
    describe(out, node, "cpu/if", 0, {});
    emit_item(std::move(out));
  }

  void emit_loop(const Node& node) {
    const Graph& body = node.body("body");
    const auto captured = static_cast<size_t>(node.int_attr("num_captured", 0));
    LoopItem item;
    size_t first = 0;
    size_t scanned = 0;
    if (node.op == "Loop") {
      item.trip_count = plain_slot(node.inputs[0]);
      item.condition = plain_slot(node.inputs[1]);
      first = 2;
    } else {
      item.kind = LoopItem::Kind::Scan;
      scanned = static_cast<size_t>(node.int_attr("num_scan_inputs", 0));
    }
    const size_t carried_end = node.inputs.size() - captured - scanned;
    for (size_t i = first; i < carried_end; ++i) item.carried.push_back(plain_slot(node.inputs[i]));
    for (size_t i = carried_end; i < carried_end + scanned; ++i) item.scanned.push_back(plain_slot(node.inputs[i]));
    for (size_t i = carried_end + scanned; i < node.inputs.size(); ++i)
      item.captured.push_back(plain_slot(node.inputs[i]));
    item.scanned_axes = axes_of(node, "scan_input_axes", "scan_input_directions", scanned);
    item.collected_axes =
        axes_of(node, "scan_output_axes", "scan_output_directions", node.outputs.size() - item.carried.size());
    item.body = lower_body(body);
    for (const Value* v : node.outputs) item.results.push_back(owned_output(v));
    Item out;
    out.what = std::move(item);
    describe(out, node, node.op == "Loop" ? "cpu/loop" : "cpu/scan", 0, {});
    emit_item(std::move(out));
  }

  static std::vector<LoopItem::Axis> axes_of(const Node& node, std::string_view axes, std::string_view directions,
                                             size_t count) {
    const auto a = node.ints_attr(axes, std::vector<int64_t>(count, 0));
    const auto d = node.ints_attr(directions, std::vector<int64_t>(count, 0));
    NEO_CHECK(a.size() == count && d.size() == count, Model, node.op, axes, " and ", directions,
              " must have one entry per tensor. Got ", a.size(), " and ", d.size(), ", expected ", count, " - at ",
              node.place());
    std::vector<LoopItem::Axis> out;
    for (size_t i = 0; i < count; ++i) out.push_back({static_cast<int>(a[i]), d[i] != 0});
    return out;
  }

  const Graph& graph_;
  const SelectionProblem& problem_;
  const std::vector<int>& choices_;
  const Chosen chosen_;
  const std::vector<const Node*> nodes_;  // that compute the graph, those of inner graphs in their places
  const OpRegistry& ops_;
  const Target& target_;
  const Target alone_;  // with one thread
  Team& team_;
  SourceConstants constants_;
  KnownSizes known_;
  std::shared_ptr<Block> block_ = std::make_shared<Block>();
  std::set<const Node*> live_, emitted_;
  std::map<const Candidate*, StepItem> steps_;  // slots are not filled in
  std::map<const Value*, int> reads_;
  std::map<Key, int> held_;
  std::map<const Value*, std::pair<int, Schema>> made_;  // as its producer gave it
  std::map<int, size_t> written_in_;                     // by slot: number of regions when its writer was emitted
  std::set<int> has_views_;                              // slots that others are parts of: never written in place
  std::set<std::pair<int, int>> sourced_;
};

}  // namespace

std::shared_ptr<const Plan> lower(const Graph& graph, const SelectionProblem& problem, const std::vector<int>& choices,
                                  double total_us, const OpRegistry& ops, const Target& target, Team& team,
                                  Denormals denormals, SourceConstants constants) {
  NEO_ASSERT(choices.size() == problem.costs.size());
  // Values computed from constants now have the bits that a call would give them.
  const FloatModeScope mode(denormals);
  auto plan = std::make_shared<Plan>();
  plan->root = BlockBuilder(graph, problem, choices, ops, target, team, constants, {}).build();
  for (const Value* v : graph.inputs) plan->input_names.push_back(v->name);
  for (const Value* v : graph.outputs) plan->output_names.push_back(v->name);
  plan->estimate_us = time_behind(problem, choices, total_us, target);
  plan->device = target.device;
  plan->denormals = denormals;
  if (knob_bool(Knob::Verify)) verify_plan(*plan);
  return plan;
}

}  // namespace neo
