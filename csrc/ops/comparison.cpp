#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// Comparisons

struct Comparison {
  std::string_view name;
  bool (*real)(double, double);
  bool (*whole)(DType, int64_t, int64_t);
  std::optional<bool> (*size)(const Dim&, const Dim&);
};

std::optional<bool> negated(std::optional<bool> known) {
  return known ? std::optional(!*known) : std::nullopt;
}

constexpr std::array kComparisons = {
    Comparison{"Equal", [](double a, double b) { return a == b; }, [](DType, int64_t a, int64_t b) { return a == b; },
               prove_equal},
    Comparison{"Greater", [](double a, double b) { return a > b; },
               [](DType dtype, int64_t a, int64_t b) { return int_less(dtype, b, a); },
               [](const Dim& a, const Dim& b) { return prove_less(b, a); }},
    Comparison{"GreaterOrEqual", [](double a, double b) { return a >= b; },
               [](DType dtype, int64_t a, int64_t b) { return !int_less(dtype, a, b); },
               [](const Dim& a, const Dim& b) { return negated(prove_less(a, b)); }},
    Comparison{"Less", [](double a, double b) { return a < b; }, int_less, prove_less},
    Comparison{"LessOrEqual", [](double a, double b) { return a <= b; },
               [](DType dtype, int64_t a, int64_t b) { return !int_less(dtype, b, a); },
               [](const Dim& a, const Dim& b) { return negated(prove_less(b, a)); }},
};

const Comparison& get_comparison(const Node& node) {
  const auto* found = std::find_if(kComparisons.begin(), kComparisons.end(),
                                   [&](const Comparison& comparison) { return comparison.name == node.op; });
  NEO_ASSERT(found != kComparisons.end(), node.op);
  return *found;
}

void infer_comparison(InferContext& ctx) {
  const Comparison& comparison = get_comparison(ctx.node());
  check_same_dtype(ctx, 0, 1);
  if (comparison.name != "Equal") check_dtype(ctx, 0, DTypeClass::Number);
  ctx.set_output(0, DType::Bool, ctx.broadcast(ctx.shape(0), ctx.shape(1)));
  const auto left = shape_contents(ctx, 0);
  const auto right = shape_contents(ctx, 1);
  if (!left || !right || ctx.dtype(0) == DType::UInt64) return;
  if (left->size() != right->size() && left->size() != 1 && right->size() != 1) return;
  std::vector<Dim> contents;
  const size_t count = left->size() == 1 ? right->size() : left->size();
  for (size_t i = 0; i < count; ++i) {
    const auto known = comparison.size((*left)[left->size() == 1 ? 0 : i], (*right)[right->size() == 1 ? 0 : i]);
    if (!known) return;
    contents.emplace_back(*known ? 1 : 0);
  }
  ctx.set_contents(0, std::move(contents));
}

void reference_comparison(ReferenceContext& ctx) {
  const Comparison& comparison = get_comparison(ctx.node());
  const Dims dims = broadcast_all_dims(ctx);
  const DType dtype = ctx.input(0).dtype();
  const Tensor& y = ctx.output(0, DType::Bool, dims);
  const auto count = static_cast<size_t>(y.size());
  auto* result = y.as<uint8_t>();
  if (dtype == DType::String) {
    const auto left = broadcast_indices(ctx, ctx.input(0).dims(), dims);
    const auto right = broadcast_indices(ctx, ctx.input(1).dims(), dims);
    for (size_t i = 0; i < count; ++i) {
      result[i] = ctx.input(0).strings()[left[i]] == ctx.input(1).strings()[right[i]];
    }
  } else if (is_float(dtype)) {
    const auto left = broadcast_doubles(ctx, 0, dims);
    const auto right = broadcast_doubles(ctx, 1, dims);
    for (size_t i = 0; i < count; ++i) result[i] = comparison.real(left[i], right[i]);
  } else {
    const auto left = broadcast_ints(ctx, 0, dims);
    const auto right = broadcast_ints(ctx, 1, dims);
    for (size_t i = 0; i < count; ++i) result[i] = comparison.whole(dtype, left[i], right[i]);
  }
}

// Logic and bits

struct Bitwise {
  std::string_view name;
  DTypeClass allowed;
  WholeBinary whole;
};

constexpr std::array kBitwise = {
    Bitwise{"And", DTypeClass::Bool, [](DType, int64_t a, int64_t b) { return a & b; }},
    Bitwise{"Or", DTypeClass::Bool, [](DType, int64_t a, int64_t b) { return a | b; }},
    Bitwise{"Xor", DTypeClass::Bool, [](DType, int64_t a, int64_t b) { return a ^ b; }},
    Bitwise{"BitwiseAnd", DTypeClass::Integer, [](DType, int64_t a, int64_t b) { return a & b; }},
    Bitwise{"BitwiseOr", DTypeClass::Integer, [](DType, int64_t a, int64_t b) { return a | b; }},
    Bitwise{"BitwiseXor", DTypeClass::Integer, [](DType, int64_t a, int64_t b) { return a ^ b; }},
};

const Bitwise& get_bitwise(const Node& node) {
  const auto* found =
      std::find_if(kBitwise.begin(), kBitwise.end(), [&](const Bitwise& bitwise) { return bitwise.name == node.op; });
  NEO_ASSERT(found != kBitwise.end(), node.op);
  return *found;
}

void infer_bitwise(InferContext& ctx) {
  check_dtype(ctx, 0, get_bitwise(ctx.node()).allowed);
  check_same_dtype(ctx, 0, 1);
  ctx.set_output(0, ctx.dtype(0), ctx.broadcast(ctx.shape(0), ctx.shape(1)));
}

