#include "routines/patterns/compile_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/check.h"

namespace neo {
namespace {

class Compiler;

// An attribute that becomes an immediate of a step.
struct Immediate {
  std::string_view attr;  // empty: none
  double fallback = 0;
};

// How an operator becomes steps: one step over its inputs, or what `emit` writes.
struct Rule {
  EltwiseOp step = EltwiseOp::Copy;
  Immediate p = {};
  Immediate q = {};
  void (*emit)(Compiler&, const Node&, const Rule&) = nullptr;
  bool integers = false;  // exact over integers and truth values too
};

// Null: not elementwise.
const Rule* find_rule(std::string_view op);

std::optional<EltwiseType> type_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return EltwiseType::F32;
    case DType::Float16:
      return EltwiseType::F16;
    case DType::BFloat16:
      return EltwiseType::BF16;
    case DType::Float64:
      return EltwiseType::F64;
    case DType::UInt8:
      return EltwiseType::U8;
    case DType::UInt16:
      return EltwiseType::U16;
    case DType::UInt32:
      return EltwiseType::U32;
    case DType::UInt64:
      return EltwiseType::U64;
    case DType::Int8:
      return EltwiseType::I8;
    case DType::Int16:
      return EltwiseType::I16;
    case DType::Int32:
      return EltwiseType::I32;
    case DType::Int64:
      return EltwiseType::I64;
    case DType::Bool:
      return EltwiseType::Bool;
    default:
      return std::nullopt;
  }
}

// Whether registers of float32 compute with a dtype: halves are rounded where they are stored.
bool is_computed(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::Float16 || dtype == DType::BFloat16;
}

bool is_one_element(const Value* v) {
  return v->shape().has_rank() && v->shape().is_static() && element_count(v->shape().to_dims()) == 1;
}

std::optional<double> scalar_constant(const Value* v) {
  if (!v || !v->constant || v->constant->size() != 1 || v->dtype() == DType::String) return std::nullopt;
  return load_double(v->dtype(), v->constant->data());
}

class Compiler {
 public:
  explicit Compiler(const Workload& workload) : workload_(workload) {}

  std::optional<CompiledEltwise> run(std::string* why) {
    for (size_t i = 0; i < workload_.nodes.size(); ++i) {
      last_use_of_inputs(*workload_.nodes[i], static_cast<int>(i));
    }
    for (size_t i = 0; i < workload_.nodes.size(); ++i) {
      now_ = static_cast<int>(i);
      const Node& node = *workload_.nodes[i];
      const Rule* rule = find_rule(node.op);
      if (rule == nullptr) {
        why_ = str(node.op, " is not elementwise");
      } else if (rule->emit) {
        rule->emit(*this, node, *rule);
      } else {
        emit_step(node, *rule);
      }
    }
    if (!why_.empty()) {
      if (why) *why = why_;
      return std::nullopt;
    }
    EltwiseProgram& p = out_.program;
    // Steps were appended to a vector that may be longer than a program holds.
    if (steps_.size() > kEltwiseMaxSteps || registers_ > kEltwiseMaxRegisters ||
        out_.inputs.size() + 1 > kEltwiseMaxOperands) {
      if (why) *why = "the program is too long";
      return std::nullopt;
    }
    steps_.back().dst = -1;
    p.steps = static_cast<int32_t>(steps_.size());
    std::copy(steps_.begin(), steps_.end(), p.step);
    p.inputs = static_cast<int32_t>(out_.inputs.size());
    p.registers = registers_;
    for (size_t i = 0; i < out_.inputs.size(); ++i) {
      p.type[i] = *type_of(workload_.inputs[static_cast<size_t>(out_.inputs[i])]->dtype());
    }
    p.type[p.inputs] = *type_of(workload_.outputs.front()->dtype());
    return std::move(out_);
  }

