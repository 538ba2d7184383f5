#pragma once

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>
#include <vector>

#include "routines/cpu/eltwise/compile_typed.h"

namespace neo {

// The lanes that numbers of a dtype have; none for strings, complex numbers and fewer bits than 8 or their like.
std::optional<Lane> lane_of(DType dtype);
// Lanes for elements that are only moved.
std::optional<Lane> moved_lane_of(DType dtype);

inline bool is_half(Lane lane) {
  return lane == Lane::F16 || lane == Lane::BF16;
}
inline bool is_whole(Lane lane) {
  return lane <= Lane::U64;
}
inline bool is_signed_lane(Lane lane) {
  return lane == Lane::I8 || lane == Lane::I16 || lane == Lane::I32 || lane == Lane::I64;
}
inline Lane bits_of(Lane lane) {
  constexpr Lane kBits[] = {Lane::U8, Lane::U16, Lane::U32, Lane::U64};
  return kBits[std::countr_zero(static_cast<unsigned>(lane_bytes(lane)))];
}
inline uint64_t sign_bit(Lane lane) {
  return uint64_t{1} << (8 * lane_bytes(lane) - 1);
}

// The operand of a step: an input of the workload, a constant or the result of an earlier step.
struct Operand {
  enum class Kind : uint8_t { Input, Constant, Step };
  Kind kind = Kind::Input;
  int index = 0;
  Lane lane = Lane::U8;
};

struct DraftStep {
  TypedOp op;
  Lane lane, to;
  Operand a, b, c;
  int operands;
};

// The steps of one node in the making.
class TypedCompiler {
 public:
  explicit TypedCompiler(const Workload& workload) : workload_(workload), node_(workload.root()) {}

  const Node& node() const { return node_; }
  DType dtype(size_t i) const { return node_.inputs[i]->dtype(); }
  DType result_dtype() const { return node_.outputs.front()->dtype(); }
  double attr(std::string_view name, double fallback) const { return node_.float_attr(name, fallback); }

  // An input in its own lanes.
  std::optional<Operand> input(size_t i) {
    const auto lane = lane_of(dtype(i));
    return lane ? std::optional(input_as(i, *lane)) : std::nullopt;
  }
  Operand input_as(size_t i, Lane lane) { return {Operand::Kind::Input, workload_.input_index(node_.inputs[i]), lane}; }

  Operand constant(Lane lane, uint64_t bits) {
    for (size_t i = 0; i < constants_.size(); ++i) {
      if (constants_[i] == bits && constant_lanes_[i] == lane)
        return {Operand::Kind::Constant, static_cast<int>(i), lane};
    }
    constants_.push_back(bits);
    constant_lanes_.push_back(lane);
    return {Operand::Kind::Constant, static_cast<int>(constants_.size()) - 1, lane};
  }
  Operand real(double x) { return constant(Lane::F64, std::bit_cast<uint64_t>(x)); }

  Operand step(TypedOp op, Operand a, Lane result) { return add({op, a.lane, result, a, {}, {}, 1}, result); }
  Operand step(TypedOp op, Operand a) { return step(op, a, a.lane); }
  Operand step(TypedOp op, Operand a, Operand b) { return add({op, a.lane, a.lane, a, b, {}, 2}, a.lane); }
  // A comparison, or an operator of truth values.
  Operand test(TypedOp op, Operand a, Operand b) { return add({op, a.lane, Lane::U8, a, b, {}, 2}, Lane::U8); }
  Operand is_true(Operand a) { return step(TypedOp::IsTrue, a, Lane::U8); }
  Operand is_false(Operand a) { return step(TypedOp::IsFalse, a, Lane::U8); }
  Operand select(Operand condition, Operand a, Operand b) {
    return add({TypedOp::Select, a.lane, a.lane, condition, a, b, 3}, a.lane);
  }
  Operand clamp(Operand a, Operand low, Operand high) {
    return add({TypedOp::Clamp, a.lane, a.lane, a, low, high, 3}, a.lane);
  }
  // The bits of an operand by a mask.
  Operand mask(TypedOp op, Operand a, uint64_t bits) {
    const Lane lane = a.lane;
    Operand result = step(op, as_bits(a), constant(bits_of(lane), bits));
    result.lane = lane;
    return result;
  }

  // The conversion that Cast makes of numbers, in as many steps as it takes.
  Operand convert(Operand x, Lane to);
  Operand convert(Operand x, DType from, DType to);

  std::optional<CompiledTyped> finish(Operand result);

 private:
  static Operand as_bits(Operand a) {
    a.lane = bits_of(a.lane);
    return a;
  }

  Operand add(DraftStep step, Lane result) {
    steps_.push_back(step);
    return {Operand::Kind::Step, static_cast<int>(steps_.size()) - 1, result};
  }

  bool take_registers(CompiledTyped& out) const;

  const Workload& workload_;
  const Node& node_;
  std::vector<uint64_t> constants_;
  std::vector<Lane> constant_lanes_;
  std::vector<DraftStep> steps_;
};

// How an operator of some dtypes becomes steps; none for others.
struct NamedEmit {
  std::string_view op;
  std::optional<Operand> (*emit)(TypedCompiler&);
};
// Those of float64 alone.
std::vector<NamedEmit> double_functions();

}  // namespace neo
