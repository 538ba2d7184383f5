#include "routines/cpu/eltwise/compile_program.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/check.h"

namespace neo {
namespace {

const std::map<std::string_view, EltwiseOp>& simple_ops() {
  static const std::map<std::string_view, EltwiseOp> ops = {
      {"Neg", EltwiseOp::Neg},
      {"Abs", EltwiseOp::Abs},
      {"Sqrt", EltwiseOp::Sqrt},
      {"Reciprocal", EltwiseOp::Reciprocal},
      {"Exp", EltwiseOp::Exp},
      {"Log", EltwiseOp::Log},
      {"Tanh", EltwiseOp::Tanh},
      {"Sigmoid", EltwiseOp::Sigmoid},
      {"Erf", EltwiseOp::Erf},
      {"Relu", EltwiseOp::Relu},
      {"HardSwish", EltwiseOp::HardSwish},
      {"Softplus", EltwiseOp::Softplus},
      {"Softsign", EltwiseOp::Softsign},
      {"Mish", EltwiseOp::Mish},
      {"Floor", EltwiseOp::Floor},
      {"Ceil", EltwiseOp::Ceil},
      {"Round", EltwiseOp::Round},
      {"Sign", EltwiseOp::Sign},
      {"Sin", EltwiseOp::Sin},
      {"Cos", EltwiseOp::Cos},
      {"Not", EltwiseOp::Not},
      {"IsNaN", EltwiseOp::IsNan},
      {"Add", EltwiseOp::Add},
      {"Sub", EltwiseOp::Sub},
      {"Mul", EltwiseOp::Mul},
      {"Div", EltwiseOp::Div},
      {"PRelu", EltwiseOp::PRelu},
      {"Equal", EltwiseOp::Equal},
      {"Less", EltwiseOp::Less},
      {"LessOrEqual", EltwiseOp::LessEqual},
      {"Greater", EltwiseOp::Greater},
      {"GreaterOrEqual", EltwiseOp::GreaterEqual},
      {"And", EltwiseOp::And},
      {"Or", EltwiseOp::Or},
      {"Xor", EltwiseOp::Xor},
      {"Where", EltwiseOp::Where},
  };
  return ops;
}

const std::map<std::string_view, EltwiseOp>& folding_ops() {
  static const std::map<std::string_view, EltwiseOp> ops = {
      {"Sum", EltwiseOp::Add}, {"Max", EltwiseOp::Max}, {"Min", EltwiseOp::Min}};
  return ops;
}

std::optional<EltwiseType> type_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return EltwiseType::F32;
    case DType::UInt8:
      return EltwiseType::U8;
    case DType::Int8:
      return EltwiseType::I8;
    case DType::Bool:
      return EltwiseType::Bool;
    case DType::Int32:
      return EltwiseType::I32;
    case DType::Int64:
      return EltwiseType::I64;
    default:
      return std::nullopt;
  }
}

