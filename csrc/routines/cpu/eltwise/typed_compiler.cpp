#include "routines/cpu/eltwise/typed_compiler.h"

#include "base/check.h"

namespace neo {

std::optional<Lane> lane_of(DType dtype) {
  switch (dtype) {
    case DType::Float64:
      return Lane::F64;
    case DType::Float32:
      return Lane::F32;
    case DType::Float16:
      return Lane::F16;
    case DType::BFloat16:
      return Lane::BF16;
    case DType::Int64:
      return Lane::I64;
    case DType::Int32:
      return Lane::I32;
    case DType::Int16:
      return Lane::I16;
    case DType::Int8:
      return Lane::I8;
    case DType::UInt64:
      return Lane::U64;
    case DType::UInt32:
      return Lane::U32;
    case DType::UInt16:
      return Lane::U16;
    case DType::UInt8:
    case DType::Bool:
      return Lane::U8;
    default:
      return std::nullopt;
  }
}

// Lanes for elements that are only moved.
std::optional<Lane> moved_lane_of(DType dtype) {
  if (dtype == DType::String || dtype == DType::Undefined) return std::nullopt;
  switch (item_bytes(dtype)) {
    case 1:
      return Lane::U8;
    case 2:
      return Lane::U16;
    case 4:
      return Lane::U32;
    case 8:
      return Lane::U64;
    default:
      return std::nullopt;
  }
}

Operand TypedCompiler::convert(Operand x, Lane to) {
  const Lane from = x.lane;
  const bool wide = is_whole(from) && lane_bytes(from) >= 4;
  if (from == to || (is_whole(from) && is_whole(to) && lane_bytes(from) == lane_bytes(to))) {
    x.lane = to;
    return x;
  }
  if (has_conversion(from, to)) return step(TypedOp::Convert, x, to);
  if (is_half(from)) return convert(step(TypedOp::Convert, x, Lane::F32), to);
  if (is_half(to)) {
    if (from == Lane::F64) return convert(step(TypedOp::RoundToOdd, x, Lane::F32), to);
    // Only float16 ends before float32 has to round a whole number.
    return convert(convert(x, wide && to == Lane::BF16 ? Lane::F64 : Lane::F32), to);
  }
  return convert(step(TypedOp::Convert, x, Lane::I32), to);
}

Operand TypedCompiler::convert(Operand x, DType from, DType to) {
  if (to == DType::Bool) return is_true(x);
  return convert(from == DType::Bool && to != DType::Bool ? is_true(x) : x, *lane_of(to));
}

std::optional<CompiledTyped> TypedCompiler::finish(Operand result) {
  if (result.kind != Operand::Kind::Step) result = step(TypedOp::Convert, as_bits(result), bits_of(result.lane));
  NEO_ASSERT(result.index + 1 == static_cast<int>(steps_.size()));
  CompiledTyped out;
  TypedProgram& p = out.program;
  for (const DraftStep& s : steps_) {
    for (const Operand* x : {&s.a, &s.b, &s.c}) {
      if (x->kind == Operand::Kind::Input) out.inputs.push_back(x->index);
      if (s.operands == 1 || (s.operands == 2 && x == &s.b)) break;
    }
  }
  std::sort(out.inputs.begin(), out.inputs.end());
  out.inputs.erase(std::unique(out.inputs.begin(), out.inputs.end()), out.inputs.end());
  if (steps_.size() > kTypedMaxSteps || out.inputs.size() + 1 > kTypedMaxOperands ||
      constants_.size() > kTypedMaxConstants) {
    return std::nullopt;
  }
  p.inputs = static_cast<int32_t>(out.inputs.size());
  p.constants = static_cast<int32_t>(constants_.size());
  std::copy(constants_.begin(), constants_.end(), p.constant);
  std::copy(constant_lanes_.begin(), constant_lanes_.end(), p.constant_lane);
  for (size_t i = 0; i < out.inputs.size(); ++i) {
    p.lane[i] = *moved_lane_of(workload_.inputs[static_cast<size_t>(out.inputs[i])]->dtype());
  }
  p.lane[p.inputs] = *moved_lane_of(result_dtype());
  if (!take_registers(out)) return std::nullopt;
  for (int i = 0; i <= p.inputs; ++i) out.widest = std::max(out.widest, lane_bytes(p.lane[i]));
  for (const DraftStep& s : steps_) out.widest = std::max({out.widest, lane_bytes(s.lane), lane_bytes(s.to)});
  return out;
}

// A step never writes over what it reads.
bool TypedCompiler::take_registers(CompiledTyped& out) const {
  TypedProgram& p = out.program;
  std::vector<int> last_use(steps_.size(), -1), registers(steps_.size(), -1);
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (const Operand* x : {&steps_[i].a, &steps_[i].b, &steps_[i].c}) {
      if (x->kind == Operand::Kind::Step) last_use[static_cast<size_t>(x->index)] = static_cast<int>(i);
    }
  }
  for (size_t i = 0; i < steps_.size(); ++i) {
    const DraftStep& draft = steps_[i];
    const auto place = [&](const Operand& x) -> int8_t {
      if (x.kind == Operand::Kind::Step) return static_cast<int8_t>(registers[static_cast<size_t>(x.index)]);
      const auto found = std::find(out.inputs.begin(), out.inputs.end(), x.index) - out.inputs.begin();
      return static_cast<int8_t>(-1 - (x.kind == Operand::Kind::Input ? found : p.inputs + x.index));
    };
    TypedStep& s = p.step[i];
    s = {draft.op, draft.lane, draft.to};
    s.a = place(draft.a);
    if (draft.operands > 1) s.b = place(draft.b);
    if (draft.operands > 2) s.c = place(draft.c);
    if (i + 1 == steps_.size()) {
      s.dst = -1;
      break;
    }
    int free = 0;
    for (bool taken = true; taken; free += taken ? 1 : 0) {
      taken = false;
      for (size_t j = 0; j < i; ++j) taken |= registers[j] == free && last_use[j] >= static_cast<int>(i);
    }
    if (free >= kTypedMaxRegisters) return false;
    registers[i] = free;
    s.dst = static_cast<int8_t>(free);
    p.registers = std::max(p.registers, free + 1);
  }
  p.steps = static_cast<int32_t>(steps_.size());
  return true;
}

}  // namespace neo
