#include "ops/resize.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

enum class Interpolation : uint8_t { Nearest, Linear, Cubic };
// HalfPixelForNearest is tf_half_pixel_for_nn, which ONNX had before opset 13 and ONNX Runtime takes in any.
enum class Coordinates : uint8_t {
  HalfPixel,
  HalfPixelSymmetric,
  HalfPixelForNearest,
  PytorchHalfPixel,
  AlignCorners,
  Asymmetric,
  Crop,
};
enum class Rounding : uint8_t { PreferFloor, PreferCeil, Floor, Ceil };
enum class AspectPolicy : uint8_t { Stretch, NotLarger, NotSmaller };

template <class E>
E choose(const Node& node, std::string_view key, std::string_view fallback,
         std::initializer_list<std::pair<std::string_view, E>> options) {
  const std::string text = node.string_attr(key, fallback);
  std::string expected;
  for (const auto& [option, value] : options) {
    if (text == option) return value;
    expected += (expected.empty() ? "" : ", ") + std::string(option);
  }
  fail(ErrorKind::Model, node.op,
       str("attribute ", key, " must be one of its options. Got \"", text, "\", expected ", expected, " - at ",
           node.place()));
}

struct ResizeAttrs {
  explicit ResizeAttrs(const Node& node)
      : interpolation(choose<Interpolation>(
            node, "mode", "nearest",
            {{"nearest", Interpolation::Nearest}, {"linear", Interpolation::Linear}, {"cubic", Interpolation::Cubic}})),
        coordinates(choose<Coordinates>(node, "coordinate_transformation_mode", "half_pixel",
                                        {{"half_pixel", Coordinates::HalfPixel},
                                         {"half_pixel_symmetric", Coordinates::HalfPixelSymmetric},
                                         {"tf_half_pixel_for_nn", Coordinates::HalfPixelForNearest},
                                         {"pytorch_half_pixel", Coordinates::PytorchHalfPixel},
                                         {"align_corners", Coordinates::AlignCorners},
                                         {"asymmetric", Coordinates::Asymmetric},
                                         {"tf_crop_and_resize", Coordinates::Crop}})),
        rounding(choose<Rounding>(node, "nearest_mode", "round_prefer_floor",
                                  {{"round_prefer_floor", Rounding::PreferFloor},
                                   {"round_prefer_ceil", Rounding::PreferCeil},
                                   {"floor", Rounding::Floor},
                                   {"ceil", Rounding::Ceil}})),
        policy(choose<AspectPolicy>(node, "keep_aspect_ratio_policy", "stretch",
                                    {{"stretch", AspectPolicy::Stretch},
                                     {"not_larger", AspectPolicy::NotLarger},
                                     {"not_smaller", AspectPolicy::NotSmaller}})),
        antialias(node.int_attr("antialias", 0) != 0),
        exclude_outside(node.int_attr("exclude_outside", 0) != 0),
        cubic_a(node.float_attr("cubic_coeff_a", -0.75)),
        extrapolation(node.float_attr("extrapolation_value", 0)) {}

  Interpolation interpolation;
  Coordinates coordinates;
  Rounding rounding;
  AspectPolicy policy;
  bool antialias;
  bool exclude_outside;
  double cubic_a;
  double extrapolation;
};

// A float32 scale as the simplest fraction that rounds to it: sizes that an exporter wrote as 7 / 10 come back as 7 of
// 10, which floor(10 * 0.69999999) would miss.
struct Fraction {
  int64_t numerator = 0;
  int64_t denominator = 0;
};

std::optional<Fraction> simplest_fraction(float scale) {
  constexpr int64_t kMaxDenominator = 4096;
  if (!(scale > 0) || scale > 1e6F) return std::nullopt;
  // Convergents of the continued fraction.
  int64_t p0 = 1, q0 = 0;
  auto p1 = static_cast<int64_t>(scale);
  int64_t q1 = 1;
  double rest = static_cast<double>(scale) - static_cast<double>(p1);
  while (static_cast<float>(static_cast<double>(p1) / static_cast<double>(q1)) != scale) {
    if (rest <= 0 || q1 > kMaxDenominator) return std::nullopt;
    const double inverse = 1 / rest;
    if (inverse > 1e6) return std::nullopt;
    const auto digit = static_cast<int64_t>(inverse);
    rest = inverse - static_cast<double>(digit);
    p0 = std::exchange(p1, digit * p1 + p0);
    q0 = std::exchange(q1, digit * q1 + q0);
  }
  if (q1 > kMaxDenominator) return std::nullopt;
  return Fraction{p1, q1};
}