bool is_small(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::UInt8 || dtype == DType::Int8 || dtype == DType::Bool;
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
      emit(*workload_.nodes[i]);
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

 private:
  void last_use_of_inputs(const Node& node, int at) {
    for (const Value* v : node.inputs) {
      if (v) last_use_[v] = at;
    }
  }

  int8_t operand(const Value* v) {
    if (const auto it = register_of_.find(v); it != register_of_.end()) return it->second;
    const auto [it, fresh] = input_of_.try_emplace(v, static_cast<int>(out_.inputs.size()));
    if (fresh) out_.inputs.push_back(workload_.input_index(v));
    return static_cast<int8_t>(-1 - it->second);
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

  int8_t step(EltwiseOp op, int8_t a, int8_t b = 0, int8_t c = 0, double p = 0, double q = 0) {
    steps_.push_back({op, take_register(), a, b, c, static_cast<float>(p), static_cast<float>(q)});
    return steps_.back().dst;
  }

  void finish(const Node& node, EltwiseOp op, int8_t a, int8_t b = 0, int8_t c = 0, double p = 0, double q = 0) {
    release(node);
    register_of_[node.outputs.front()] = step(op, a, b, c, p, q);
  }

  void emit(const Node& node) {
    const auto in = [&](size_t i) { return operand(node.inputs[i]); };
    const std::string& op = node.op;
    if (const auto it = simple_ops().find(op); it != simple_ops().end()) {
      const int8_t a = in(0);
      const int8_t b = node.inputs.size() > 1 ? in(1) : int8_t{0};
      const int8_t c = node.inputs.size() > 2 ? in(2) : int8_t{0};
      finish(node, it->second, a, b, c);
    } else if (const auto fold = folding_ops().find(op); fold != folding_ops().end()) {
      int8_t left = in(0);
      bool temporary = false;
      for (size_t i = 1; i < node.inputs.size(); ++i) {
        const int8_t right = in(i);
        if (i + 1 == node.inputs.size()) {
          if (temporary) free_.push_back(left);
          finish(node, fold->second, left, right);
          return;
        }
        if (temporary) free_.push_back(left);
        left = step(fold->second, left, right);
        temporary = true;
      }
      finish(node, EltwiseOp::Copy, left);
    } else if (op == "LeakyRelu") {
      finish(node, EltwiseOp::LeakyRelu, in(0), 0, 0, node.float_attr("alpha", 0.01));
    } else if (op == "Elu") {
      finish(node, EltwiseOp::Elu, in(0), 0, 0, node.float_attr("alpha", 1));
    } else if (op == "Selu") {
      finish(node, EltwiseOp::Selu, in(0), 0, 0, node.float_attr("alpha", 1.67326319217681884765625),
             node.float_attr("gamma", 1.05070102214813232421875));
    } else if (op == "Celu") {
      finish(node, EltwiseOp::Celu, in(0), 0, 0, node.float_attr("alpha", 1));
    } else if (op == "ThresholdedRelu") {
      finish(node, EltwiseOp::ThresholdedRelu, in(0), 0, 0, node.float_attr("alpha", 1));
    } else if (op == "HardSigmoid") {
      finish(node, EltwiseOp::HardSigmoid, in(0), 0, 0, node.float_attr("alpha", 0.2), node.float_attr("beta", 0.5));
    } else if (op == "Swish") {
      finish(node, EltwiseOp::Swish, in(0), 0, 0, node.float_attr("alpha", 1));
    } else if (op == "Gelu") {
      finish(node, node.string_attr("approximate", "none") == "tanh" ? EltwiseOp::GeluTanh : EltwiseOp::Gelu, in(0));
    } else if (op == "Clip") {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      const double lo = node.input(1) ? *scalar_constant(node.input(1)) : -kInfinity;
      const double hi = node.input(2) ? *scalar_constant(node.input(2)) : kInfinity;
      finish(node, EltwiseOp::Clip, in(0), 0, 0, lo, hi);
    } else if (op == "Pow") {
      const auto exponent = scalar_constant(node.input(1));
      if (exponent == 2.0)
        finish(node, EltwiseOp::Square, in(0));
      else if (exponent == 0.5)
        finish(node, EltwiseOp::Sqrt, in(0));
      else if (exponent == -1.0)
        finish(node, EltwiseOp::Reciprocal, in(0));
      else
        finish(node, EltwiseOp::Pow, in(0), in(1));
    } else if (op == "Cast") {
      finish(node, EltwiseOp::Copy, in(0));
    } else if (op == "QuantizeLinear") {
      const DType dtype = node.outputs.front()->dtype();
      finish(node, EltwiseOp::Quantize, in(0), in(1), in(2), static_cast<double>(integer_min(dtype)),
             static_cast<double>(integer_max(dtype)));
    } else if (op == "DequantizeLinear") {
      if (node.input(2)) {
        const int8_t centred = step(EltwiseOp::Sub, in(0), in(2));
        free_.push_back(centred);
        finish(node, EltwiseOp::Mul, centred, in(1));
      } else {
        finish(node, EltwiseOp::Mul, in(0), in(1));
      }
    } else {
      why_ = str(op, " is not elementwise");
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
    return out->dtype() == DType::Float32 && type_of(from).has_value();
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
    if (logic || condition ? v->dtype() != DType::Bool : v->dtype() != DType::Float32) return false;
  }
  if (!is_small(out->dtype())) return false;
  if (node.op == "Clip") {
    return (!node.input(1) || scalar_constant(node.input(1))) && (!node.input(2) || scalar_constant(node.input(2)));
  }
  static constexpr std::string_view kWithAttributes[] = {"LeakyRelu",   "Elu",   "Selu", "Celu", "ThresholdedRelu",
                                                         "HardSigmoid", "Swish", "Gelu", "Pow"};
  return simple_ops().count(node.op) > 0 || folding_ops().count(node.op) > 0 ||
         std::find(std::begin(kWithAttributes), std::end(kWithAttributes), node.op) != std::end(kWithAttributes);
}

std::vector<std::string_view> integer_eltwise_ops() {
  return {
      "Neg",         "Abs",     "Sign",           "Not", "Add", "Sub",   "Mul",   "Min", "Max", "Sum", "And", "Less",
      "LessOrEqual", "Greater", "GreaterOrEqual", "Or",  "Xor", "Equal", "Where", "Cast"};
}

bool is_integer_eltwise(const Node& node) {
  const std::vector<std::string_view> ops = integer_eltwise_ops();
  if (std::find(ops.begin(), ops.end(), node.op) == ops.end() || node.outputs.size() != 1) return false;
  const auto is_integer_value = [](const Value* v) {
    if (!v || !v->type.is_tensor() || !v->shape().has_rank()) return false;
    const auto type = type_of(v->dtype());
    return type && *type != EltwiseType::F32;
  };
  return is_integer_value(node.outputs.front()) &&
         std::all_of(node.inputs.begin(), node.inputs.end(), is_integer_value);
}

std::optional<CompiledEltwise> compile_eltwise(const Workload& workload, std::string* why) {
  return Compiler(workload).run(why);
}

double eltwise_work(const EltwiseProgram& program) {
  double total = 0;
  for (int i = 0; i < program.steps; ++i) {
    switch (program.step[i].op) {
      case EltwiseOp::Exp:
      case EltwiseOp::Log:
      case EltwiseOp::Tanh:
      case EltwiseOp::Sigmoid:
      case EltwiseOp::Erf:
      case EltwiseOp::Elu:
      case EltwiseOp::Selu:
      case EltwiseOp::Celu:
      case EltwiseOp::Softplus:
      case EltwiseOp::Gelu:
      case EltwiseOp::GeluTanh:
      case EltwiseOp::Swish:
      case EltwiseOp::Sin:
      case EltwiseOp::Cos:
        total += 20;
        break;
      case EltwiseOp::Mish:
      case EltwiseOp::Pow:
        total += 40;
        break;
      default:
        total += 1.5;
        break;
    }
  }
  return total;
}

}  // namespace neo
