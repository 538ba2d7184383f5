#include "routines/patterns/int8_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "routines/patterns/float_tensor.h"

namespace neo {
namespace {

const Node* maker(const Value* value, std::string_view op) {
  return value && value->producer && value->producer->op == op ? value->producer : nullptr;
}

bool transposes_weights(const Node& node) {
  return node.op == "Gemm" && node.int_attr("transB", 0) != 0;
}

// The product's DequantizeLinear of x and of the weights, where it has both.
struct CodeSources {
  const Node* x = nullptr;
  const Node* w = nullptr;

  static std::optional<CodeSources> of(const Node& product) {
    const CodeSources s{maker(product.input(0), "DequantizeLinear"), maker(product.input(1), "DequantizeLinear")};
    if (!s.x || !s.w || !s.w->inputs[0]->is_constant() || s.x->outputs.front()->is_constant()) return std::nullopt;
    return s;
  }
};

// A group in the making, from the product on.
struct Chain {
  std::vector<const Node*> nodes;
  const Value* last = nullptr;

  void add(const Node* node) {
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
    last = node->outputs.front();
  }
};

std::optional<Chain> start(const Node* product, std::span<const std::string_view> products) {
  if (!product || std::find(products.begin(), products.end(), product->op) == products.end()) return std::nullopt;
  const auto sources = CodeSources::of(*product);
  if (!sources) return std::nullopt;
  Chain chain;
  chain.add(sources->x);
  chain.add(sources->w);
  chain.add(product);
  return chain;
}

// The value as the product's sums, or these rounded to codes and back.
std::optional<Chain> sums(const Value* value, std::span<const std::string_view> products, const Graph::Users& users,
                          const Graph& graph) {
  if (!read_only_by_one(value, users, graph)) return std::nullopt;
  if (auto chain = start(value->producer, products)) return chain;
  const Node* back = maker(value, "DequantizeLinear");
  const Node* round = back ? maker(back->inputs[0], "QuantizeLinear") : nullptr;
  if (!round || !read_only_by_one(round->outputs[0], users, graph) || !read_only_by_one(round->inputs[0], users, graph))
    return std::nullopt;
  auto chain = start(round->inputs[0]->producer, products);
  if (!chain) return std::nullopt;
  chain->add(round);
  chain->add(back);
  return chain;
}

// The node of the workload, behind those before, that reads a value; null where there is none.
const Node* reader_of(const Workload& workload, const Value* value, const Node* after) {
  bool behind = false;
  for (const Node* node : workload.nodes) {
    if (behind && std::find(node->inputs.begin(), node->inputs.end(), value) != node->inputs.end()) return node;
    behind = behind || node == after;
  }
  return nullptr;
}

bool is_byte(DType dtype) {
  return dtype == DType::Int8 || dtype == DType::UInt8;
}

bool is_narrow(DType dtype) {
  return dtype == DType::Int4 || dtype == DType::UInt4;
}

bool is_whole_product(const Node& node) {
  return node.op == "ConvInteger" || node.op == "MatMulInteger";
}

bool is_product(const Node& node) {
  return node.op == "Conv" || node.op == "MatMul" || node.op == "Gemm" || is_whole_product(node);
}

// Whether a constant has one element for each output channel of a product, along the channels' axis of its result.
bool is_by_channel(const Value& value, const Node& product, const Value& sums) {
  if (!value.is_constant() || !is_float_tensor(&value) || !sums.shape().has_rank()) return false;
  const int rank = sums.shape().rank();
  const int axis = (product.op == "Conv" ? 1 : rank - 1) - (rank - value.shape().rank());
  return axis >= 0 && value.shape()[axis] == sums.shape()[rank - value.shape().rank() + axis] &&
         value.shape().element_count() == value.shape()[axis].value();
}

std::vector<double> spread(const Value* value, int64_t count) {
  std::vector<double> numbers = value ? load_doubles(*value->constant) : std::vector<double>{0};
  if (numbers.size() == 1) numbers.resize(static_cast<size_t>(count), numbers.front());
  return numbers;
}

// Which bytes occur among codes.
std::array<bool, 256> bytes_of(const Tensor& codes) {
  std::array<bool, 256> occurs{};
  const auto* from = codes.as<uint8_t>();
  for (const uint8_t* const end = from + codes.size(); from != end; ++from) occurs[*from] = true;
  return occurs;
}

// The weights less their zero points, by output channel: visit(channel, weight).
template <class Visit>
void for_each_weight(const Int8Product& p, const Visit& visit) {
  const Dims dims = p.w->shape().to_dims();
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(p.channel_axis()) + 1; i < dims.size(); ++i) inner *= dims[i];
  const Tensor& codes = *p.w->constant;
  const auto* from = codes.as<uint8_t>();
  std::array<int32_t, 256> numbers;
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = code_of(codes.dtype(), static_cast<uint8_t>(i));
  const std::vector<double> given = spread(p.w_zero, p.channels());
  const std::vector<int32_t> zeros(given.begin(), given.end());
  for (const uint8_t* const end = from + codes.size(); from != end;) {
    for (size_t c = 0; c < zeros.size(); ++c) {
      for (int64_t k = 0; k < inner; ++k) visit(c, numbers[*from++] - zeros[c]);
    }
  }
}

// The groups of match_int8_products() without a function behind them.
std::vector<Workload> match_products(const Node& root, std::span<const std::string_view> products,
                                     const Graph::Users& users, const Graph& graph) {
  std::vector<Workload> found;
  const auto offer = [&](std::optional<Chain> chain, std::initializer_list<const Node*> behind) {
    if (!chain) return;
    for (const Node* node : behind) chain->add(node);
    found.push_back(Workload::of(std::move(chain->nodes)));
  };
  if (is_whole_product(root)) return {Workload::of(root)};
  if (is_product(root)) {
    offer(start(&root, products), {});
    return found;
  }
  if (root.op != "QuantizeLinear" || !read_only_by_one(root.inputs[0], users, graph)) return found;
  const Value* value = root.inputs[0];
  const Node* clamp = value->producer && read_clamp(*value->producer) ? value->producer : nullptr;
  if (clamp) {
    value = clamp->inputs[0];
    if (!read_only_by_one(value, users, graph)) return found;
  }
  if (auto chain = start(value->producer, products)) {
    if (clamp) chain->add(clamp);
    offer(std::move(chain), {&root});
    return found;
  }
  const Node* add = maker(value, "Add");
  if (!add) return found;
  for (size_t i = 0; i < 2; ++i) {
    const Value* added = add->inputs[1 - i];
    if (added->is_constant()) {
      const Node* back = maker(add->inputs[i], "DequantizeLinear");
      auto chain = back ? sums(add->inputs[i], products, users, graph) : std::nullopt;
      if (!chain) continue;
      chain->add(add);
      if (clamp) chain->add(clamp);
      offer(std::move(chain), {&root});
      continue;
    }
    const Node* other = maker(added, "DequantizeLinear");
    if (!other || other->outputs.front()->is_constant() || add->inputs[0] == add->inputs[1]) continue;
    auto chain = sums(add->inputs[i], products, users, graph);
    if (!chain) continue;
    chain->add(other);
    chain->add(add);
    if (clamp) chain->add(clamp);
    offer(std::move(chain), {&root});
  }
  return found;
}

// The function at the end of a group, of the codes that the product's part ends in.
CodeFunction function_behind(const Workload& workload) {
  const std::span<const Node* const> nodes = workload.nodes;
  bool behind = false;
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    behind = behind || is_product(*nodes[i]);
    if (!behind || nodes[i]->op != "QuantizeLinear") continue;
    const auto rest = nodes.subspan(i + 1);
    const Value* codes = nodes[i]->outputs.front();
    if (is_code_function(rest, codes)) return {{rest.begin(), rest.end()}, codes};
  }
  return {};
}

}  // namespace

