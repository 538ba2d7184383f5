#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/budget.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// e^(+-2 pi i k / n) for k in [0, n).
struct Twiddles {
  Twiddles(int64_t n, bool inverse) : cosines(static_cast<size_t>(n)), sines(static_cast<size_t>(n)) {
    for (size_t k = 0; k < cosines.size(); ++k) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
      cosines[k] = std::cos(angle);
      sines[k] = inverse ? std::sin(angle) : -std::sin(angle);
    }
  }
  std::vector<double> cosines;
  std::vector<double> sines;
};

// The first `bins` values of the transform of n = real.size() values.
void transform(const Twiddles& twiddles, const std::vector<double>& real, const std::vector<double>& imaginary,
               size_t bins, std::vector<double>& out_real, std::vector<double>& out_imaginary) {
  const size_t n = real.size();
  out_real.assign(bins, 0.0);
  out_imaginary.assign(bins, 0.0);
  for (size_t k = 0; k < bins; ++k) {
    checkpoint();
    size_t at = 0;
    double sum_real = 0;
    double sum_imaginary = 0;
    for (size_t i = 0; i < n; ++i) {
      sum_real += real[i] * twiddles.cosines[at] - imaginary[i] * twiddles.sines[at];
      sum_imaginary += real[i] * twiddles.sines[at] + imaginary[i] * twiddles.cosines[at];
      at += k;
      if (at >= n) at -= n;
    }
    out_real[k] = sum_real;
    out_imaginary[k] = sum_imaginary;
  }
}

// DFT

struct DftAttrs {
  explicit DftAttrs(const Node& node)
      : inverse(node.int_attr("inverse", 0) != 0), onesided(node.int_attr("onesided", 0) != 0) {}
  bool to_real() const { return inverse && onesided; }
  bool inverse;
  bool onesided;
};

template <class Context>
int dft_axis(const Context& ctx, int64_t axis, int rank) {
  const int at = ctx.axis(axis, rank);
  if (at == rank - 1)
    ctx.fail(ErrorKind::Model, str("axis must not be the one of real and imaginary parts. Got ", axis));
  return at;
}

void infer_dft(InferContext& ctx) {
  const DftAttrs attrs(ctx.node());
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape());
  const int rank = ctx.shape(0).rank();
  ctx.check(rank >= 2,
            str("the input must end in an axis of real and imaginary parts. Got ", ctx.shape(0).to_string()));
  std::vector<Dim> dims = ctx.shape(0).dims();
  if (attrs.onesided && !attrs.inverse)
    ctx.require_equal(dims.back(), 1, "a onesided transform must have a real input");
  ctx.require_less_equal(dims.back(), 2, "the last axis must hold a real and an imaginary part");
  dims.back() = attrs.to_real() ? 1 : 2;
  std::optional<int64_t> axis = -2;
  if (ctx.has_input(2)) {
    const auto given = ctx.constant_ints(2);
    axis = given && given->size() == 1 ? std::optional(given->front()) : std::nullopt;
  }
  if (!axis) {
    for (size_t i = 0; i + 1 < dims.size(); ++i) dims[i] = ctx.fresh("dft");
    return ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
  }
  Dim& dim = dims[static_cast<size_t>(dft_axis(ctx, *axis, rank))];
  Dim length = attrs.to_real() ? Dim(2) * (dim - Dim(1)) : dim;
  if (ctx.has_input(1)) {
    const auto given = scalar_contents(ctx, 1);
    length = given ? *given : ctx.fresh("dft");
  }
  ctx.require_less_equal(1, length, "dft_length must be positive");
  dim = attrs.onesided && !attrs.inverse ? floordiv(length, 2) + Dim(1) : length;
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

