#include "routines/cpu/eltwise/compile_typed.h"

#include <algorithm>
#include <cmath>

#include "routines/cpu/eltwise/typed_compiler.h"

namespace neo {
namespace {

std::optional<double> find_number(const Value* v) {
  if (!v || !v->constant || v->constant->size() != 1) return std::nullopt;
  return load_double(v->dtype(), v->constant->data());
}

// Integers, bool by their bits

std::optional<Operand> emit_cast(TypedCompiler& c) {
  const auto x = c.input(0);
  if (!x || !lane_of(c.result_dtype())) return std::nullopt;
  return c.convert(*x, c.dtype(0), c.result_dtype());
}

std::optional<Operand> emit_bit_cast(TypedCompiler& c) {
  const auto lane = moved_lane_of(c.dtype(0));
  return lane ? std::optional(c.input_as(0, *lane)) : std::nullopt;
}

std::optional<Operand> emit_where(TypedCompiler& c) {
  const auto lane = moved_lane_of(c.result_dtype());
  if (!lane) return std::nullopt;
  return c.select(c.input_as(0, Lane::U8), c.input_as(1, *lane), c.input_as(2, *lane));
}

std::optional<Operand> emit_not(TypedCompiler& c) {
  return c.is_false(*c.input(0));
}

template <TypedOp kOp>
std::optional<Operand> emit_logic(TypedCompiler& c) {
  return c.test(kOp, *c.input(0), *c.input(1));
}

// An operator over integers alone; those of fewer than 8 bits are not among them.
template <TypedOp kOp>
std::optional<Operand> emit_bits(TypedCompiler& c) {
  const auto a = c.input(0);
  return a ? std::optional(c.step(kOp, *a, *c.input(1))) : std::nullopt;
}

std::optional<Operand> emit_bitwise_not(TypedCompiler& c) {
  const auto x = c.input(0);
  return x ? std::optional(c.mask(TypedOp::BitXor, *x, ~uint64_t{0})) : std::nullopt;
}

std::optional<Operand> emit_shift(TypedCompiler& c) {
  const bool left = c.node().string_attr("direction", "") == "LEFT";
  return left ? emit_bits<TypedOp::ShiftLeft>(c) : emit_bits<TypedOp::ShiftRight>(c);
}

// Operands of a comparison: halves as float32.
std::optional<Operand> compared(TypedCompiler& c, size_t i) {
  const auto x = c.input(i);
  return x && is_half(x->lane) ? std::optional(c.convert(*x, Lane::F32)) : x;
}

template <TypedOp kOp, bool kSwapped = false>
std::optional<Operand> emit_comparison(TypedCompiler& c) {
  if (c.dtype(0) == DType::Bool) return c.is_false(c.test(TypedOp::Xor, *c.input(0), *c.input(1)));
  const auto a = compared(c, 0);
  if (!a) return std::nullopt;
  const auto b = compared(c, 1);
  return kSwapped ? c.test(kOp, *b, *a) : c.test(kOp, *a, *b);
}

uint64_t infinity_bits(Lane lane) {
  switch (lane) {
    case Lane::F16:
      return 0x7c00;
    case Lane::BF16:
      return 0x7f80;
    case Lane::F32:
      return 0x7f800000;
    default:
      return uint64_t{0x7ff} << 52;
  }
}

// The bits of a number without its sign, as an integer.
Operand magnitude_bits(TypedCompiler& c, Operand x) {
  Operand bits = c.mask(TypedOp::BitAnd, x, sign_bit(x.lane) - 1);
  bits.lane = bits_of(x.lane);
  return bits;
}

std::optional<Operand> emit_is_nan(TypedCompiler& c) {
  const auto x = c.input(0);
  if (!x) return std::nullopt;
  if (!is_half(x->lane)) return c.test(TypedOp::NotEqual, *x, *x);
  return c.test(TypedOp::Less, c.constant(bits_of(x->lane), infinity_bits(x->lane)), magnitude_bits(c, *x));
}

std::optional<Operand> emit_is_inf(TypedCompiler& c) {
  const bool negative = c.node().int_attr("detect_negative", 1) != 0;
  const bool positive = c.node().int_attr("detect_positive", 1) != 0;
  const auto x = c.input(0);
  if (!x) return std::nullopt;
  Operand bits = *x;
  bits.lane = bits_of(x->lane);
  const uint64_t infinity = infinity_bits(x->lane);
  if (!positive && !negative) return c.test(TypedOp::Less, bits, c.constant(bits.lane, 0));
  if (positive && negative) bits = magnitude_bits(c, *x);
  return c.test(TypedOp::Equal, bits, c.constant(bits.lane, positive ? infinity : infinity | sign_bit(x->lane)));
}

// Numbers: integers and float64. float32 has programs of its own (routines/patterns/compile_program.h), which take
// halves as well.

std::optional<Operand> number(TypedCompiler& c, size_t i) {
  const auto x = c.input(i);
  return x && (is_whole(x->lane) || x->lane == Lane::F64) ? x : std::nullopt;
}

Operand zero(TypedCompiler& c, Lane lane) {
  return c.constant(lane, 0);
}

template <TypedOp kOp>
std::optional<Operand> emit_arithmetic(TypedCompiler& c) {
  auto x = number(c, 0);
  if (!x) return std::nullopt;
  for (size_t i = 1; i < c.node().inputs.size(); ++i) x = c.step(kOp, *x, *c.input(i));
  return x;
}

std::optional<Operand> emit_mean(TypedCompiler& c) {
  const auto sum = emit_arithmetic<TypedOp::Add>(c);
  if (!sum) return std::nullopt;
  return c.step(TypedOp::Div, *sum, c.real(static_cast<double>(c.node().inputs.size())));
}

std::optional<Operand> emit_mod(TypedCompiler& c) {
  const TypedOp op = c.node().int_attr("fmod", 0) != 0 ? TypedOp::Mod : TypedOp::FloorMod;
  const auto a = compared(c, 0);
  if (!a) return std::nullopt;
  const Operand r = c.step(op, *a, *compared(c, 1));
  return is_half(*lane_of(c.dtype(0))) ? c.convert(r, *lane_of(c.dtype(0))) : r;
}

std::optional<Operand> emit_pow(TypedCompiler& c) {
  const auto base = c.input(0), exponent = c.input(1);
  if (!base || !exponent) return std::nullopt;
  const auto known = find_number(c.node().inputs[1]);
  const bool whole = is_whole(base->lane) && is_whole(exponent->lane);
  if ((whole || base->lane == Lane::F64) && (known == 2.0 || known == 3.0)) {
    const Operand square = c.step(TypedOp::Mul, *base, *base);
    return known == 2.0 ? square : c.step(TypedOp::Mul, square, *base);
  }
  if (base->lane == Lane::F32 || is_half(base->lane)) return std::nullopt;
  const Lane lane = whole ? Lane::I64 : Lane::F64;
  const auto as_lane = [&](Operand x) { return x.lane == lane ? x : c.convert(x, lane); };
  const Operand power = c.step(TypedOp::Pow, as_lane(*base), as_lane(*exponent));
  return base->lane == lane ? power : c.convert(power, base->lane);
}

std::optional<Operand> emit_neg(TypedCompiler& c) {
  const auto x = c.input(0);
  return x && x->lane != Lane::F32 ? std::optional(c.step(TypedOp::Neg, *x)) : std::nullopt;
}

std::optional<Operand> emit_abs(TypedCompiler& c) {
  const auto x = c.input(0);
  if (!x || x->lane == Lane::F32) return std::nullopt;
  return is_whole(x->lane) && !is_signed_lane(x->lane) ? *x : c.step(TypedOp::Abs, *x);
}

std::optional<Operand> emit_sign(TypedCompiler& c) {
  const auto x = number(c, 0);
  return x ? std::optional(c.step(TypedOp::Sign, *x)) : std::nullopt;
}

std::optional<Operand> emit_relu(TypedCompiler& c) {
  const auto x = number(c, 0);
  return x ? std::optional(c.step(TypedOp::Max, *x, zero(c, x->lane))) : std::nullopt;
}

std::optional<Operand> emit_clip(TypedCompiler& c) {
  const auto x = c.input(0);
  if (!x || is_half(x->lane)) return std::nullopt;
  const Value *low = c.node().input(1), *high = c.node().input(2);
  if (low && high) return c.clamp(*x, *c.input(1), *c.input(2));
  if (low) return c.step(TypedOp::Max, *x, *c.input(1));
  return high ? c.step(TypedOp::Min, *x, *c.input(2)) : *x;
}

std::optional<Operand> emit_prelu(TypedCompiler& c) {
  const auto x = number(c, 0);
  if (!x) return std::nullopt;
  if (is_whole(x->lane) && !is_signed_lane(x->lane)) return x;
  const Operand scaled = c.step(TypedOp::Mul, *x, *c.input(1));
  return c.select(c.test(TypedOp::Less, *x, zero(c, x->lane)), scaled, *x);
}

// Float64, and integers by a whole bias that is not negative.
std::optional<Operand> emit_shrink(TypedCompiler& c) {
  const auto x = number(c, 0);
  if (!x) return std::nullopt;
  const bool whole = is_whole(x->lane);
  const double bias = c.attr("bias", 0), lambd = whole ? std::floor(c.attr("lambd", 0.5)) : c.attr("lambd", 0.5);
  const double most = whole ? static_cast<double>(integer_max(c.dtype(0))) : 0;
  if (whole && (lambd < 0 || lambd >= most || bias < 0 || bias >= most || bias != std::floor(bias)))
    return std::nullopt;
  const auto of = [&](double value) {
    return whole ? c.constant(x->lane, static_cast<uint64_t>(static_cast<int64_t>(value))) : c.real(value);
  };
  const Operand above = c.select(c.test(TypedOp::Less, of(lambd), *x), c.step(TypedOp::Sub, *x, of(bias)), of(0));
  if (whole && !is_signed_lane(x->lane)) return above;
  return c.select(c.test(TypedOp::Less, *x, of(-lambd)), c.step(TypedOp::Add, *x, of(bias)), above);
}

constexpr NamedEmit kEmits[] = {
    {"Abs", emit_abs},
    {"Add", emit_arithmetic<TypedOp::Add>},
    {"And", emit_logic<TypedOp::And>},
    {"BitCast", emit_bit_cast},
    {"BitShift", emit_shift},
    {"BitwiseAnd", emit_bits<TypedOp::BitAnd>},
    {"BitwiseNot", emit_bitwise_not},
    {"BitwiseOr", emit_bits<TypedOp::BitOr>},
    {"BitwiseXor", emit_bits<TypedOp::BitXor>},
    {"Cast", emit_cast},
    {"CastLike", emit_cast},
    {"Clip", emit_clip},
    {"Div", emit_arithmetic<TypedOp::Div>},
    {"Equal", emit_comparison<TypedOp::Equal>},
    {"Greater", emit_comparison<TypedOp::Less, true>},
    {"GreaterOrEqual", emit_comparison<TypedOp::LessEqual, true>},
    {"IsInf", emit_is_inf},
    {"IsNaN", emit_is_nan},
    {"Less", emit_comparison<TypedOp::Less>},
    {"LessOrEqual", emit_comparison<TypedOp::LessEqual>},
    {"Max", emit_arithmetic<TypedOp::Max>},
    {"Mean", emit_mean},
    {"Min", emit_arithmetic<TypedOp::Min>},
    {"Mod", emit_mod},
    {"Mul", emit_arithmetic<TypedOp::Mul>},
    {"Neg", emit_neg},
    {"Not", emit_not},
    {"Or", emit_logic<TypedOp::Or>},
    {"PRelu", emit_prelu},
    {"Pow", emit_pow},
    {"Relu", emit_relu},
    {"Shrink", emit_shrink},
    {"Sign", emit_sign},
    {"Sub", emit_arithmetic<TypedOp::Sub>},
    {"Sum", emit_arithmetic<TypedOp::Add>},
    {"Where", emit_where},
    {"Xor", emit_logic<TypedOp::Xor>},
};

// Null: no dtype has a program of the operator.
const NamedEmit* find_emit(std::string_view op) {
  static const std::vector<NamedEmit> all = [] {
    std::vector<NamedEmit> emits = double_functions();
    emits.insert(emits.end(), std::begin(kEmits), std::end(kEmits));
    return emits;
  }();
  const auto found = std::find_if(all.begin(), all.end(), [&](const NamedEmit& x) { return x.op == op; });
  return found == all.end() ? nullptr : &*found;
}

bool is_tensor_of_rank(const Value* v) {
  return v->type.is_tensor() && v->shape().has_rank();
}

// Cycles of a step for as many elements as a vector of float32 has.
double cycles_of(const TypedStep& s) {
  const double vectors = lane_bytes(s.lane) / 4.0;
  switch (s.op) {
    case TypedOp::Div:
      return s.lane == Lane::I64 || s.lane == Lane::U64 ? 120 : 10 * vectors;
    case TypedOp::Mod:
    case TypedOp::FloorMod:
      return s.lane == Lane::I64 || s.lane == Lane::U64 || s.lane >= Lane::F32 ? 160 : 15 * vectors;
    case TypedOp::Sqrt:
      return 20;
    case TypedOp::Exp:
    case TypedOp::Expm1:
    case TypedOp::Log:
    case TypedOp::Tanh:
    case TypedOp::Sigmoid:
      return 30;
    case TypedOp::Pow:
      return s.lane == Lane::F64 ? 120 : 50;
    default:
      return s.op >= TypedOp::Sin && s.op <= TypedOp::Log1p ? 100 : 2 * vectors;
  }
}

}  // namespace

std::vector<std::string_view> typed_ops() {
  std::vector<std::string_view> ops;
  for (const auto& [op, emit] : kEmits) ops.push_back(op);
  for (const auto& [op, emit] : double_functions()) ops.push_back(op);
  return ops;
}

std::optional<CompiledTyped> compile_typed(const Workload& workload) {
  const Node& node = workload.root();
  const NamedEmit* found = find_emit(node.op);
  if (found == nullptr || workload.nodes.size() != 1 || node.outputs.size() != 1) return std::nullopt;
  const bool is_clip = node.op == "Clip";
  for (const Value* v : node.inputs) {
    if (v ? !is_tensor_of_rank(v) : !is_clip) return std::nullopt;
  }
  if (!is_tensor_of_rank(node.outputs.front())) return std::nullopt;
  TypedCompiler compiler(workload);
  const auto result = found->emit(compiler);
  auto compiled = result ? compiler.finish(*result) : std::nullopt;
  if (compiled) {
    for (int i = 0; i < compiled->program.steps; ++i) compiled->cycles += cycles_of(compiled->program.step[i]);
  }
  return compiled;
}

}  // namespace neo