int Int8Product::channel_axis() const {
  if (is_conv() || transposes_weights(*node)) return 0;
  return w->shape().rank() - 1;
}

int64_t Int8Product::depth() const {
  return w->shape().element_count().value() / std::max<int64_t>(1, channels());
}

std::vector<Workload> match_int8_products(const Node& root, std::span<const std::string_view> products,
                                          const Graph::Users& users, const Graph& graph) {
  std::vector<Workload> found = match_products(root, products, users, graph);
  if (root.op != "QuantizeLinear") return found;
  for (const CodeFunction& function : match_code_functions(root, users, graph)) {
    const Node* round = maker(function.x, "QuantizeLinear");
    // Nobody else reads the codes in between, nor their numbers.
    const auto is_inside = [&](const Value* value) {
      const auto readers = users.find(value);
      if (readers == users.end() || graph.is_output(value)) return false;
      return std::all_of(readers->second.begin(), readers->second.end(), [&](const auto& use) {
        return std::find(function.nodes.begin(), function.nodes.end(), use.first) != function.nodes.end();
      });
    };
    const bool is_whole = std::all_of(function.nodes.begin(), function.nodes.end(), [&](const Node* node) {
      return node == &root || is_inside(node->outputs.front());
    });
    if (!round || !is_inside(function.x) || !is_whole) continue;
    for (Workload& product : match_products(*round, products, users, graph)) {
      std::vector<const Node*> nodes = std::move(product.nodes);
      nodes.insert(nodes.end(), function.nodes.begin(), function.nodes.end());
      found.push_back(Workload::of(std::move(nodes)));
    }
  }
  return found;
}