void reference_dft(ReferenceContext& ctx) {
  const DftAttrs attrs(ctx.node());
  const Tensor& x = ctx.input(0);
  const int rank = x.rank();
  const int64_t parts = rank == 0 ? 0 : x.dims().back();
  ctx.check(rank >= 2 && (parts == 1 || parts == 2),
            str("the input must end in an axis of real and imaginary parts. Got ", to_string(x.dims())));
  ctx.check(!attrs.onesided || attrs.inverse || parts == 1, "a onesided transform must have a real input");
  const int axis = dft_axis(ctx, ctx.has_input(2) ? scalar_int(ctx, 2) : -2, rank);
  const int64_t size = x.dims()[static_cast<size_t>(axis)];
  const int64_t length = ctx.has_input(1) ? scalar_int(ctx, 1) : attrs.to_real() ? 2 * (size - 1) : size;
  ctx.check(length >= 1 && length <= kMaxExtent, str("dft_length must be positive. Got ", length));
  const int64_t bins = attrs.onesided && !attrs.inverse ? length / 2 + 1 : length;
  const int64_t out_parts = attrs.to_real() ? 1 : 2;
  Dims dims = x.dims();
  dims[static_cast<size_t>(axis)] = bins;
  dims.back() = out_parts;
  const Tensor& y = ctx.output(0, x.dtype(), dims);
  const int64_t outer = count_between(dims, 0, axis);
  const int64_t inner = count_between(dims, axis + 1, rank - 1);
  const auto elements = ctx.doubles(0);
  auto result = make_scratch<double>(y.size());
  const Twiddles twiddles(length, attrs.inverse);
  const double scale = attrs.inverse ? 1 / static_cast<double>(length) : 1;
  const auto n = static_cast<size_t>(length);
  std::vector<double> real(n);
  std::vector<double> imaginary(n);
  std::vector<double> out_real;
  std::vector<double> out_imaginary;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      std::fill(real.begin(), real.end(), 0.0);
      std::fill(imaginary.begin(), imaginary.end(), 0.0);
      const int64_t given = attrs.to_real() ? std::min(size, length / 2 + 1) : std::min(size, length);
      for (int64_t t = 0; t < given; ++t) {
        const auto from = static_cast<size_t>(((o * size + t) * inner + i) * parts);
        real[static_cast<size_t>(t)] = elements[from];
        imaginary[static_cast<size_t>(t)] = parts == 2 ? elements[from + 1] : 0;
      }
      // The other half of a real signal's spectrum is the conjugate of this one.
      for (size_t t = n / 2 + 1; attrs.to_real() && t < n; ++t) {
        real[t] = real[n - t];
        imaginary[t] = -imaginary[n - t];
      }
      transform(twiddles, real, imaginary, static_cast<size_t>(bins), out_real, out_imaginary);
      for (int64_t k = 0; k < bins; ++k) {
        const auto to = static_cast<size_t>(((o * bins + k) * inner + i) * out_parts);
        result[to] = out_real[static_cast<size_t>(k)] * scale;
        if (out_parts == 2) result[to + 1] = out_imaginary[static_cast<size_t>(k)] * scale;
      }
    }
  }
  store_doubles(y, result);
}

// STFT. Beyond the ONNX text a real signal may lack its last axis, as ONNX Runtime takes it.

void infer_stft(InferContext& ctx) {
  const int rank = ctx.ranked(0) ? ctx.shape(0).rank() : 3;
  ctx.check(rank == 2 || rank == 3,
            str("signal must be [batch, length, 1 or 2] or [batch, length]. Got ", ctx.shape(0).to_string()));
  ctx.check_rank(2, 1);
  const bool onesided = ctx.node().int_attr("onesided", 1) != 0;
  const Dim batch = ctx.ranked(0) ? ctx.shape(0)[0] : ctx.fresh("batch");
  const Dim size = ctx.ranked(0) ? ctx.shape(0)[1] : ctx.fresh("signal");
  Dim length = size;
  if (ctx.has_input(3)) {
    const auto given = scalar_contents(ctx, 3);
    length = given ? *given : ctx.ranked(2) ? ctx.shape(2)[0] : ctx.fresh("frame");
    if (ctx.ranked(2)) ctx.require_equal(ctx.shape(2)[0], length, "the window must be as long as a frame");
  } else if (ctx.has_input(2)) {
    length = ctx.ranked(2) ? ctx.shape(2)[0] : ctx.fresh("frame");
  }
  const auto step = scalar_contents(ctx, 1);
  if (step) ctx.require_less_equal(1, *step, "frame_step must be positive");
  ctx.require_less_equal(length, size, "a frame must not be longer than the signal");
  const Dim frames = step ? floordiv(size - length, *step) + Dim(1) : ctx.fresh("frames");
  ctx.set_output(0, ctx.dtype(0), Shape({batch, frames, onesided ? floordiv(length, 2) + Dim(1) : length, 2}));
}

