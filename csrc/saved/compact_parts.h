#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/dim_terms.h"
#include "saved/compact.h"

// The parts of a compact plan, listed once for its writer and its reader. An archive has number(int64_t&),
// real(double&), text(std::string&), dim(Dim&), tensor(Tensor&), at(Item&) before what an item does, step(StepItem&),
// and an io() for bodies. kReads: it fills what it is given.

namespace neo::compact {

struct PartValue {
  std::string name;
  Type type;
  std::optional<Tensor> constant;
  std::optional<std::vector<Dim>> contents;
};

struct PartNode {
  std::string op;
  std::vector<int> inputs;  // of the step's values; -1: left out
  std::vector<int> outputs;
  std::vector<std::pair<std::string, Attr>> attrs;
};

struct PartStep {
  int maker = -1;  // of the exported table; -1: a conversion of `values[0]`
  Candidate::Kind kind = Candidate::Kind::Step;
  std::vector<PartValue> values;
  std::vector<PartNode> nodes;
  std::vector<std::optional<Schema>> inputs;
  std::vector<Schema> outputs;
  std::vector<std::pair<std::string, int64_t>> schedule;
  int in_place = -1;
  std::vector<Tensor> packed;
};

struct PartHead {
  int64_t file_bytes = 0;
  std::vector<FileSpan> spans;  // whose hash is `digest`
  std::string digest;
  Target target;
  std::vector<std::pair<std::string, std::string>> notes;
};

// How a tensor is written down.
enum TensorForm : int64_t { kUndefined, kInFile, kInPlan, kAbsent };

template <class A>
void io(A& a, int64_t& x) {
  a.number(x);
}
template <class A>
void io(A& a, double& x) {
  a.real(x);
}
template <class A>
void io(A& a, std::string& x) {
  a.text(x);
}
template <class A>
void io(A& a, Dim& x) {
  a.dim(x);
}
template <class A>
void io(A& a, Tensor& x) {
  a.tensor(x);
}
// Small numbers and enumerations.
template <class A, class T>
requires(std::is_enum_v<T> || (std::is_integral_v<T> && sizeof(T) < sizeof(int64_t))) void io(A& a, T& x) {
  auto number = static_cast<int64_t>(x);
  a.number(number);
  x = static_cast<T>(number);
}

template <class A, class T>
void io(A& a, std::vector<T>& items);
template <class A, class T>
void io(A& a, std::optional<T>& x);
template <class A, class T, class U>
void io(A& a, std::pair<T, U>& x);
template <class A>
void io(A& a, Attr& x);
template <class A>
void io(A& a, Type& x);
template <class A>
void io(A& a, Layout& x);
template <class A>
void io(A& a, Schema& x);
template <class A>
void io(A& a, Symbol& x);
template <class A>
void io(A& a, std::shared_ptr<const Block>& x);
template <class A>
void io(A& a, Item& x);

template <class A>
void io(A& a, FileSpan& x) {
  io(a, x.begin);
  io(a, x.end);
}

template <class A>
void io(A& a, Layout::Block& x) {
  io(a, x.axis);
  io(a, x.size);
}

template <class A>
void io(A& a, PartValue& x) {
  io(a, x.name);
  io(a, x.type);
  io(a, x.constant);
  io(a, x.contents);
}

template <class A>
void io(A& a, PartNode& x) {
  io(a, x.op);
  io(a, x.inputs);
  io(a, x.outputs);
  io(a, x.attrs);
}

template <class A>
void io(A& a, PartStep& x) {
  io(a, x.maker);
  io(a, x.kind);
  io(a, x.values);
  io(a, x.nodes);
  io(a, x.inputs);
  io(a, x.outputs);
  io(a, x.schedule);
  io(a, x.in_place);
  io(a, x.packed);
}

template <class A>
void io(A& a, Target& x) {
  auto features = static_cast<int64_t>(x.isa.features());
  io(a, x.name);
  io(a, features);
  x.isa = Isa(static_cast<uint32_t>(features));
  io(a, x.threads);
  io(a, x.gflops_per_thread);
  io(a, x.l2_gbps);
  io(a, x.memory_gbps);
  io(a, x.l1_bytes);
  io(a, x.l2_bytes);
  io(a, x.kept_bytes);
  io(a, x.cold_constants);
}

template <class A>
void io(A& a, Symbol& x) {
  io(a, x.name);
  io(a, x.range.lo);
  io(a, x.range.hi);
  io(a, x.hint);
}

template <class A>
void io(A& a, SymbolSource& x) {
  io(a, x.symbol);
  io(a, x.slot);
  io(a, x.axis);
  if (x.slot >= 0) return;
  Dim formula = x.symbol.formula ? *x.symbol.formula : Dim();
  io(a, formula);
  x.symbol.formula = std::make_shared<const Dim>(std::move(formula));
}

template <class A>
void io(A& a, Guard& x) {
  io(a, x.relation);
  io(a, x.left);
  io(a, x.right);
  io(a, x.message);
}

template <class A>
void io(A& a, Slot& x) {
  io(a, x.storage);
  io(a, x.name);
  io(a, x.type);
  io(a, x.layout);
  if (x.storage == Slot::Storage::Constant) io(a, x.constant);
  if (x.storage != Slot::Storage::View) return;
  io(a, x.base);
  io(a, x.offset);
}

template <class A>
void io(A& a, LoopItem::Axis& x) {
  io(a, x.axis);
  io(a, x.reverse);
}

template <class A>
void io(A& a, StepItem& x) {
  io(a, x.inputs);
  io(a, x.outputs);
  a.step(x);
}

template <class A>
void io(A& a, DimsItem& x) {
  io(a, x.elements);
  io(a, x.output);
}

template <class A>
void io(A& a, IfItem& x) {
  io(a, x.predicate);
  io(a, x.arguments);
  io(a, x.results);
  io(a, x.then_block);
  io(a, x.else_block);
}

template <class A>
void io(A& a, LoopItem& x) {
  io(a, x.kind);
  io(a, x.trip_count);
  io(a, x.condition);
  io(a, x.carried);
  io(a, x.scanned);
  io(a, x.scanned_axes);
  io(a, x.captured);
  io(a, x.results);
  io(a, x.collected_axes);
  io(a, x.body);
}

template <class A>
void io(A& a, Region& x) {
  io(a, x.items);
  io(a, x.sources);
  io(a, x.guards);
}

template <class A>
void io(A& a, Block& x) {
  io(a, x.slots);
  io(a, x.arguments);
  io(a, x.results);
  io(a, x.regions);
}

template <class A>
void io(A& a, PartHead& x) {
  io(a, x.file_bytes);
  io(a, x.spans);
  io(a, x.digest);
  io(a, x.target);
  io(a, x.notes);
}

template <class A, class T>
void io(A& a, std::vector<T>& items) {
  auto count = static_cast<int64_t>(items.size());
  a.number(count);
  if constexpr (A::kReads) items = std::vector<T>(static_cast<size_t>(count));
  for (T& item : items) io(a, item);
}

template <class A, class T>
void io(A& a, std::optional<T>& x) {
  bool is_set = x.has_value();
  io(a, is_set);
  if (is_set && !x) x.emplace();
  if (is_set) io(a, *x);
}

template <class A, class T, class U>
void io(A& a, std::pair<T, U>& x) {
  io(a, x.first);
  io(a, x.second);
}

// One of the alternatives, by its number.
template <class A, class... T>
void io_variant(A& a, std::variant<T...>& x) {
  auto index = static_cast<int64_t>(x.index());
  a.number(index);
  int64_t i = 0;
  const auto take = [&]<class U>(U* /*of this type*/) {
    if (i++ != index) return;
    if (!std::holds_alternative<U>(x)) x.template emplace<U>();
    io(a, std::get<U>(x));
  };
  (take(static_cast<T*>(nullptr)), ...);
}

template <class A>
void io(A& a, Attr& x) {
  io_variant(a, x);
}

template <class A>
void io(A& a, Item& x) {
  io(a, x.node);
  a.at(x);
  io_variant(a, x.what);
}

template <class A>
void io(A& a, Type& x) {
  io(a, x.kind);
  if (x.kind == Type::Kind::Map) {
    DType key = x.element ? x.key() : DType::Undefined;
    DType value = x.element ? x.element->dtype : DType::Undefined;
    io(a, key);
    io(a, value);
    x = Type::map(key, value);
    return;
  }
  if (x.kind == Type::Kind::Tensor) {
    io(a, x.dtype);
    std::optional<std::vector<Dim>> dims;
    if (x.shape.has_rank()) dims = x.shape.dims();
    io(a, dims);
    if (dims) x.shape = Shape(std::move(*dims));
    return;
  }
  Type element;
  if (x.element) element = *x.element;
  io(a, element);
  x.element = std::make_shared<const Type>(std::move(element));
}

template <class A>
void io(A& a, Layout& x) {
  std::vector<int> order = x.order();
  std::vector<Layout::Block> blocks = x.blocks();
  io(a, order);
  io(a, blocks);
  x = Layout(std::move(order), std::move(blocks));
}

template <class A>
void io(A& a, Schema& x) {
  io(a, x.device);
  io(a, x.dtype);
  io(a, x.scheme);
  io(a, x.layout);
}

}  // namespace neo::compact