int64_t scaled_size(int64_t size, float scale) {
  if (const auto fraction = simplest_fraction(scale)) return size * fraction->numerator / fraction->denominator;
  return static_cast<int64_t>(std::floor(static_cast<float>(size) * scale));
}

int64_t cropped_size(int64_t size, float scale, double begin, double end) {
  return static_cast<int64_t>(std::floor(static_cast<double>(size) * (end - begin) * static_cast<double>(scale)));
}

// The scale of every listed axis under a policy that keeps the aspect ratio.
double common_scale(AspectPolicy policy, const std::vector<int64_t>& sizes, const std::vector<int64_t>& input) {
  double scale = static_cast<double>(sizes[0]) / static_cast<double>(input[0]);
  for (size_t i = 1; i < sizes.size(); ++i) {
    const double other = static_cast<double>(sizes[i]) / static_cast<double>(input[i]);
    scale = policy == AspectPolicy::NotLarger ? std::min(scale, other) : std::max(scale, other);
  }
  return scale;
}

int64_t round_half_up(double x) {
  return static_cast<int64_t>(std::floor(x + 0.5));
}

bool has_elements(InferContext& ctx, int input) {
  if (!ctx.has_input(input)) return false;
  const Shape& shape = ctx.shape(input);
  return !(shape.has_rank() && shape.is_static() && shape.element_count().is(0));
}

// The size of an axis that only running tells. Costs take it to be what it was: batch and channels are, and most
// pictures are made about as large as they come.
Dim resized(InferContext& ctx, const Dim& size) {
  return ctx.fresh("resize", {0, kMaxSymbol}, size.hint());
}