std::optional<Int8Product> read_int8_product(const Workload& workload, std::string* why) {
  const auto reject = [&](std::string reason) {
    if (why) *why = std::move(reason);
    return std::nullopt;
  };
  if (CodeFunction function = function_behind(workload); !function.nodes.empty()) {
    std::vector<const Node*> before(workload.nodes.begin(), workload.nodes.end() - std::ssize(function.nodes));
    auto product = read_int8_product(Workload::of(std::move(before)), why);
    if (!product) return std::nullopt;
    if (!product->y_grid) return reject("a function of what is not codes");
    product->function = std::move(function);
    product->y = workload.outputs.front();
    return product;
  }
  const auto it =
      std::find_if(workload.nodes.begin(), workload.nodes.end(), [](const Node* n) { return is_product(*n); });
  if (it == workload.nodes.end()) return reject("there is no product");
  Int8Product p;
  p.node = *it;
  const auto sources = is_whole_product(*p.node) ? std::nullopt : CodeSources::of(*p.node);
  const Node* w_source = nullptr;
  if (sources) {
    w_source = sources->w;
    const auto x_grid = read_code_grid(*sources->x, true);
    if (!x_grid) return reject("the input is not 8-bit codes of one scale");
    p.x = sources->x->inputs[0];
    p.x_grid = *x_grid;
    p.x_scale = sources->x->input(1);
    p.x_zero = sources->x->input(2);
    p.w = w_source->inputs[0];
    p.w_scale = w_source->inputs[1];
    p.w_zero = w_source->input(2);
  } else if (is_whole_product(*p.node)) {
    p.is_whole = true;
    p.x = p.node->inputs[0];
    p.x_zero = p.node->input(2);
    p.x_grid.dtype = p.x->dtype();
    if (!is_byte(p.x->dtype())) return reject("the input is not 8-bit codes");
    if (p.x->is_constant() || !p.x->shape().has_rank()) return reject("the rank of the input is not known");
    const bool is_one = !p.x_zero || (p.x_zero->shape().has_rank() && p.x_zero->shape().element_count().is(1));
    if (!is_one) return reject("the input has several zero points");
    if (p.x_zero && p.x_zero->constant)
      p.x_grid.zero = static_cast<int32_t>(load_int64(p.x_zero->dtype(), p.x_zero->constant->data()));
    p.w = p.node->inputs[1];
    if (!p.w->is_constant()) return reject("the weights are not constants");
    p.w_zero = p.node->input(3);
  } else {
    return reject("its operands are not codes, of which the second are constants");
  }
  if (p.x_scale && p.x_scale->is_constant()) p.x_scale = nullptr;
  if (p.x_zero && p.x_zero->is_constant()) p.x_zero = nullptr;
  if (!is_byte(p.w->dtype()) && !is_narrow(p.w->dtype())) return reject("the weights are not codes of 4 or 8 bits");
  if (!p.w->shape().is_static() || p.w->shape().element_count().is(0)) return reject("there are no weights");
  const int w_rank = p.w->shape().rank();
  if (p.is_conv() ? w_rank < 3 : w_rank != 2) return reject("the weights are of another rank");
  if (p.node->op == "Gemm" && (p.node->int_attr("transA", 0) != 0 || p.node->float_attr("alpha", 1) != 1 ||
                               (p.node->input(2) && p.node->float_attr("beta", 1) != 1)))
    return reject("the product is transposed or scaled");
  const int64_t channels = p.channels();
  if (p.w_zero && !p.w_zero->is_constant()) return reject("the zero points of the weights are not constants");
  const int64_t zeros = p.w_zero ? p.w_zero->constant->size() : 1;
  if (p.is_whole) {
    if (zeros != 1 && zeros != channels) return reject("the zero points are not those of output channels");
    p.y = workload.outputs.front();
    return p;
  }
  if (!p.w_scale->is_constant() || p.w_scale->dtype() != DType::Float32 || w_source->int_attr("block_size", 0) != 0 ||
      p.node->outputs.front()->dtype() != DType::Float32)
    return reject("the scale of the weights is not a float32 constant");
  const int64_t scales = p.w_scale->constant->size();
  if (p.w_zero && zeros != scales) return reject("scales and zero points of the weights differ in number");
  if (scales != 1) {
    int64_t axis = w_source->int_attr("axis", 1);
    if (axis < 0) axis += w_rank;
    if (axis != p.channel_axis() || scales != channels) return reject("the scales are not those of output channels");
  }
  p.bias = p.node->input(2);
  if (p.bias && (!p.bias->is_constant() || !is_float_tensor(p.bias) || p.bias->constant->size() != channels ||
                 !p.bias->shape()[p.bias->shape().rank() - 1].is(channels)))
    return reject("the bias is not a float32 constant of one element per output channel");
  p.sum_lo = static_cast<float>(p.node->float_attr("clamp_min", p.sum_lo));
  p.sum_hi = static_cast<float>(p.node->float_attr("clamp_max", p.sum_hi));

  const Node* at = p.node;
  const Value* value = at->outputs.front();
  const Shape& shape = value->shape();
  if (!shape.has_rank()) return reject("the rank of the result is not known");
  const auto next = [&](std::string_view op) {
    const Node* node = reader_of(workload, value, at);
    if (!node || node->op != op) return false;
    at = node;
    value = node->outputs.front();
    return true;
  };
  if (&workload.root() != at && next("QuantizeLinear")) {
    const auto grid = read_code_grid(*at);
    if (!grid) return reject("the result is not 8-bit codes of one constant scale");
    if (at == &workload.root()) {
      p.y_grid = grid;
    } else {
      p.middle = grid;
      if (!next("DequantizeLinear") || read_code_grid(*at) != grid) return reject("codes are read by another scale");
    }
  }
  const Value* sum = value;
  if (at != &workload.root()) {
    if (next("Add")) {
      const Value* other = at->inputs[at->inputs[0] == sum ? 1 : 0];
      const Node* source = maker(other, "DequantizeLinear");
      const bool is_addend = p.middle && is_by_channel(*other, *p.node, *sum);
      const auto grid = source ? read_code_grid(*source) : std::nullopt;
      if (!grid && !is_addend) return reject("what is added is not 8-bit codes of one constant scale");
      if (!(other->shape() == shape || is_addend) || !(value->shape() == shape))
        return reject("what is added is broadcast");
      if (!p.middle && (p.sum_lo > -INFINITY || p.sum_hi < INFINITY)) return reject("the sums are clamped unrounded");
      if (is_addend) {
        p.addend = other;
      } else {
        p.residual = source->inputs[0];
        p.residual_grid = *grid;
      }
    } else if (p.middle) {
      return reject("codes are rounded twice");
    }
  }
  if (at != &workload.root()) {
    const Node* node = reader_of(workload, value, at);
    const auto clamp = node ? read_clamp(*node) : std::nullopt;
    if (clamp) {
      p.lo = clamp->lo;
      p.hi = clamp->hi;
      at = node;
      value = node->outputs.front();
    }
  }
  if (at != &workload.root()) {
    if (!next("QuantizeLinear") || at != &workload.root()) return reject("it is a group of another form");
    p.y_grid = read_code_grid(*at);
    if (!p.y_grid) return reject("the result is not 8-bit codes of one constant scale");
  }
  if (!p.y_grid && (p.residual || p.middle)) return reject("the result is not codes");
  p.y = workload.outputs.front();
  return p;
}

