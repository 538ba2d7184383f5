#include "saved/steps.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "ir/text.h"
#include "routines/space.h"

namespace neo {
namespace {

constexpr int64_t kMaxStepBlock = 64;

void check_schema(const Schema& schema) {
  for (const Layout::Block& b : schema.layout.blocks()) {
    NEO_CHECK(b.size <= kMaxStepBlock, Model, "load", "the block of a layout must be at most ", kMaxStepBlock, ". Got ",
              schema.layout.to_string());
  }
}

Schema read_schema(const Json& text) {
  Schema schema = Schema::parse(text.as_string());
  check_schema(schema);
  return schema;
}

}  // namespace

Dim read_dim(const Json& json, const SymbolLookup& symbols) {
  if (json.is_string()) return Dim::parse(json.as_string(), symbols);
  return json.as_int(-kMaxExtent, kMaxExtent);
}

namespace {

const Json::Array& list_at(const Json& object, std::string_view key) {
  static const Json::Array kNone;
  const Json* found = object.find(key);
  return found ? found->as_array() : kNone;
}

StepSpec read_step_spec(const Json& json, const SavedBlobs& blobs, const SymbolLookup& symbols) {
  StepSpec spec;
  spec.routine = json.at("routine").as_string();
  spec.workload = json.at("workload").as_string();
  for (const Json& s : json.at("inputs").as_array())
    spec.inputs.push_back(s.is_null() ? std::nullopt : std::optional(read_schema(s)));
  for (const Json& s : json.at("outputs").as_array()) spec.outputs.push_back(read_schema(s));
  if (const Json* schedule = json.find("schedule")) {
    for (const auto& [key, value] : schedule->as_object())
      spec.schedule.emplace(key, value.as_int(INT64_MIN, INT64_MAX));
  }
  if (const Json* in_place = json.find("in_place"))
    spec.in_place = static_cast<int>(in_place->as_int(0, static_cast<int64_t>(spec.inputs.size()) - 1));
  for (const Json& t : list_at(json, "packed")) spec.packed.push_back(blobs.get(t));
  for (const Json& t : list_at(json, "constants")) spec.constants.push_back(t.is_null() ? Tensor() : blobs.get(t));
  if (const Json* contents = json.find("contents")) {
    for (const auto& [input, elements] : contents->as_object()) {
      for (const Json& e : elements.as_array()) spec.contents[input].push_back(read_dim(e, symbols));
    }
  }
  if (const Json* attributes = json.find("attributes")) {
    for (const auto& [hash, value] : attributes->as_object()) spec.attributes.emplace(hash, blobs.get(value));
  }
  return spec;
}

// The constant "k7" of a workload is entry 7; anything else is an attribute by its hash.
std::optional<Tensor> find_constant(const StepSpec& spec, std::string_view name) {
  if (const auto it = spec.attributes.find(std::string(name)); it != spec.attributes.end()) return it->second;
  size_t number = 0;
  if (!name.starts_with("k") || name.size() > 9) return std::nullopt;
  for (const char c : name.substr(1)) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<size_t>(c - '0');
  }
  if (number >= spec.constants.size() || !spec.constants[number].defined()) return std::nullopt;
  return spec.constants[number];
}

bool is_same(const Candidate& offered, const StepSpec& spec) {
  return offered.kind != Candidate::Kind::View && offered.kind != Candidate::Kind::ConcatInPlace &&
         offered.inputs == spec.inputs && offered.outputs == spec.outputs && offered.schedule == spec.schedule &&
         offered.in_place == spec.in_place;
}

void collect(const Type& type, std::map<std::string, Symbol>& symbols) {
  if (!type.is_tensor() || !type.shape.has_rank()) return;
  for (const Dim& d : type.shape.dims()) d.collect_symbols(symbols);
}

}  // namespace

WorkloadFacts facts_of(const StepSpec& spec) {
  WorkloadFacts facts;
  facts.constants = [&spec](std::string_view name) { return find_constant(spec, name); };
  facts.contents = spec.contents;
  return facts;
}

SavedStep StepMaker::make_conversion(StepSpec spec, const SymbolLookup& symbols) const {
  const Type type = Type::parse(spec.workload, symbols);
  NEO_CHECK(spec.inputs.size() == 1 && spec.inputs[0] && spec.outputs.size() == 1, Model, "load",
            "a conversion must have one schema on each side. Got ", spec.inputs.size(), " and ", spec.outputs.size());
  const Schema &from = *spec.inputs[0], &to = spec.outputs[0];
  NEO_CHECK(type.is_tensor() && type.shape.has_rank() && from.dtype == type.dtype &&
                from.layout.rank() == type.shape.rank() && std::isfinite(adapt_time_us(type, from, to, target_)),
            Model, "load", "a conversion must be one that neo has. Got ", type.to_string(), " from ", from.to_string(),
            " to ", to.to_string());
  SavedStep made;
  made.item.step = make_adapt(type, from, to, target_);
  made.reads.push_back({type, from});
  made.writes.push_back({type, to});
  collect(type, made.symbols);
  made.item.spec = std::make_shared<StepSpec>(std::move(spec));
  return made;
}