void infer_resize(InferContext& ctx) {
  const ResizeAttrs attrs(ctx.node());
  if (attrs.interpolation != Interpolation::Nearest) check_dtype(ctx, 0, DTypeClass::Number);
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const auto axes = all_or_listed_axes(ctx.node(), ctx.shape(0).rank());
  std::vector<Dim> dims = ctx.shape(0).dims();
  const bool by_sizes = has_elements(ctx, 3);
  ctx.check(by_sizes != has_elements(ctx, 2), "one of scales and sizes must be given");
  const auto check_count = [&](size_t count) {
    ctx.check(count == axes.size(),
              str("scales and sizes must have one number per axis. Got ", count, ", expected ", axes.size()));
  };
  const auto set_unknown = [&] {
    for (const int axis : axes) dims[static_cast<size_t>(axis)] = resized(ctx, dims[static_cast<size_t>(axis)]);
    ctx.set_output(0, ctx.dtype(0), Shape(dims));
  };
  if (by_sizes) {
    const auto sizes = shape_contents(ctx, 3);
    if (!sizes) return set_unknown();
    check_count(sizes->size());
    if (attrs.policy != AspectPolicy::Stretch) {
      std::vector<int64_t> wanted;
      std::vector<int64_t> input;
      for (size_t i = 0; i < axes.size(); ++i) {
        const Dim& dim = dims[static_cast<size_t>(axes[i])];
        if (!(*sizes)[i].is_constant() || !dim.is_constant()) return set_unknown();
        wanted.push_back((*sizes)[i].value());
        input.push_back(dim.value());
      }
      if (wanted.empty()) return infer_same(ctx);
      const double scale = common_scale(attrs.policy, wanted, input);
      for (size_t i = 0; i < axes.size(); ++i) {
        dims[static_cast<size_t>(axes[i])] = round_half_up(scale * static_cast<double>(input[i]));
      }
    } else {
      for (size_t i = 0; i < axes.size(); ++i) {
        ctx.require_less_equal(0, (*sizes)[i], "a size must not be negative");
        dims[static_cast<size_t>(axes[i])] = (*sizes)[i];
      }
    }
    return ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
  }
  const Tensor* scales = ctx.constant(2);
  if (scales == nullptr) return set_unknown();
  check_count(static_cast<size_t>(scales->size()));
  const auto values = load_doubles(*scales);
  std::vector<double> roi;
  if (attrs.coordinates == Coordinates::Crop) {
    const Tensor* given = ctx.constant(1);
    if (given == nullptr || static_cast<size_t>(given->size()) != 2 * axes.size()) return set_unknown();
    roi = load_doubles(*given);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& dim = dims[static_cast<size_t>(axes[i])];
    const auto scale = static_cast<float>(values[i]);
    ctx.check(scale > 0, str("scales must be positive. Got ", scale));
    const auto fraction = simplest_fraction(scale);
    if (!roi.empty()) {
      dim = dim.is_constant() ? Dim(cropped_size(dim.value(), scale, roi[i], roi[i + axes.size()])) : resized(ctx, dim);
    } else if (dim.is_constant()) {
      dim = scaled_size(dim.value(), scale);
    } else if (fraction) {
      dim = fraction->denominator == 1 ? dim * Dim(fraction->numerator)
                                       : floordiv(dim * Dim(fraction->numerator), fraction->denominator);
    } else {
      dim = resized(ctx, dim);
    }
  }
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

double original_position(const ResizeAttrs& attrs, const AxisResize& a, double x) {
  const auto last = static_cast<double>(a.input - 1);
  switch (attrs.coordinates) {
    case Coordinates::HalfPixel:
      return (x + 0.5) / a.scale - 0.5;
    case Coordinates::HalfPixelSymmetric: {
      const double center = static_cast<double>(a.input) / 2;
      return center * (1 - static_cast<double>(a.output) / a.width) + (x + 0.5) / a.scale - 0.5;
    }
    case Coordinates::HalfPixelForNearest:
      return (x + 0.5) / a.scale;
    case Coordinates::PytorchHalfPixel:
      return a.output > 1 ? (x + 0.5) / a.scale - 0.5 : 0;
    case Coordinates::AlignCorners:
      return a.width == 1 ? 0 : x * last / (a.width - 1);
    case Coordinates::Asymmetric:
      return x / a.scale;
    case Coordinates::Crop:
      if (a.output <= 1) return 0.5 * (a.begin + a.end) * last;
      return a.begin * last + x * (a.end - a.begin) * last / (static_cast<double>(a.output) - 1);
  }
  return 0;
}

double cubic_weight(double a, double x) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

int64_t nearest_position(Rounding rounding, double x) {
  const double floor = std::floor(x);
  switch (rounding) {
    case Rounding::PreferFloor:
      return static_cast<int64_t>(x - floor <= 0.5 ? floor : floor + 1);
    case Rounding::PreferCeil:
      return static_cast<int64_t>(x - floor < 0.5 ? floor : floor + 1);
    case Rounding::Floor:
      return static_cast<int64_t>(floor);
    case Rounding::Ceil:
      return static_cast<int64_t>(std::ceil(x));
  }
  return 0;
}

ResizeTaps axis_taps(const ResizeAttrs& attrs, const AxisResize& a) {
  const bool nearest = attrs.interpolation == Interpolation::Nearest;
  const double squeeze = attrs.antialias ? std::min(a.scale, 1.0) : 1.0;
  const int64_t reach = attrs.interpolation == Interpolation::Linear ? 1 : 2;
  constexpr double kMaxReach = 1e9;
  const auto first = static_cast<int64_t>(std::floor(std::max(-static_cast<double>(reach) / squeeze, -kMaxReach)) + 1);
  ResizeTaps all;
  if (a.output == 0) return all;
  all.taps = nearest ? 1 : 2 - 2 * first;
  // A count that would wrap is more than there is.
  const int64_t count = a.output > INT64_MAX / all.taps ? -1 : all.taps * a.output;
  all.positions = make_scratch<int64_t>(count);
  all.weights = make_scratch<double>(count);
  for (int64_t o = 0; o < a.output; ++o) {
    int64_t* positions = all.positions.data() + o;
    double* weights = all.weights.data() + o;
    const double x = original_position(attrs, a, static_cast<double>(o));
    if (attrs.coordinates == Coordinates::Crop && (x < 0 || x > static_cast<double>(a.input - 1))) {
      for (int64_t t = 0; t < all.taps; ++t) positions[t * a.output] = -1;
      continue;
    }
    if (nearest) {
      *positions = std::clamp<int64_t>(nearest_position(attrs.rounding, x), 0, a.input - 1);
      *weights = 1;
      continue;
    }
    // The distance from the left neighbour is in (0, 1].
    const double base = std::ceil(x) - 1;
    const double ratio = x - base;
    double sum = 0;
    for (int64_t t = 0; t < all.taps; ++t) {
      const double distance = (static_cast<double>(first + t) - ratio) * squeeze;
      double weight = attrs.interpolation == Interpolation::Linear ? std::max(0.0, 1 - std::abs(distance))
                                                                   : cubic_weight(attrs.cubic_a, distance);
      const int64_t position = static_cast<int64_t>(base) + first + t;
      if (attrs.exclude_outside && (position < 0 || position >= a.input)) weight = 0;
      sum += weight;
      positions[t * a.output] = std::clamp<int64_t>(position, 0, a.input - 1);
      weights[t * a.output] = weight;
    }
    if ((attrs.antialias || attrs.exclude_outside) && sum != 0) {
      for (int64_t t = 0; t < all.taps; ++t) weights[t * a.output] /= sum;
    }
  }
  return all;
}

// Nearest picks elements and never computes with them.
void resize_nearest(const ResizeAttrs& attrs, const std::vector<AxisResize>& plan, const Tensor& x, const Tensor& y) {
  std::vector<std::vector<int64_t>> positions(x.dims().size());
  for (size_t axis = 0; axis < positions.size(); ++axis) {
    positions[axis] = make_scratch<int64_t>(y.dims()[axis]);
    std::iota(positions[axis].begin(), positions[axis].end(), 0);
  }
  for (const AxisResize& a : plan) {
    if (!a.is_kept()) positions[static_cast<size_t>(a.axis)] = axis_taps(attrs, a).positions;
  }
  alignas(8) char outside[16] = {};
  if (x.dtype() != DType::String) store_double(x.dtype(), outside, attrs.extrapolation);
  const Dims strides = dense_strides(x.dims());
  const ElementMover move(x.dtype(), x.data(), y.data());
  std::vector<int64_t> index(x.dims().size(), 0);
  for (int64_t o = 0; o < y.size(); ++o) {
    int64_t from = 0;
    bool inside = true;
    for (size_t axis = 0; axis < index.size(); ++axis) {
      const int64_t at = positions[axis][static_cast<size_t>(index[axis])];
      inside = inside && at >= 0;
      from += at * strides[axis];
    }
    if (inside) {
      move(o, from);
    } else {
      fill_elements(x.dtype(), y.data(), o, 1, x.dtype() == DType::String ? blank_element(x.dtype()) : outside);
    }
    next_index(index, y.dims());
  }
}

std::vector<double> resize_axis(const ResizeAttrs& attrs, const AxisResize& a, const std::vector<double>& x,
                                const Dims& dims) {
  const ResizeTaps taps = axis_taps(attrs, a);
  const int64_t outer = count_between(dims, 0, a.axis);
  const int64_t inner = count_between(dims, a.axis + 1, static_cast<int>(dims.size()));
  auto y = make_scratch<double>(outer * a.output * inner, 0.0);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t j = 0; j < a.output; ++j) {
      double* to = y.data() + (o * a.output + j) * inner;
      const auto first = static_cast<size_t>(j), step = static_cast<size_t>(a.output);
      if (taps.positions[first] < 0) {
        std::fill(to, to + inner, attrs.extrapolation);
        continue;
      }
      for (size_t at = first; at < taps.weights.size(); at += step) {
        const double weight = taps.weights[at];
        if (weight == 0) continue;
        const double* from = x.data() + (o * a.input + taps.positions[at]) * inner;
        for (int64_t i = 0; i < inner; ++i) to[i] += weight * from[i];
      }
    }
  }
  return y;
}

