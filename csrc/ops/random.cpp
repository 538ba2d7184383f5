#include <atomic>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>

#include "base/budget.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// Uniform and normal numbers from one stream: the attribute seed gives the same stream on every call, no seed a new
// one.
class RandomStream {
 public:
  explicit RandomStream(const Node& node) : engine_(seed_of(node)) {}

  // In [0, 1).
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  static uint64_t seed_of(const Node& node) {
    const auto attr = node.attrs.find("seed");
    if (attr != node.attrs.end()) {
      if (const auto* whole = std::get_if<int64_t>(&attr->second)) return static_cast<uint64_t>(*whole);
      const double seed = node.float_attr("seed", 0);
      uint64_t bits;
      std::memcpy(&bits, &seed, sizeof bits);
      return bits;
    }
    static const uint64_t base = std::random_device{}();
    static std::atomic<uint64_t> calls{0};
    return (base << 32) + calls.fetch_add(1);
  }

  std::mt19937_64 engine_;
};

template <class Next>
void fill_output(ReferenceContext& ctx, DType dtype, const Dims& dims, const Next& next) {
  const Tensor& y = ctx.output(0, dtype, dims);
  auto elements = make_scratch<double>(y.size());
  for (double& element : elements) element = next();
  store_doubles(y, elements);
}

bool is_like(const Node& node) {
  return node.op == "RandomNormalLike" || node.op == "RandomUniformLike";
}

void infer_random(InferContext& ctx) {
  if (is_like(ctx.node())) return ctx.set_output(0, dtype_attr(ctx.node(), "dtype", ctx.dtype(0)), ctx.shape(0));
  const Dims dims = ctx.node().ints_attr("shape");
  element_count(dims);
  ctx.set_output(0, dtype_attr(ctx.node(), "dtype", DType::Float32), Shape::of(dims));
}

DType random_dtype(ReferenceContext& ctx) {
  return dtype_attr(ctx.node(), "dtype", is_like(ctx.node()) ? ctx.input(0).dtype() : DType::Float32);
}

Dims random_dims(ReferenceContext& ctx) {
  return is_like(ctx.node()) ? ctx.input(0).dims() : ctx.node().ints_attr("shape");
}

void reference_random_normal(ReferenceContext& ctx) {
  RandomStream stream(ctx.node());
  const double mean = ctx.node().float_attr("mean", 0);
  const double scale = ctx.node().float_attr("scale", 1);
  fill_output(ctx, random_dtype(ctx), random_dims(ctx), [&] { return mean + scale * stream.normal(); });
}

void reference_random_uniform(ReferenceContext& ctx) {
  RandomStream stream(ctx.node());
  const double low = ctx.node().float_attr("low", 0);
  const double high = ctx.node().float_attr("high", 1);
  fill_output(ctx, random_dtype(ctx), random_dims(ctx), [&] { return low + (high - low) * stream.uniform(); });
}

void infer_bernoulli(InferContext& ctx) {
  ctx.set_output(0, dtype_attr(ctx.node(), "dtype", ctx.dtype(0)), ctx.shape(0));
}

void reference_bernoulli(ReferenceContext& ctx) {
  RandomStream stream(ctx.node());
  const auto chances = ctx.doubles(0);
  size_t i = 0;
  fill_output(ctx, dtype_attr(ctx.node(), "dtype", ctx.input(0).dtype()), ctx.input(0).dims(),
              [&] { return stream.uniform() < chances[i++] ? 1.0 : 0.0; });
}

void infer_multinomial(InferContext& ctx) {
  ctx.check_rank(0, 2);
  const Dim batch = ctx.ranked(0) ? ctx.shape(0)[0] : ctx.fresh("batch");
  const int64_t samples = ctx.node().int_attr("sample_size", 1);
  ctx.check(samples >= 0, str("sample_size must not be negative. Got ", samples));
  ctx.set_output(0, dtype_attr(ctx.node(), "dtype", DType::Int32), Shape({batch, samples}));
}