void reference_stft(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t parts = x.rank() == 3 ? x.dims()[2] : x.rank() == 2;
  ctx.check(parts == 1 || parts == 2,
            str("signal must be [batch, length, 1 or 2] or [batch, length]. Got ", to_string(x.dims())));
  const int64_t size = x.dims()[1];
  const int64_t step = scalar_int(ctx, 1);
  const bool has_window = ctx.has_input(2) && ctx.input(2).size() > 0;
  const int64_t length = ctx.has_input(3) ? scalar_int(ctx, 3) : has_window ? ctx.input(2).size() : size;
  ctx.check(step > 0 && length > 0 && length <= size,
            str("frame_step and frame_length must be positive and fit the signal. Got ", step, " and ", length, " for ",
                size));
  ctx.check(
      !has_window || ctx.input(2).size() == length,
      str("the window must be as long as a frame. Got ", has_window ? ctx.input(2).size() : 0, ", expected ", length));
  const auto window = has_window ? ctx.doubles(2) : std::vector<double>(static_cast<size_t>(length), 1.0);
  const int64_t bins = ctx.node().int_attr("onesided", 1) != 0 ? length / 2 + 1 : length;
  const int64_t frames = (size - length) / step + 1;
  const Tensor& y = ctx.output(0, x.dtype(), {x.dims()[0], frames, bins, 2});
  const auto signal = ctx.doubles(0);
  const Twiddles twiddles(length, false);
  std::vector<double> result;
  result.reserve(static_cast<size_t>(y.size()));
  const auto n = static_cast<size_t>(length);
  std::vector<double> real(n);
  std::vector<double> imaginary(n, 0.0);
  std::vector<double> out_real;
  std::vector<double> out_imaginary;
  for (int64_t b = 0; b < x.dims()[0]; ++b) {
    for (int64_t f = 0; f < frames; ++f) {
      for (size_t t = 0; t < n; ++t) {
        const size_t from = static_cast<size_t>((b * size + f * step + static_cast<int64_t>(t)) * parts);
        real[t] = signal[from] * window[t];
        if (parts == 2) imaginary[t] = signal[from + 1] * window[t];
      }
      transform(twiddles, real, imaginary, static_cast<size_t>(bins), out_real, out_imaginary);
      for (size_t k = 0; k < out_real.size(); ++k) result.insert(result.end(), {out_real[k], out_imaginary[k]});
    }
  }
  store_doubles(y, result);
}

Work work_dft(const Node& node) {
  Work work = movement_work(node);
  const Value* y = node.output(0);
  if (y == nullptr || !y->shape().has_rank() || y->shape().rank() < 2) return work;
  work.flops = y->shape().element_count() * Dim(4) * y->shape()[y->shape().rank() - 2];
  return work;
}

// MelWeightMatrix

void infer_mel_weight_matrix(InferContext& ctx) {
  const auto bins = scalar_contents(ctx, 0);
  const auto length = scalar_contents(ctx, 1);
  const Dim rows = length ? floordiv(*length, 2) + Dim(1) : ctx.fresh("spectrum");
  ctx.set_output(0, dtype_attr(ctx.node(), "output_datatype", DType::Float32),
                 Shape({rows, bins ? *bins : ctx.fresh("mel")}));
}

void reference_mel_weight_matrix(ReferenceContext& ctx) {
  const int64_t bins = scalar_int(ctx, 0);
  const int64_t length = scalar_int(ctx, 1);
  const int64_t rate = scalar_int(ctx, 2);
  const double low = scalar_double(ctx, 3);
  const double high = scalar_double(ctx, 4);
  ctx.check(bins >= 0 && bins < kMaxExtent && length >= 1 && length < kMaxExtent && rate >= 1,
            str("sizes must be positive. Got ", bins, " bins, dft_length ", length, ", sample_rate ", rate));
  const int64_t rows = length / 2 + 1;
  const auto to_mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double first = to_mel(low);
  const double step = (to_mel(high) - first) / static_cast<double>(bins + 2);
  std::vector<int64_t> edges;  // spectrum bins
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10.0, (first + static_cast<double>(i) * step) / 2595) - 1);
    const double edge = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    ctx.check(edge >= 0 && edge < static_cast<double>(kMaxExtent),
              str("frequencies must not be negative. Got ", low, " to ", high));
    edges.push_back(static_cast<int64_t>(edge));
  }
  const Tensor& y = ctx.output(0, dtype_attr(ctx.node(), "output_datatype", DType::Float32), {rows, bins});
  auto weights = make_scratch<double>(y.size(), 0.0);
  const auto set = [&](int64_t row, int64_t bin, double weight) {
    if (row < rows) weights[static_cast<size_t>(row * bins + bin)] = weight;
  };
  for (int64_t bin = 0; bin < bins; ++bin) {
    const int64_t left = edges[static_cast<size_t>(bin)];
    const int64_t center = edges[static_cast<size_t>(bin + 1)];
    const int64_t right = edges[static_cast<size_t>(bin + 2)];
    if (left == center) set(center, bin, 1);
    for (int64_t j = left; left < center && j <= std::min(center, rows - 1); ++j) {
      set(j, bin, static_cast<double>(j - left) / static_cast<double>(center - left));
    }
    for (int64_t j = center; j < std::min(right, rows); ++j) {
      set(j, bin, static_cast<double>(right - j) / static_cast<double>(right - center));
    }
  }
  store_doubles(y, weights);
}

}  // namespace

void add_signal_ops(OpRegistry& ops) {
  ops.add({.name = "DFT", .max_inputs = 3, .infer = infer_dft, .reference = reference_dft, .work = work_dft});
  ops.add({.name = "STFT",
           .min_inputs = 2,
           .max_inputs = 4,
           .infer = infer_stft,
           .reference = reference_stft,
           .work = work_dft});
  ops.add({.name = "MelWeightMatrix",
           .min_inputs = 5,
           .max_inputs = 5,
           .infer = infer_mel_weight_matrix,
           .reference = reference_mel_weight_matrix});
}

}  // namespace neo