bool has_byte_weights(const Int8Product& product) {
  const bool is_centred = product.w->dtype() == DType::Int8 && !product.w_zero;
  if (is_centred || is_narrow(product.w->dtype())) return true;
  const std::vector<double> zeros = spread(product.w_zero, 1);
  const double centre = product.w->dtype() == DType::Int8 ? 0 : 128;
  if (std::all_of(zeros.begin(), zeros.end(), [&](double z) { return z == centre; })) return true;
  const auto is_byte = [](double weight) { return weight >= -128 && weight <= 127; };
  bool fits = true;
  if (zeros.size() == 1) {
    const std::array<bool, 256> occurs = bytes_of(*product.w->constant);
    for (size_t i = 0; i < occurs.size(); ++i) {
      const int32_t code = code_of(product.w->dtype(), static_cast<uint8_t>(i));
      fits = fits && (!occurs[i] || is_byte(code - zeros.front()));
    }
    return fits;
  }
  for_each_weight(product, [&](size_t, int32_t weight) { fits = fits && is_byte(weight); });
  return fits;
}

bool sums_fit(const Int8Product& product, int64_t limit) {
  constexpr int64_t kMaxCode = 255;
  if (kMaxCode * kMaxCode * product.depth() <= limit) return true;
  // The ends of the range of x less its zero point; a zero point that only running tells may be any code.
  const int64_t first = product.x_grid.is_signed() ? -128 : 0, zero = product.x_grid.zero;
  const int64_t lo = product.x_zero ? -kMaxCode : first - zero;
  const int64_t hi = product.x_zero ? kMaxCode : first + kMaxCode - zero;
  std::vector<int64_t> least(static_cast<size_t>(product.channels())), most = least;
  for_each_weight(product, [&](size_t c, int32_t weight) {
    least[c] += std::min(weight * lo, weight * hi);
    most[c] += std::max(weight * lo, weight * hi);
  });
  return -*std::min_element(least.begin(), least.end()) <= limit &&
         *std::max_element(most.begin(), most.end()) <= limit;
}

}  // namespace neo