  // The register in which a step finds a value.
  int8_t operand(const Value* v) {
    if (const auto it = register_of_.find(v); it != register_of_.end()) return it->second;
    const auto [it, fresh] = input_of_.try_emplace(v, static_cast<int>(out_.inputs.size()));
    if (fresh) out_.inputs.push_back(workload_.input_index(v));
    return static_cast<int8_t>(-1 - it->second);
  }

  // A step before a node's last one: a temporary, to be dropped once it was read.
  int8_t step(EltwiseOp op, int8_t a, int8_t b = 0, int8_t c = 0, double p = 0, double q = 0) {
    steps_.push_back({op, take_register(), a, b, c, static_cast<float>(p), static_cast<float>(q)});
    return steps_.back().dst;
  }

  void drop(int8_t temporary) { free_.push_back(temporary); }

  // A node's last step. A product that only a sum reads is a step with it.
  void finish(const Node& node, EltwiseOp op, int8_t a, int8_t b = 0, int8_t c = 0, double p = 0, double q = 0) {
    const bool multiplies = op == EltwiseOp::Add && a != b && !steps_.empty() && steps_.back().op == EltwiseOp::Mul;
    const int8_t product = multiplies ? steps_.back().dst : int8_t{-1};
    const bool joins = multiplies && (a == product || b == product) && is_last_use(node, product);
    release(node);
    if (joins) {
      const EltwiseStep mul = steps_.back();
      steps_.pop_back();
      op = EltwiseOp::MulAdd;
      c = a == product ? b : a;
      a = mul.a;
      b = mul.b;
    }
    register_of_[node.outputs.front()] = step(op, a, b, c, p, q);
  }

 private:
  void last_use_of_inputs(const Node& node, int at) {
    for (const Value* v : node.inputs) {
      if (v) last_use_[v] = at;
    }
  }

  void emit_step(const Node& node, const Rule& rule) {
    const auto in = [&](size_t i) { return node.input(i) ? operand(node.inputs[i]) : int8_t{0}; };
    const auto value = [&](const Immediate& x) { return x.attr.empty() ? 0 : node.float_attr(x.attr, x.fallback); };
    const int8_t a = in(0);
    const int8_t b = in(1);
    const int8_t c = in(2);
    finish(node, rule.step, a, b, c, value(rule.p), value(rule.q));
  }

  // Whether nobody reads a register after this node.
  bool is_last_use(const Node& node, int8_t read) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Value* v) {
      const auto it = register_of_.find(v);
      return it != register_of_.end() && it->second == read && last_use_.at(v) == now_;
    });
  }

  int8_t take_register() {
    if (!free_.empty()) {
      const int8_t r = free_.back();
      free_.pop_back();
      return r;
    }
    return static_cast<int8_t>(registers_++);
  }

  // Registers of values nobody reads after this node are free again. Called before a node's last step takes its
  // register: a step may write over its own operands.
  void release(const Node& node) {
    for (const Value* v : node.inputs) {
      const auto it = register_of_.find(v);
      if (it == register_of_.end() || last_use_[v] != now_) continue;
      free_.push_back(it->second);
      register_of_.erase(it);
    }
  }

  const Workload& workload_;
  CompiledEltwise out_;
  std::vector<EltwiseStep> steps_;
  std::map<const Value*, int8_t> register_of_;
  std::map<const Value*, int> input_of_;
  std::map<const Value*, int> last_use_;
  std::vector<int8_t> free_;
  int32_t registers_ = 0;
  int now_ = 0;
  std::string why_;
};

// One binary step after the other.
void emit_fold(Compiler& compiler, const Node& node, const Rule& rule) {
  int8_t left = compiler.operand(node.inputs[0]);
  if (node.inputs.size() == 1) return compiler.finish(node, EltwiseOp::Copy, left);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const int8_t right = compiler.operand(node.inputs[i]);
    if (i > 1) compiler.drop(left);
    if (i + 1 == node.inputs.size()) return compiler.finish(node, rule.step, left, right);
    left = compiler.step(rule.step, left, right);
  }
}

