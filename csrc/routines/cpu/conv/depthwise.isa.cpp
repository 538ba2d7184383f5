#include "routines/cpu/conv/depthwise.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

constexpr int kPixels = 8;

// Where the pixels of one call are, and which taps [i0, i1) x [j0, j1) they have.
struct Span2d {
  const float* src;  // tap (i0, j0) of the first pixel
  const float* weight;
  int64_t pixel, row, column;  // distances in the source: between pixels, between taps
  int64_t weight_row, weight_column;
  int64_t i0, i1, j0, j1;
  const float* residual;
  float* dst;
  int64_t dst_pixel;
  int64_t valid;  // channels of the vector that exist
  F32 bias, lo, hi;
};

template <int R>
NEO_INLINE void run_pixels(const Span2d& s, const float* src, const float* residual, float* dst) {
  F32 acc[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) acc[r] = s.bias;
  const float* row = src;
  for (int64_t i = s.i0; i < s.i1; ++i, row += s.row) {
    const float* at = row;
    const float* weight = s.weight + i * s.weight_row + s.j0 * s.weight_column;
    for (int64_t j = s.j0; j < s.j1; ++j) {
      const F32 w = load(weight);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[r] = fma(load(at + r * s.pixel), w, acc[r]);
      at += s.column;
      weight += s.weight_column;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    F32 y = acc[r];
    if (residual) y = y + load(residual + r * s.dst_pixel);
    y = min(s.hi, max(s.lo, y));
    if (s.valid < kLanes) [[unlikely]] {
      store(dst + r * s.dst_pixel, zero());
      store_n(dst + r * s.dst_pixel, y, s.valid);
    } else {
      store(dst + r * s.dst_pixel, y);
    }
  }
}

// `count` pixels side by side that have the same taps.
void run_span(const Span2d& s, int64_t count) {
  const float* src = s.src;
  const float* residual = s.residual;
  float* dst = s.dst;
  const auto advance = [&](int64_t n) __attribute__((always_inline)) {
    src += n * s.pixel;
    dst += n * s.dst_pixel;
    if (residual) residual += n * s.dst_pixel;
    count -= n;
  };
  while (count >= kPixels) {
    run_pixels<kPixels>(s, src, residual, dst);
    advance(kPixels);
  }
  if (count & 4) {
    run_pixels<4>(s, src, residual, dst);
    advance(4);
  }
  if (count & 2) {
    run_pixels<2>(s, src, residual, dst);
    advance(2);
  }
  if (count & 1) run_pixels<1>(s, src, residual, dst);
}

// The taps t of [0, count) with 0 <= first + t * dilation < size.
NEO_INLINE void clip_taps(int64_t first, int64_t dilation, int64_t size, int64_t count, int64_t& begin, int64_t& end) {
  begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
  end = first >= size ? 0 : (size - 1 - first) / dilation + 1;
  if (end > count) end = count;
  if (begin > end) begin = end;
}

void run(const DepthwisePlan& plan, const DepthwiseArgs& args, int64_t task_begin, int64_t task_end) {
  const ConvShape& s = plan.shape;
  const int64_t x = plan.block, per_block = x / kLanes;
  const int64_t vectors = (s.ic + x - 1) / x * per_block;
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t chunk = task % plan.chunks;
    const int64_t vector = task / plan.chunks % vectors;
    const int64_t image = task / (plan.chunks * vectors);
    const int64_t lane = vector % per_block * kLanes, block = vector / per_block;
    const float* src = args.src + image * args.src_batch + block * args.src_block + lane;
    float* dst = args.dst + image * args.dst_batch + block * args.dst_block + lane;
    const float* residual = args.residual;
    if (residual) residual += image * args.residual_batch + block * args.residual_block + lane;

    Span2d span = {};
    span.weight = args.weight + block * s.kh * s.kw * x + lane;
    span.weight_column = x;
    span.weight_row = s.kw * x;
    span.pixel = s.stride_w * x;
    span.row = s.dilation_h * s.iw * x;
    span.column = s.dilation_w * x;
    span.dst_pixel = x;
    const int64_t left = s.ic - (block * x + lane);
    span.valid = left < 0 ? 0 : (left < kLanes ? left : kLanes);
    span.bias = args.bias ? load(args.bias + block * x + lane) : zero();
    span.lo = broadcast(args.lo);
    span.hi = broadcast(args.hi);

    const int64_t last = (chunk + 1) * plan.rows < s.oh ? (chunk + 1) * plan.rows : s.oh;
    for (int64_t oh = chunk * plan.rows; oh < last; ++oh) {
      const int64_t ih = oh * s.stride_h - s.pad_top;
      clip_taps(ih, s.dilation_h, s.ih, s.kh, span.i0, span.i1);
      const auto run_columns = [&](int64_t begin, int64_t end) {
        const int64_t iw = begin * s.stride_w - s.pad_left;
        clip_taps(iw, s.dilation_w, s.iw, s.kw, span.j0, span.j1);
        span.src = src + ((ih + span.i0 * s.dilation_h) * s.iw + iw + span.j0 * s.dilation_w) * x;
        span.dst = dst + (oh * s.ow + begin) * x;
        span.residual = residual ? residual + (oh * s.ow + begin) * x : nullptr;
        run_span(span, end - begin);
      };
      for (int64_t ow = 0; ow < plan.inner_begin; ++ow) run_columns(ow, ow + 1);
      if (plan.inner_begin < plan.inner_end) run_columns(plan.inner_begin, plan.inner_end);
      for (int64_t ow = plan.inner_end; ow < s.ow; ++ow) run_columns(ow, ow + 1);
    }
  }
}

constexpr DepthwiseKernels kKernels = {kLanes, run};

}  // namespace

const DepthwiseKernels& depthwise_kernels() {
  return kKernels;
}

}  // namespace neo::NEO_ISA