void reference_resize(ReferenceContext& ctx) {
  const ResizeAttrs attrs(ctx.node());
  ctx.check(!attrs.antialias || attrs.interpolation != Interpolation::Nearest,
            "antialias needs mode linear or cubic. Got nearest");
  const Tensor& x = ctx.input(0);
  const auto plan = resize_axes(ctx);
  Dims dims = x.dims();
  for (const AxisResize& a : plan) dims[static_cast<size_t>(a.axis)] = a.output;
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  if (y.size() == 0) return;
  if (attrs.interpolation == Interpolation::Nearest) return resize_nearest(attrs, plan, x, y);
  auto elements = ctx.doubles(0);
  Dims current = x.dims();
  for (const AxisResize& a : plan) {
    if (a.is_kept()) continue;
    elements = resize_axis(attrs, a, elements, current);
    current[static_cast<size_t>(a.axis)] = a.output;
  }
  if (is_float(x.dtype())) return store_doubles(y, elements);
  std::vector<int64_t> rounded(elements.size());
  const auto low = static_cast<double>(integer_min(x.dtype()));
  const auto high = static_cast<double>(integer_max(x.dtype()));
  for (size_t i = 0; i < rounded.size(); ++i) {
    const double value = std::nearbyint(elements[i]);
    rounded[i] = value <= low    ? integer_min(x.dtype())
                 : value >= high ? integer_max(x.dtype())
                                 : static_cast<int64_t>(value);
  }
  store_ints(y, rounded);
}