std::string StepMaker::with_formulas(const std::string& workload) const {
  const size_t where = workload.rfind(" where ");
  if (formulas_.empty() || where == std::string::npos) return workload;
  const std::string_view declared = std::string_view(workload).substr(where);
  const auto is_declared = [&](const std::string& name) {
    const std::string entry = print_name(name) + " in [";
    return declared.find(" " + entry) != std::string_view::npos;
  };
  std::string text = workload;
  for (const Symbol& s : formulas_) {
    std::map<std::string, Symbol> used;
    s.formula->collect_symbols(used);
    if (is_declared(s.name) ||
        !std::all_of(used.begin(), used.end(), [&](const auto& u) { return is_declared(u.first); }))
      continue;
    text += str(", ", print_name(s.name), " in [", s.range.lo, ",", s.range.hi, "]");
    if (s.hint > 0) text += str(" hint ", s.hint);
    text += " = [" + s.formula->to_string() + "]";
  }
  return text;
}

// A point of the space is made without looking for the best one, as candidates() does.
std::optional<Candidate> StepMaker::find_offered(const Routine& routine, const Workload& workload,
                                                 const StepSpec& spec) const {
  if (routine.space(workload, target_).find(spec.schedule)) {
    Candidate point = routine.candidate(workload, target_, ops_, spec.schedule);
    if (is_same(point, spec)) return point;
  }
  for (Candidate& offered : routine.candidates(workload, target_, ops_)) {
    if (is_same(offered, spec)) return std::move(offered);
  }
  return std::nullopt;
}

SavedStep StepMaker::make(const Json& json, const std::string& node, const SymbolLookup& symbols) const {
  StepSpec spec = read_step_spec(json, blobs_, symbols);
  if (spec.routine.empty()) return make_conversion(std::move(spec), symbols);
  const Routine* routine = routines_.find(spec.routine);
  NEO_CHECK(routine, Unsupported, "load", "a saved module must use routines that this neo has. Got \"", spec.routine,
            "\"\nHint: compile the model again.");
  const WorkloadFacts facts = facts_of(spec);
  ParsedWorkload parsed = parse_workload(with_formulas(spec.workload), ops_, &facts);
  const Node& root = parsed.workload.root();
  parsed.graph->nodes().back()->name = node;

  const auto refuse = [&](std::string_view why) {
    fail(ErrorKind::Unsupported, "load",
         str("a routine must take what it is saved with. Got ", spec.routine, " for ", spec.workload.substr(0, 200),
             ": ", why, "\nHint: a module that another release of neo saved must be compiled again."));
  };
  for (const Node* member : parsed.workload.nodes) {
    if (!member->bodies.empty() || !ops_.find(member->op)) refuse("a step has no bodies");
  }
  const std::vector<const Routine*> offered = routines_.for_root(root.op);
  if (std::find(offered.begin(), offered.end(), routine) == offered.end()) refuse("it does not end in that operator");
  const std::vector<Workload> groups = routine->matches(root, parsed.graph->users(), *parsed.graph);
  const auto group =
      std::find_if(groups.begin(), groups.end(), [&](const Workload& w) { return w.nodes == parsed.workload.nodes; });
  if (group == groups.end()) refuse("it does not take that group");
  if (const auto reason = routine->rejects(*group, target_)) refuse(*reason);
  const auto workload = std::make_shared<const Workload>(*group);
  std::optional<Candidate> candidate = find_offered(*routine, *workload, spec);
  if (!candidate) refuse("it does not offer that candidate");
  candidate->routine = routine;
  candidate->workload = workload;

  PackedStore packed(spec.packed);
  SavedStep made;
  made.item.step = routine->make(*candidate, target_, ops_, packed);
  packed.check_all_taken();
  const bool is_host = made.item.step->kind() == Step::Kind::Host;
  if (is_host != (candidate->kind == Candidate::Kind::Host)) refuse("its step is of another kind");
  made.is_data_dependent = candidate->kind == Candidate::Kind::DataDependent;

  NEO_CHECK(spec.inputs.size() == workload->inputs.size() && spec.outputs.size() == workload->outputs.size(), Model,
            "load", "a candidate must have a schema for every operand. Got ", spec.inputs.size(), " and ",
            spec.outputs.size());
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const Value& value = *workload->inputs[i];
    collect(value.type, made.symbols);
    if (static_cast<int>(i) == spec.in_place) made.in_place = static_cast<int>(made.reads.size());
    if (!spec.inputs[i]) continue;
    const bool has_contents = value.constant && !value.constant->is_absent();
    made.reads.push_back({value.type, *spec.inputs[i], has_contents ? &*value.constant : nullptr, value.is_constant()});
  }
  for (size_t i = 0; i < spec.outputs.size(); ++i) made.writes.push_back({workload->outputs[i]->type, spec.outputs[i]});
  for (const Node* member : workload->nodes)
    made.guards.insert(made.guards.end(), member->guards.begin(), member->guards.end());
  made.graph = std::move(parsed.graph);
  made.item.spec = std::make_shared<StepSpec>(std::move(spec));
  return made;
}

}  // namespace neo