void emit_mean(Compiler& compiler, const Node& node, const Rule& rule) {
  int8_t sum = compiler.operand(node.inputs[0]);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const int8_t right = compiler.operand(node.inputs[i]);
    if (i > 1) compiler.drop(sum);
    sum = compiler.step(EltwiseOp::Add, sum, right);
  }
  if (node.inputs.size() > 1) compiler.drop(sum);
  compiler.finish(node, rule.step, sum, 0, 0, 1.0 / static_cast<double>(node.inputs.size()));
}

void emit_gelu(Compiler& compiler, const Node& node, const Rule&) {
  const bool tanh = node.op == "com.microsoft.FastGelu" || node.string_attr("approximate", "none") == "tanh";
  int8_t x = compiler.operand(node.inputs[0]);
  if (node.input(1)) {
    x = compiler.step(EltwiseOp::Add, x, compiler.operand(node.inputs[1]));
    compiler.drop(x);
  }
  compiler.finish(node, tanh ? EltwiseOp::GeluTanh : EltwiseOp::Gelu, x);
}

void emit_swiglu(Compiler& compiler, const Node& node, const Rule&) {
  const int8_t linear = compiler.operand(node.inputs[1]);
  const int8_t gate =
      compiler.step(EltwiseOp::Swish, compiler.operand(node.inputs[0]), 0, 0, node.float_attr("alpha", 1));
  compiler.drop(gate);
  compiler.finish(node, EltwiseOp::Mul, gate, linear);
}

// Bounds that are found out when the program runs.
void emit_clip_by_operands(Compiler& compiler, const Node& node) {
  const int8_t x = compiler.operand(node.inputs[0]);
  if (!node.input(2)) return compiler.finish(node, EltwiseOp::Max, x, compiler.operand(node.inputs[1]));
  if (!node.input(1)) return compiler.finish(node, EltwiseOp::Min, x, compiler.operand(node.inputs[2]));
  const int8_t bounded = compiler.step(EltwiseOp::Max, x, compiler.operand(node.inputs[1]));
  const int8_t high = compiler.operand(node.inputs[2]);
  compiler.drop(bounded);
  compiler.finish(node, EltwiseOp::Min, bounded, high);
}

void emit_clip(Compiler& compiler, const Node& node, const Rule& rule) {
  const auto is_known = [&](size_t i) { return !node.input(i) || scalar_constant(node.input(i)); };
  if (!is_known(1) || !is_known(2)) return emit_clip_by_operands(compiler, node);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double lo = node.input(1) ? *scalar_constant(node.input(1)) : -kInfinity;
  const double hi = node.input(2) ? *scalar_constant(node.input(2)) : kInfinity;
  compiler.finish(node, rule.step, compiler.operand(node.inputs[0]), 0, 0, lo, hi);
}

void emit_pow(Compiler& compiler, const Node& node, const Rule& rule) {
  const auto exponent = scalar_constant(node.input(1));
  const int8_t base = compiler.operand(node.inputs[0]);
  if (exponent == 2.0) return compiler.finish(node, EltwiseOp::Square, base);
  if (exponent == 3.0) {
    const int8_t square = compiler.step(EltwiseOp::Square, base);
    compiler.drop(square);
    return compiler.finish(node, EltwiseOp::Mul, square, base);
  }
  if (exponent == 0.5) return compiler.finish(node, EltwiseOp::Sqrt, base);
  if (exponent == -1.0) return compiler.finish(node, EltwiseOp::Reciprocal, base);
  compiler.finish(node, rule.step, base, compiler.operand(node.inputs[1]));
}

void emit_quantize(Compiler& compiler, const Node& node, const Rule& rule) {
  const DType dtype = node.outputs.front()->dtype();
  const int8_t x = compiler.operand(node.inputs[0]);
  const int8_t scale = compiler.operand(node.inputs[1]);
  const int8_t zero = compiler.operand(node.inputs[2]);
  compiler.finish(node, rule.step, x, scale, zero, static_cast<double>(integer_min(dtype)),
                  static_cast<double>(integer_max(dtype)));
}

