#include <cstring>

#include "base/check.h"
#include "saved/compact_parts.h"

namespace neo {
namespace compact {

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const FileBytes& file, std::span<const MakeStep> makers,
         const OpRegistry& ops)
      : bytes_(bytes), file_(file), makers_(makers), ops_(ops) {}

  static constexpr bool kReads = true;

  // Seven bits to a byte, the lowest first; the sign is the lowest bit.
  [[gnu::noinline]] void number(int64_t& x) {
    uint64_t coded = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      coded |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) break;
    }
    x = static_cast<int64_t>(coded >> 1) ^ -static_cast<int64_t>(coded & 1);
  }
  void real(double& x) { raw(&x, sizeof x); }
  [[gnu::noinline]] void text(std::string& x) {
    x.resize(static_cast<size_t>(count()));
    raw(x.data(), x.size());
  }

  [[gnu::noinline]] void dim(Dim& x) {
    const int64_t terms = count();
    x = count();
    for (int64_t i = 0; i < terms; ++i) {
      Dim product = count();
      for (int64_t atoms = count(); atoms > 0; --atoms) product = product * atom();
      x = x + product;
    }
  }

  [[gnu::noinline]] void tensor(Tensor& x) {
    const int64_t form = count();
    if (form == kUndefined) return;
    DType dtype = DType::Undefined;
    Dims dims;
    io(*this, dtype);
    io(*this, dims);
    switch (form) {
      case kInFile: {
        auto* data = const_cast<std::byte*>(file_.bytes.data()) + count();  // nothing writes to a constant
        x = Tensor(dtype, std::move(dims), data, file_.owner);
        break;
      }
      case kAbsent:
        x = Tensor::absent(dtype, std::move(dims));
        break;
      default:
        x = Tensor(dtype, std::move(dims));
        if (dtype == DType::String) {
          for (int64_t i = 0; i < x.size(); ++i) text(x.strings()[i]);
        } else {
          raw(x.data(), static_cast<size_t>(x.bytes()));
        }
    }
  }

  void at(const Item& item) { node_name_ = item.node; }

  void step(StepItem& x) {
    PartStep part;
    io(*this, part);
    auto spec = std::make_shared<StepSpec>();
    spec->inputs = part.inputs;
    spec->in_place = part.in_place;
    x.spec = std::move(spec);
    if (part.maker < 0) {
      x.step = make_host_adapt(part.values[0].type, *part.inputs[0], part.outputs[0], target);
      return;
    }
    std::vector<std::unique_ptr<Value>> values;
    std::vector<std::unique_ptr<Node>> nodes;
    for (PartValue& v : part.values) {
      auto& value = *values.emplace_back(std::make_unique<Value>());
      value.name = std::move(v.name);
      value.type = std::move(v.type);
      value.constant = std::move(v.constant);
      value.contents = std::move(v.contents);
    }
    std::vector<const Node*> members;
    for (PartNode& n : part.nodes) {
      Node& node = *nodes.emplace_back(std::make_unique<Node>());
      members.push_back(&node);
      node.op = std::move(n.op);
      for (const int i : n.inputs) node.inputs.push_back(i < 0 ? nullptr : values[static_cast<size_t>(i)].get());
      for (const int i : n.outputs) {
        Value* value = i < 0 ? nullptr : values[static_cast<size_t>(i)].get();
        if (value) value->producer = &node;
        if (value) value->output_index = static_cast<int>(node.outputs.size());
        node.outputs.push_back(value);
      }
      for (auto& [key, attr] : n.attrs) node.attrs.emplace(key, std::move(attr));
    }
    nodes.back()->name = node_name_;
    Candidate candidate;
    candidate.workload = std::make_shared<const Workload>(Workload::parsed(std::move(members)));
    candidate.kind = part.kind;
    candidate.inputs = std::move(part.inputs);
    candidate.outputs = std::move(part.outputs);
    for (const auto& [key, value] : part.schedule) candidate.schedule.emplace(key, value);
    candidate.in_place = part.in_place;
    PackedStore packed(std::move(part.packed));
    x.step = makers_[static_cast<size_t>(part.maker)](candidate, target, ops_, packed);
  }

  Target target;

 private:
  [[gnu::noinline]] int64_t count() {
    int64_t x = 0;
    number(x);
    return x;
  }
  void raw(void* to, size_t size) {
    if (size > 0) std::memcpy(to, bytes_.data() + at_, size);
    at_ += size;
  }

  [[gnu::noinline]] Dim atom() {
    const auto kind = static_cast<Atom::Kind>(count());
    if (kind == Atom::Kind::Symbol) {
      Symbol symbol;
      io(*this, symbol);
      return Dim::symbol(std::move(symbol));
    }
    std::vector<Dim> args;
    io(*this, args);
    Dim x = args[0];
    for (size_t i = 1; i < args.size(); ++i) {
      switch (kind) {
        case Atom::Kind::FloorDiv:
          x = floordiv(x, args[i]);
          break;
        case Atom::Kind::Mod:
          x = mod(x, args[i]);
          break;
        case Atom::Kind::Min:
          x = min(x, args[i]);
          break;
        case Atom::Kind::Max:
          x = max(x, args[i]);
          break;
        default:
          x = broadcast(x, args[i]);
      }
    }
    return x;
  }

  std::span<const std::byte> bytes_;
  const FileBytes& file_;
  std::span<const MakeStep> makers_;
  const OpRegistry& ops_;
  std::string node_name_;
  size_t at_ = 0;
};

template <>
void io(Reader& a, std::shared_ptr<const Block>& x) {
  auto block = std::make_shared<Block>();
  io(a, *block);
  plan_memory(*block);
  x = std::move(block);
}

}  // namespace compact

SavedModule read_compact(std::span<const std::byte> bytes, const FileBytes& file, std::span<const MakeStep> makers,
                         const OpRegistry& ops) {
  compact::Reader reader(bytes, file, makers, ops);
  compact::PartHead head;
  io(reader, head);
  bool is_same = file.bytes.size() == static_cast<size_t>(head.file_bytes);
  if (is_same) {
    std::vector<std::span<const std::byte>> pieces;
    for (const FileSpan& s : head.spans)
      pieces.push_back(file.bytes.subspan(static_cast<size_t>(s.begin), static_cast<size_t>(s.end - s.begin)));
    const Sha256 digest = sha256(pieces);
    is_same = std::memcmp(digest.data(), head.digest.data(), digest.size()) == 0;
  }
  NEO_CHECK(is_same, Unsupported, "load", "an exported library runs the module that it was exported from. Got another");
  NEO_CHECK(head.target.isa.is_subset_of(host_isa()), Unsupported, "load",
            "a saved module must be for an instruction set that runs here. Got ", isa_name(head.target.isa),
            ", expected ", isa_name(host_isa()), " or weaker");
  reader.target = head.target;
  reader.target.caches = host_caches(head.target);
  reader.target.machine = Machine::of(head.target.isa, false);
  SavedModule module;
  auto plan = std::make_shared<Plan>();
  io(reader, plan->input_names);
  io(reader, plan->output_names);
  io(reader, plan->denormals);
  const FloatModeScope mode(plan->denormals);
  io(reader, plan->root);
  module.plan = std::move(plan);
  module.target = std::move(head.target);
  for (auto& [key, text] : head.notes) module.notes.emplace(key, std::move(text));
  return module;
}

}  // namespace neo