Work work_resize(const Node& node) {
  Work work = movement_work(node);
  const std::string mode = node.string_attr("mode", "nearest");
  const Value* y = node.output(0);
  if (y == nullptr || !y->shape().has_rank()) return work;
  work.flops = y->shape().element_count() * Dim(mode == "nearest" ? 1 : mode == "linear" ? 8 : 32);
  return work;
}

}  // namespace

ResizeTaps resize_taps(const Node& node, const AxisResize& axis) {
  return axis_taps(ResizeAttrs(node), axis);
}

std::vector<AxisResize> resize_axes(const ReferenceContext& ctx) {
  const ResizeAttrs attrs(ctx.node());
  const Dims& dims = ctx.input(0).dims();
  const auto axes = all_or_listed_axes(ctx.node(), ctx.input(0).rank());
  const auto given = [&](int input) { return ctx.has_input(input) && ctx.input(input).size() > 0; };
  const bool by_sizes = given(3);
  ctx.check(by_sizes || given(2) || axes.empty(), "one of scales and sizes must be given");
  std::vector<double> roi;
  if (attrs.coordinates == Coordinates::Crop && !axes.empty()) {
    ctx.check(given(1) && static_cast<size_t>(ctx.input(1).size()) == 2 * axes.size(),
              str("roi must have a begin and an end per axis. Got ", given(1) ? ctx.input(1).size() : 0, ", expected ",
                  2 * axes.size()));
    roi = ctx.doubles(1);
  }
  std::vector<int64_t> sizes = by_sizes ? ctx.ints(3) : std::vector<int64_t>{};
  const std::vector<double> scales = by_sizes ? std::vector<double>{} : ctx.doubles(2);
  ctx.check((by_sizes ? sizes.size() : scales.size()) == axes.size(),
            str("scales and sizes must have one number per axis. Got ", by_sizes ? sizes.size() : scales.size(),
                ", expected ", axes.size()));
  std::vector<AxisResize> plan;
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisResize a;
    a.axis = axes[i];
    a.input = dims[static_cast<size_t>(a.axis)];
    if (!roi.empty()) {
      a.begin = roi[i];
      a.end = roi[i + axes.size()];
    }
    if (by_sizes) {
      a.output = sizes[i];
      a.scale = static_cast<double>(a.output) / static_cast<double>(a.input);
    } else {
      const auto scale = static_cast<float>(scales[i]);
      if (!(scale > 0)) ctx.fail(ErrorKind::Shape, str("scales must be positive. Got ", scale));
      a.scale = static_cast<double>(scale);
      a.output = roi.empty() ? scaled_size(a.input, scale) : cropped_size(a.input, scale, a.begin, a.end);
    }
    plan.push_back(a);
  }
  if (by_sizes && attrs.policy != AspectPolicy::Stretch && !plan.empty()) {
    std::vector<int64_t> input;
    for (const AxisResize& a : plan) input.push_back(a.input);
    const double scale = common_scale(attrs.policy, sizes, input);
    for (AxisResize& a : plan) {
      a.scale = scale;
      a.output = round_half_up(scale * static_cast<double>(a.input));
    }
  }
  for (AxisResize& a : plan) {
    a.width = a.scale * static_cast<double>(a.input);
    if (a.output != 0 && a.input == 0)
      ctx.fail(ErrorKind::Shape, str("an empty axis cannot grow. Got ", to_string(dims), " on axis ", a.axis));
  }
  return plan;
}

void add_resize_ops(OpRegistry& ops) {
  ops.add({.name = "Resize",
           .min_inputs = 1,
           .max_inputs = 4,
           .layout = LayoutClass::Tolerant,
           .infer = infer_resize,
           .reference = reference_resize,
           .work = work_resize,
           .shape_inputs = {3}});
}

}  // namespace neo