void emit_dequantize(Compiler& compiler, const Node& node, const Rule& rule) {
  int8_t codes = compiler.operand(node.inputs[0]);
  if (node.input(2)) {
    codes = compiler.step(EltwiseOp::Sub, codes, compiler.operand(node.inputs[2]));
    compiler.drop(codes);
  }
  compiler.finish(node, rule.step, codes, compiler.operand(node.inputs[1]));
}

// The one list of elementwise operators.
struct NamedRule {
  std::string_view op;
  Rule rule;
};
constexpr NamedRule kRules[] = {
    {"Neg", {.step = EltwiseOp::Neg, .integers = true}},
    {"Abs", {.step = EltwiseOp::Abs, .integers = true}},
    {"Sqrt", {.step = EltwiseOp::Sqrt}},
    {"Reciprocal", {.step = EltwiseOp::Reciprocal}},
    {"Exp", {.step = EltwiseOp::Exp}},
    {"Log", {.step = EltwiseOp::Log}},
    {"Tanh", {.step = EltwiseOp::Tanh}},
    {"Sigmoid", {.step = EltwiseOp::Sigmoid}},
    {"Erf", {.step = EltwiseOp::Erf}},
    {"Relu", {.step = EltwiseOp::Relu}},
    {"HardSwish", {.step = EltwiseOp::HardSwish}},
    {"Softplus", {.step = EltwiseOp::Softplus}},
    {"Softsign", {.step = EltwiseOp::Softsign}},
    {"Mish", {.step = EltwiseOp::Mish}},
    {"Floor", {.step = EltwiseOp::Floor}},
    {"Ceil", {.step = EltwiseOp::Ceil}},
    {"Round", {.step = EltwiseOp::Round}},
    {"Sign", {.step = EltwiseOp::Sign, .integers = true}},
    {"Sin", {.step = EltwiseOp::Sin}},
    {"Cos", {.step = EltwiseOp::Cos}},
    {"Not", {.step = EltwiseOp::Not, .integers = true}},
    {"IsNaN", {.step = EltwiseOp::IsNan}},
    {"Add", {.step = EltwiseOp::Add, .integers = true}},
    {"Sub", {.step = EltwiseOp::Sub, .integers = true}},
    {"Mul", {.step = EltwiseOp::Mul, .integers = true}},
    {"Div", {.step = EltwiseOp::Div}},
    {"PRelu", {.step = EltwiseOp::PRelu}},
    {"Equal", {.step = EltwiseOp::Equal, .integers = true}},
    {"Less", {.step = EltwiseOp::Less, .integers = true}},
    {"LessOrEqual", {.step = EltwiseOp::LessEqual, .integers = true}},
    {"Greater", {.step = EltwiseOp::Greater, .integers = true}},
    {"GreaterOrEqual", {.step = EltwiseOp::GreaterEqual, .integers = true}},
    {"And", {.step = EltwiseOp::And, .integers = true}},
    {"Or", {.step = EltwiseOp::Or, .integers = true}},
    {"Xor", {.step = EltwiseOp::Xor, .integers = true}},
    {"Where", {.step = EltwiseOp::Where, .integers = true}},
    {"Cast", {.step = EltwiseOp::Copy, .integers = true}},
    {"Sum", {.step = EltwiseOp::Add, .emit = emit_fold, .integers = true}},
    {"Max", {.step = EltwiseOp::Max, .emit = emit_fold, .integers = true}},
    {"Min", {.step = EltwiseOp::Min, .emit = emit_fold, .integers = true}},
    {"LeakyRelu", {.step = EltwiseOp::LeakyRelu, .p = {"alpha", 0.01}}},
    {"Elu", {.step = EltwiseOp::Elu, .p = {"alpha", 1}}},
    {"Selu",
     {.step = EltwiseOp::Selu, .p = {"alpha", 1.67326319217681884765625}, .q = {"gamma", 1.05070102214813232421875}}},
    {"Celu", {.step = EltwiseOp::Celu, .p = {"alpha", 1}}},
    {"ThresholdedRelu", {.step = EltwiseOp::ThresholdedRelu, .p = {"alpha", 1}}},
    {"HardSigmoid", {.step = EltwiseOp::HardSigmoid, .p = {"alpha", 0.2}, .q = {"beta", 0.5}}},
    {"Swish", {.step = EltwiseOp::Swish, .p = {"alpha", 1}}},
    {"com.microsoft.QuickGelu", {.step = EltwiseOp::Swish, .p = {"alpha", 1.702}}},
    {"SwiGLU", {.emit = emit_swiglu}},
    {"Gelu", {.step = EltwiseOp::Gelu, .emit = emit_gelu}},
    {"com.microsoft.Gelu", {.step = EltwiseOp::Gelu, .emit = emit_gelu}},
    {"com.microsoft.BiasGelu", {.step = EltwiseOp::Gelu, .emit = emit_gelu}},
    {"com.microsoft.FastGelu", {.step = EltwiseOp::GeluTanh, .emit = emit_gelu}},
    {"Tan", {.step = EltwiseOp::Tan}},
    {"Asin", {.step = EltwiseOp::Asin}},
    {"Acos", {.step = EltwiseOp::Acos}},
    {"Atan", {.step = EltwiseOp::Atan}},
    {"Sinh", {.step = EltwiseOp::Sinh}},
    {"Cosh", {.step = EltwiseOp::Cosh}},
    {"Asinh", {.step = EltwiseOp::Asinh}},
    {"Acosh", {.step = EltwiseOp::Acosh}},
    {"Atanh", {.step = EltwiseOp::Atanh}},
    {"Shrink", {.step = EltwiseOp::Shrink, .p = {"bias", 0}, .q = {"lambd", 0.5}}},
    {"Mean", {.step = EltwiseOp::Scale, .emit = emit_mean}},
    {"Clip", {.step = EltwiseOp::Clip, .emit = emit_clip}},
    {"Pow", {.step = EltwiseOp::Pow, .emit = emit_pow}},
    {"QuantizeLinear", {.step = EltwiseOp::Quantize, .emit = emit_quantize}},
    {"DequantizeLinear", {.step = EltwiseOp::Mul, .emit = emit_dequantize}},
};

