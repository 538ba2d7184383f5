#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "ops/families.h"
#include "routines/cpu/conv/depthwise/depthwise.h"
#include "saved/compact_parts.h"
#include "saved/format.h"
#include "saved/steps.h"

namespace neo {
namespace compact {

class Writer {
 public:
  Writer(const FileBytes& file, const OpRegistry& ops, const RoutineTable& routines, CompactModule& out)
      : file_(file), ops_(ops), routines_(routines), out_(out) {}

  static constexpr bool kReads = false;

  void number(int64_t& x) {
    uint64_t coded = static_cast<uint64_t>(x) << 1 ^ static_cast<uint64_t>(x >> 63);
    for (; coded >= 0x80; coded >>= 7) byte(static_cast<uint8_t>(coded | 0x80));
    byte(static_cast<uint8_t>(coded));
  }
  void real(double& x) { raw(&x, sizeof x); }
  void text(std::string& x) {
    count(std::ssize(x));
    raw(x.data(), x.size());
  }

  void dim(Dim& x) {
    const Dim::Terms* polynomial = DimAccess::terms(x);
    count(polynomial ? std::ssize(polynomial->terms) : 0);
    count(DimAccess::constant(x));
    if (!polynomial) return;
    for (const Term& term : polynomial->terms) {
      count(term.coefficient);
      count(std::ssize(term.atoms));
      for (const AtomRef& atom : term.atoms) {
        count(static_cast<int64_t>(atom->kind));
        if (atom->kind == Atom::Kind::Symbol) {
          Symbol symbol = atom->symbol;
          io(*this, symbol);
        } else {
          std::vector<Dim> args = atom->args;
          io(*this, args);
        }
      }
    }
  }

  void tensor(Tensor& x) {
    if (!x.defined()) return count(kUndefined);
    DType dtype = x.dtype();
    Dims dims = x.dims();
    const auto* data = x.is_absent() ? nullptr : static_cast<const std::byte*>(x.data());
    const std::byte* begin = file_.bytes.data();
    const bool is_in_file = data && begin <= data && data < begin + file_.bytes.size();
    count(x.is_absent() ? kAbsent : is_in_file ? kInFile : kInPlan);
    io(*this, dtype);
    io(*this, dims);
    if (is_in_file) {
      count(data - begin);
      if (!is_float(dtype) || is_fact_) spans_.push_back({data - begin, data - begin + x.bytes()});
    } else if (data && dtype == DType::String) {
      for (int64_t i = 0; i < x.size(); ++i) text(x.strings()[i]);
    } else if (data) {
      raw(data, static_cast<size_t>(x.bytes()));
    }
  }

  void at(const Item&) {}

  void step(StepItem& x) {
    const StepSpec& spec = *x.spec;
    PartStep part;
    part.inputs = spec.inputs;
    part.outputs = spec.outputs;
    part.in_place = spec.in_place;
    part.schedule.assign(spec.schedule.begin(), spec.schedule.end());
    part.packed = spec.packed;
    if (x.step->kind() == Step::Kind::Host) part.kind = Candidate::Kind::Host;
    if (spec.routine.empty()) {
      part.values.emplace_back().type = Type::parse(spec.workload, symbols_);
    } else {
      const WorkloadFacts facts = facts_of(spec);
      const ParsedWorkload parsed = parse_workload(spec.workload, ops_, &facts);
      add_members(*parsed.graph, part);
      part.maker = maker_of(spec.routine);
      if (spec.routine == "cpu/reference") add_family(parsed.workload.root().op);
    }
    io(*this, part.maker);
    io(*this, part.kind);
    is_fact_ = true;
    io(*this, part.values);
    is_fact_ = false;
    io(*this, part.nodes);
    io(*this, part.inputs);
    io(*this, part.outputs);
    io(*this, part.schedule);
    io(*this, part.in_place);
    io(*this, part.packed);
  }

  void collect(const Block& block) {
    for (const Slot& slot : block.slots) {
      if (slot.type.is_tensor() && slot.type.shape.has_rank()) {
        for (const Dim& d : slot.type.shape.dims()) d.collect_symbols(known_);
      }
    }
  }

  std::vector<std::byte> take() { return std::move(bytes_); }
  std::vector<FileSpan> spans() const { return spans_; }