void reference_bitwise(ReferenceContext& ctx) {
  reference_binary(ctx, nullptr, get_bitwise(ctx.node()).whole);
}

void infer_not(InferContext& ctx) {
  check_dtype(ctx, 0, ctx.node().op == "Not" ? DTypeClass::Bool : DTypeClass::Integer);
  infer_same(ctx);
}

void reference_not(ReferenceContext& ctx) {
  const DType dtype = ctx.input(0).dtype();
  auto elements = ctx.ints(0);
  for (int64_t& x : elements) x = dtype == DType::Bool ? x == 0 : ~x;
  store_ints(ctx.output(0, dtype, ctx.input(0).dims()), elements);
}

// BitShift

int64_t bit_count(DType dtype) {
  if (integer_max(dtype) == INT64_MAX) return 64;
  return std::bit_width(static_cast<uint64_t>(integer_max(dtype))) + (is_signed(dtype) ? 1 : 0);
}

int64_t shift_left(DType dtype, int64_t x, int64_t by) {
  if (by < 0 || by >= bit_count(dtype)) return 0;
  return static_cast<int64_t>(static_cast<uint64_t>(x) << by);
}

int64_t shift_right(DType dtype, int64_t x, int64_t by) {
  const bool fits = by >= 0 && by < bit_count(dtype);
  if (dtype == DType::UInt64) return fits ? static_cast<int64_t>(static_cast<uint64_t>(x) >> by) : 0;
  return x >> (fits ? by : 63);
}

void infer_bit_shift(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Integer);
  check_same_dtype(ctx, 0, 1);
  const std::string direction = ctx.node().string_attr("direction", "");
  ctx.check(direction == "LEFT" || direction == "RIGHT",
            str("attribute direction must be LEFT or RIGHT. Got \"", direction, "\""));
  ctx.set_output(0, ctx.dtype(0), ctx.broadcast(ctx.shape(0), ctx.shape(1)));
}

void reference_bit_shift(ReferenceContext& ctx) {
  reference_binary(ctx, nullptr, ctx.node().string_attr("direction", "") == "LEFT" ? shift_left : shift_right);
}

// IsNaN, IsInf

void infer_is_special(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  ctx.set_output(0, DType::Bool, ctx.shape(0));
}

void reference_is_nan(ReferenceContext& ctx) {
  const auto elements = ctx.doubles(0);
  auto* y = ctx.output(0, DType::Bool, ctx.input(0).dims()).as<uint8_t>();
  std::transform(elements.begin(), elements.end(), y, [](double x) { return std::isnan(x); });
}

void reference_is_inf(ReferenceContext& ctx) {
  const bool negative = ctx.node().int_attr("detect_negative", 1) != 0;
  const bool positive = ctx.node().int_attr("detect_positive", 1) != 0;
  const auto elements = ctx.doubles(0);
  auto* y = ctx.output(0, DType::Bool, ctx.input(0).dims()).as<uint8_t>();
  std::transform(elements.begin(), elements.end(), y,
                 [=](double x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

// The operator Where

void infer_where(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Bool);
  check_same_dtype(ctx, 1, 2);
  ctx.set_output(0, ctx.dtype(1), ctx.broadcast(ctx.broadcast(ctx.shape(0), ctx.shape(1)), ctx.shape(2)));
  const auto condition = ctx.constant_ints(0);
  const auto chosen = shape_contents(ctx, 1);
  const auto other = shape_contents(ctx, 2);
  if (!condition || !chosen || !other) return;
  const size_t count = std::max({condition->size(), chosen->size(), other->size()});
  const auto fits = [count](size_t size) { return size == 1 || size == count; };
  if (!fits(condition->size()) || !fits(chosen->size()) || !fits(other->size())) return;
  std::vector<Dim> contents;
  for (size_t i = 0; i < count; ++i) {
    const auto& from = (*condition)[condition->size() == 1 ? 0 : i] != 0 ? *chosen : *other;
    contents.push_back(from[from.size() == 1 ? 0 : i]);
  }
  ctx.set_contents(0, std::move(contents));
}

void reference_where(ReferenceContext& ctx) {
  const Dims dims = broadcast_all_dims(ctx);
  const DType dtype = ctx.input(1).dtype();
  const Tensor& y = ctx.output(0, dtype, dims);
  const auto condition = broadcast_ints(ctx, 0, dims);
  for (int source = 1; source <= 2; ++source) {
    const auto indices = broadcast_indices(ctx, ctx.input(source).dims(), dims);
    const ElementMover move(dtype, ctx.input(source).data(), y.data());
    for (size_t i = 0; i < condition.size(); ++i) {
      if ((condition[i] != 0) == (source == 1)) move(static_cast<int64_t>(i), indices[i]);
    }
  }
}

}  // namespace

void add_comparison_ops(OpRegistry& ops) {
  const auto add = [&ops](std::string_view name, int inputs, auto infer, auto reference) {
    ops.add({.name = std::string(name),
             .min_inputs = inputs,
             .max_inputs = inputs,
             .layout = LayoutClass::Oblivious,
             .infer = infer,
             .reference = reference});
  };
  for (const Comparison& comparison : kComparisons) add(comparison.name, 2, infer_comparison, reference_comparison);
  for (const Bitwise& bitwise : kBitwise) add(bitwise.name, 2, infer_bitwise, reference_bitwise);
  add("Not", 1, infer_not, reference_not);
  add("BitwiseNot", 1, infer_not, reference_not);
  add("BitShift", 2, infer_bit_shift, reference_bit_shift);
  add("IsNaN", 1, infer_is_special, reference_is_nan);
  add("IsInf", 1, infer_is_special, reference_is_inf);
  add("Where", 3, infer_where, reference_where);
}

}  // namespace neo