const Rule* find_rule(std::string_view op) {
  const auto* found =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const NamedRule& r) { return r.op == op; });
  return found == std::end(kRules) ? nullptr : &found->rule;
}

}  // namespace

bool is_eltwise(const Node& node) {
  if (node.outputs.size() != 1 || !node.outputs.front()) return false;
  for (const Value* v : node.inputs) {
    if (v && (!v->type.is_tensor() || !v->shape().has_rank())) return false;
  }
  const Value* out = node.outputs.front();
  if (!out->type.is_tensor() || !out->shape().has_rank()) return false;
  const auto input_is = [&](size_t i, DType dtype) { return node.input(i) && node.input(i)->dtype() == dtype; };
  if (node.op == "Cast") {
    const DType from = node.inputs.front()->dtype();
    const bool widens = out->dtype() == DType::Float32 && type_of(from).has_value();
    return widens || (from == DType::Float32 && is_computed(out->dtype()));
  }
  if (node.op == "QuantizeLinear") {
    return input_is(0, DType::Float32) && input_is(1, DType::Float32) && node.input(2) &&
           is_one_element(node.input(1)) && is_one_element(node.input(2)) &&
           (out->dtype() == DType::UInt8 || out->dtype() == DType::Int8);
  }
  if (node.op == "DequantizeLinear") {
    const DType from = node.inputs.front()->dtype();
    return (from == DType::UInt8 || from == DType::Int8) && input_is(1, DType::Float32) &&
           out->dtype() == DType::Float32 && is_one_element(node.input(1)) &&
           (!node.input(2) || is_one_element(node.input(2)));
  }
  const bool logic = node.op == "And" || node.op == "Or" || node.op == "Xor" || node.op == "Not";
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Value* v = node.inputs[i];
    if (!v) {
      if (node.op == "Clip") continue;
      return false;
    }
    const bool condition = node.op == "Where" && i == 0;
    const bool exponent = node.op == "Pow" && i == 1;
    if (exponent ? !type_of(v->dtype()) : logic || condition ? v->dtype() != DType::Bool : !is_computed(v->dtype())) {
      return false;
    }
  }
  if (!is_computed(out->dtype()) && out->dtype() != DType::Bool) return false;
  return find_rule(node.op) != nullptr;
}

