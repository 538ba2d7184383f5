#include "fuzz/synthetic.h"

#include <algorithm>
#include <map>

namespace neo::fuzz {
namespace {

constexpr int64_t kMaxSize = 64;  // of a size that the type leaves open

int64_t size_of(const Symbol& symbol, Random& random) {
  const int64_t choices[] = {symbol.hint, symbol.range.lo, 1, 2, 5};
  const int64_t size = choices[random.below(std::size(choices))];
  return std::clamp(std::min(size, kMaxSize), symbol.range.lo, symbol.range.hi);
}

Tensor tensor_of(const Type& type, SymbolValues& symbols, Random& random) {
  Dims dims;
  if (type.shape.has_rank()) {
    for (const Dim& d : type.shape.dims()) {
      std::map<std::string, Symbol> used;
      d.collect_symbols(used);
      for (const auto& [name, symbol] : used) symbols.emplace(name, size_of(symbol, random));
      dims.push_back(std::max<int64_t>(d.evaluate(symbols), 0));
    }
  } else {
    for (size_t rank = random.below(4); rank > 0; --rank) dims.push_back(static_cast<int64_t>(random.below(4)));
  }
  const DType dtype = type.dtype == DType::Undefined ? DType::Float32 : type.dtype;
  Tensor tensor(dtype, dims);
  if (dtype == DType::String) {
    for (int64_t i = 0; i < tensor.size(); ++i)
      tensor.strings()[i] = std::string(random.below(4), static_cast<char>('a' + random.below(3)));
    return tensor;
  }
  auto* data = static_cast<std::byte*>(tensor.data());
  const int64_t width = item_bytes(dtype);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const auto number = static_cast<int64_t>(random.below(8)) - 2;
    if (dtype == DType::Bool || is_integer(dtype)) {
      store_int64(dtype, data + i * width, dtype == DType::Bool ? number & 1 : number);
    } else {
      store_double(dtype, data + i * width, static_cast<double>(number) / 2);
    }
  }
  return tensor;
}

HostValue value_of(const Type& type, SymbolValues& symbols, Random& random) {
  if (type.kind == Type::Kind::Tensor) return tensor_of(type, symbols, random);
  if (type.kind == Type::Kind::Optional)
    return random.one_in(2) ? HostValue() : value_of(*type.element, symbols, random);
  if (type.kind == Type::Kind::Map) {
    const Shape entries = Shape::of({static_cast<int64_t>(random.below(4))});
    return HostValue::map(tensor_of(Type::tensor(type.key(), entries), symbols, random),
                          tensor_of(Type::tensor(type.element->dtype, entries), symbols, random));
  }
  std::vector<HostValue> items;
  for (size_t n = random.below(4); n > 0; --n) items.push_back(value_of(*type.element, symbols, random));
  return HostValue::sequence(std::move(items));
}

}  // namespace

std::vector<HostValue> synthetic_inputs(const Plan& plan, Random& random) {
  SymbolValues symbols;
  std::vector<HostValue> inputs;
  for (const int slot : plan.root->arguments)
    inputs.push_back(value_of(plan.root->slots[static_cast<size_t>(slot)].type, symbols, random));
  return inputs;
}

}  // namespace neo::fuzz