void reference_multinomial(ReferenceContext& ctx) {
  const Dims& dims = ctx.input(0).dims();
  ctx.check(dims.size() == 2 && dims[1] > 0, str("the input must be [batch, classes]. Got ", to_string(dims)));
  RandomStream stream(ctx.node());
  const auto scores = ctx.doubles(0);
  const int64_t samples = ctx.node().int_attr("sample_size", 1);
  const auto classes = static_cast<size_t>(dims[1]);
  std::vector<int64_t> drawn;
  for (size_t b = 0; b < static_cast<size_t>(dims[0]); ++b) {
    double largest = scores[b * classes];
    for (size_t c = 1; c < classes; ++c) largest = std::max(largest, scores[b * classes + c]);
    std::vector<double> sums(classes);
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) sums[c] = sum += std::exp(scores[b * classes + c] - largest);
    for (int64_t s = 0; s < samples; ++s) {
      const double point = stream.uniform() * sum;
      size_t c = 0;
      while (c + 1 < classes && sums[c] <= point) ++c;
      drawn.push_back(static_cast<int64_t>(c));
    }
  }
  store_ints(ctx.output(0, dtype_attr(ctx.node(), "dtype", DType::Int32), {dims[0], samples}), drawn);
}

// Dropout, which passes everything in inference; an element that training drops is zero, the others grow.

void infer_dropout(InferContext& ctx) {
  check_dtype(ctx, 0, DTypeClass::Float);
  infer_same(ctx);
  ctx.set_output(1, DType::Bool, ctx.shape(0));
}

void reference_dropout(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.output(0, x.dtype(), x.dims());
  const bool training = ctx.has_input(2) && scalar_int(ctx, 2) != 0;
  const double ratio = ctx.has_input(1) ? scalar_double(ctx, 1) : 0.5;
  std::vector<int64_t> kept(static_cast<size_t>(ctx.has_output(1) || training ? x.size() : 0), 1);
  if (training && ratio != 0) {
    ctx.check(ratio > 0 && ratio < 1, str("ratio must be at least 0 and below 1. Got ", ratio));
    RandomStream stream(ctx.node());
    auto elements = ctx.doubles(0);
    for (size_t i = 0; i < elements.size(); ++i) {
      kept[i] = stream.uniform() >= ratio;
      elements[i] = kept[i] ? elements[i] / (1 - ratio) : 0;
    }
    store_doubles(y, elements);
  } else {
    copy_tensor(x, y);
  }
  if (ctx.has_output(1)) store_ints(ctx.output(1, DType::Bool, x.dims()), kept);
}

}  // namespace

void add_random_ops(OpRegistry& ops) {
  for (const char* op : {"RandomNormal", "RandomNormalLike"}) {
    const int inputs = op == std::string_view("RandomNormal") ? 0 : 1;
    ops.add({.name = op,
             .min_inputs = inputs,
             .max_inputs = inputs,
             .infer = infer_random,
             .reference = reference_random_normal,
             .random = true});
  }
  for (const char* op : {"RandomUniform", "RandomUniformLike"}) {
    const int inputs = op == std::string_view("RandomUniform") ? 0 : 1;
    ops.add({.name = op,
             .min_inputs = inputs,
             .max_inputs = inputs,
             .infer = infer_random,
             .reference = reference_random_uniform,
             .random = true});
  }
  ops.add({.name = "Bernoulli", .infer = infer_bernoulli, .reference = reference_bernoulli, .random = true});
  ops.add({.name = "Multinomial", .infer = infer_multinomial, .reference = reference_multinomial, .random = true});
  ops.add({.name = "Dropout",
           .max_inputs = 3,
           .max_outputs = 2,
           .layout = LayoutClass::Oblivious,
           .infer = infer_dropout,
           .reference = reference_dropout,
           .random = true});
}

}  // namespace neo