std::vector<std::string_view> eltwise_ops() {
  std::vector<std::string_view> ops;
  for (const auto& [op, rule] : kRules) ops.push_back(op);
  return ops;
}

bool is_integer_eltwise(const Node& node) {
  const Rule* rule = find_rule(node.op);
  if (rule == nullptr || !rule->integers || node.outputs.size() != 1) return false;
  const auto is_integer_value = [](const Value* v) {
    if (!v || !v->type.is_tensor() || !v->shape().has_rank()) return false;
    const auto type = type_of(v->dtype());
    return type && *type != EltwiseType::F32 && *type <= EltwiseType::I64;
  };
  return is_integer_value(node.outputs.front()) &&
         std::all_of(node.inputs.begin(), node.inputs.end(), is_integer_value);
}

namespace {
thread_local EltwiseUse* eltwise_use = nullptr;
}  // namespace

EltwiseUse::EltwiseUse() : before_(eltwise_use) {
  eltwise_use = this;
}

EltwiseUse::~EltwiseUse() {
  eltwise_use = before_;
}

void EltwiseUse::add(const EltwiseProgram& program) {
  for (int i = 0; i < program.steps; ++i) ops_ |= uint64_t{1} << static_cast<int>(program.step[i].op);
}

std::optional<CompiledEltwise> compile_eltwise(const Workload& workload, std::string* why) {
  std::optional<CompiledEltwise> compiled = Compiler(workload).run(why);
  if (compiled && eltwise_use) eltwise_use->add(compiled->program);
  return compiled;
}

double step_cycles(EltwiseOp op) {
  switch (op) {
    case EltwiseOp::Reciprocal:
    case EltwiseOp::Softsign:
      return 6;
    case EltwiseOp::Div:
    case EltwiseOp::Sqrt:
      return 10;
    case EltwiseOp::Exp:
      return 9;
    case EltwiseOp::Swish:
      return 12;
    case EltwiseOp::Sigmoid:
      return 15;
    case EltwiseOp::GeluTanh:
      return 18;
    case EltwiseOp::Elu:
    case EltwiseOp::Selu:
    case EltwiseOp::Celu:
    case EltwiseOp::Sin:
    case EltwiseOp::Cos:
    case EltwiseOp::Tanh:
    case EltwiseOp::Erf:
      return 22;
    case EltwiseOp::Gelu:
    case EltwiseOp::Log:
      return 25;
    case EltwiseOp::Tan:
    case EltwiseOp::Asin:
    case EltwiseOp::Acos:
    case EltwiseOp::Atan:
    case EltwiseOp::Sinh:
    case EltwiseOp::Cosh:
    case EltwiseOp::Atanh:
      return 45;
    case EltwiseOp::Softplus:
    case EltwiseOp::Asinh:
    case EltwiseOp::Acosh:
      return 55;
    case EltwiseOp::Mish:
      return 100;
    case EltwiseOp::Pow:
      return 120;
    default:
      return 2;
  }
}

double eltwise_cycles(const EltwiseProgram& program) {
  double total = 0;
  for (int i = 0; i < program.steps; ++i) total += step_cycles(program.step[i].op);
  return total;
}

}  // namespace neo