 private:
  void count(int64_t x) { number(x); }
  void byte(uint8_t x) { bytes_.push_back(static_cast<std::byte>(x)); }
  void raw(const void* from, size_t size) {
    const auto* p = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), p, p + size);
  }

  void add_members(const Graph& graph, PartStep& part) {
    std::map<const Value*, int> numbers;
    const auto number_of = [&](const Value* value) {
      if (!value) return -1;
      const auto [it, is_new] = numbers.emplace(value, static_cast<int>(part.values.size()));
      if (is_new) part.values.push_back({value->name, value->type, value->constant, value->contents});
      return it->second;
    };
    for (const auto& node : graph.nodes()) {
      if (node->op == "Conv") add_form(*node);
      PartNode& member = part.nodes.emplace_back();
      member.op = node->op;
      member.attrs.assign(node->attrs.begin(), node->attrs.end());
      for (const Value* v : node->inputs) member.inputs.push_back(number_of(v));
      for (const Value* v : node->outputs) member.outputs.push_back(number_of(v));
    }
  }

  void add_form(const Node& node) {
    const std::vector<Dim>& weight = node.inputs[1]->shape().dims();
    if (weight[1] != Dim(1)) return;
    const Dim width = weight.back();
    const int64_t stride = node.ints_attr("strides", {1}).back(), dilation = node.ints_attr("dilations", {1}).back();
    out_.depthwise_forms |= 1u << (width.is_constant() ? depthwise_form(width.value(), stride, dilation) : 0);
  }

  int maker_of(std::string_view routine) {
    const auto& all = routines_.all();
    const auto it = std::find_if(all.begin(), all.end(), [&](const auto& r) { return r->name() == routine; });
    NEO_ASSERT(it != all.end(), "no routine is called ", routine);
    return number_in(out_.makers, standard_routine_makers()[static_cast<size_t>(it - all.begin())]);
  }
  void add_family(std::string_view op) { number_in(out_.families, op_family(op)); }

  static int number_in(std::vector<std::string_view>& names, std::string_view name) {
    const auto it = std::find(names.begin(), names.end(), name);
    const auto number = static_cast<int>(it - names.begin());
    if (it == names.end()) names.push_back(name);
    return number;
  }

  const FileBytes& file_;
  const OpRegistry& ops_;
  const RoutineTable& routines_;
  CompactModule& out_;
  std::vector<std::byte> bytes_;
  std::vector<FileSpan> spans_;
  std::map<std::string, Symbol> known_;
  SymbolLookup symbols_ = [this](std::string_view name) -> std::optional<Symbol> {
    const auto it = known_.find(std::string(name));
    return it == known_.end() ? std::nullopt : std::optional(it->second);
  };
  bool is_fact_ = false;  // what is being written may have shaped the plan
};

template <>
void io(Writer& a, std::shared_ptr<const Block>& x) {
  Block block = *x;
  a.collect(block);
  io(a, block);
}

}  // namespace compact

CompactModule write_compact(const SavedModule& module, const FileBytes& file) {
  using compact::Writer;
  NEO_CHECK(!module.target.has_device(), Unsupported, "export",
            "a module must be for the CPU to be exported. Got one for ", module.target.name);
  CompactModule out;
  Writer plan(file, standard_ops(), standard_routines(), out);
  Plan copy = *module.plan;
  io(plan, copy.input_names);
  io(plan, copy.output_names);
  io(plan, copy.denormals);
  io(plan, copy.root);

  compact::PartHead head;
  head.file_bytes = std::ssize(file.bytes);
  uint64_t header = 0;
  std::memcpy(&header, file.bytes.data(), sizeof header);
  head.spans = plan.spans();
  head.spans.insert(head.spans.begin(), {0, static_cast<int64_t>(header + sizeof header)});
  std::vector<std::span<const std::byte>> pieces;
  for (const FileSpan& s : head.spans)
    pieces.push_back(file.bytes.subspan(static_cast<size_t>(s.begin), static_cast<size_t>(s.end - s.begin)));
  const Sha256 digest = sha256(pieces);
  head.digest.assign(digest.begin(), digest.end());
  head.target = module.target;
  head.notes.assign(module.notes.begin(), module.notes.end());
  Writer whole(file, standard_ops(), standard_routines(), out);
  io(whole, head);
  out.bytes = whole.take();
  const std::vector<std::byte> rest = plan.take();
  out.bytes.insert(out.bytes.end(), rest.begin(), rest.end());
  return out;
}

}  // namespace neo
