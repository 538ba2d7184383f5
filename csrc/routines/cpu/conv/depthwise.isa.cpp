#include "routines/cpu/conv/depthwise.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

constexpr int kPixels = 8;

// Evenly spaced pixels that share their taps: `rows` rows of `columns` taps each.
struct PixelRun {
  const float* src;            // first tap of the first pixel
  const float* weight;         // of that tap
  int64_t pixel, row, column;  // distances in the source: between pixels, between taps
  int64_t weight_row, weight_column;
  int64_t rows, columns;
  const float* residual;
  float* dst;
  int64_t dst_pixel;
  int64_t valid;  // channels of the vector that exist
  F32 bias, lo, hi;
};

// Multiples of the distance between pixels, in bytes: with these in registers the address of each of eight pixels is
// one addressing mode.
struct PixelSteps {
  int64_t odd[4];  // 1, 3, 5, 7
  explicit NEO_INLINE PixelSteps(int64_t pixel) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      odd[i] = (2 * i + 1) * pixel * (int64_t)sizeof(float);
      asm("" : "+r"(odd[i]));
    }
  }
  NEO_INLINE F32 load_pixel(const float* src, int r) const {
    const char* bytes = (const char*)src;
    if (r == 0) return load(src);
    if (r % 2 == 1) return load((const float*)(bytes + odd[r / 2]));
    if (r % 4 == 2) return load((const float*)(bytes + 2 * odd[r / 4]));
    return load((const float*)(bytes + 4 * odd[0]));
  }
};

template <int R>
void run_pixels(const PixelRun& p, int64_t skip) {
  F32 acc[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) acc[r] = p.bias;
  const PixelSteps steps(p.pixel);
  const int64_t column = p.column, weight_column = p.weight_column, row = p.row, weight_row = p.weight_row;
  const float *src = p.src + skip * p.pixel, *weight = p.weight;
  for (int64_t i = p.rows; i > 0; --i, src += row, weight += weight_row) {
    const float *at = src, *w = weight;
    for (int64_t j = p.columns; j > 0; --j, at += column, w += weight_column) {
      const F32 tap = load(w);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[r] = fma(steps.load_pixel(at, r), tap, acc[r]);
    }
  }

  float* dst = p.dst + skip * p.dst_pixel;
  if (p.residual) {
    const float* residual = p.residual + skip * p.dst_pixel;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r] = acc[r] + load(residual + r * p.dst_pixel);
  }
  if (p.valid == kLanes) [[likely]] {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) store(dst + r * p.dst_pixel, min(p.hi, max(p.lo, acc[r])));
  } else {
    for (int r = 0; r < R; ++r) {
      store(dst + r * p.dst_pixel, zero());
      store_n(dst + r * p.dst_pixel, min(p.hi, max(p.lo, acc[r])), p.valid);
    }
  }
}

// In parts as even as can be: a part of one or two pixels would wait for its own additions.
void run_pixels_of(const PixelRun& p, int64_t count) {
  static constexpr void (*kRun[])(const PixelRun&, int64_t) = {nullptr,       run_pixels<1>, run_pixels<2>,
                                                               run_pixels<3>, run_pixels<4>, run_pixels<5>,
                                                               run_pixels<6>, run_pixels<7>, run_pixels<8>};
  const int64_t parts = (count + kPixels - 1) / kPixels;
  for (int64_t i = 0, done = 0; i < parts; ++i) {
    const int64_t part = (count - done) / (parts - i);
    kRun[part](p, done);
    done += part;
  }
}

// The taps t of [0, count) with 0 <= first + t * dilation < size.
NEO_INLINE void clip_taps(int64_t first, int64_t dilation, int64_t size, int64_t count, int64_t& begin, int64_t& end) {
  begin = first < 0 ? (-first + dilation - 1) / dilation : 0;
  end = first >= size ? 0 : (size - 1 - first) / dilation + 1;
  if (end > count) end = count;
  if (begin > end) begin = end;
}

NEO_INLINE int64_t clamp_index(int64_t i, int64_t lo, int64_t hi) {
  return i < lo ? lo : (i > hi ? hi : i);
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

    PixelRun p = {};
    p.weight_column = x;
    p.weight_row = s.kw * x;
    p.row = s.dilation_h * s.iw * x;
    p.column = s.dilation_w * x;
    const int64_t left = s.ic - (block * x + lane);
    p.valid = left < 0 ? 0 : (left < kLanes ? left : kLanes);
    p.bias = args.bias ? load(args.bias + block * x + lane) : zero();
    p.lo = broadcast(args.lo);
    p.hi = broadcast(args.hi);

    // Pixel (oh, ow) and `count - 1` more, along the row or down the column.
    const auto run_line = [&](int64_t oh, int64_t ow, int64_t count, bool down) {
      const int64_t ih = oh * s.stride_h - s.pad_top, iw = ow * s.stride_w - s.pad_left;
      int64_t i0, i1, j0, j1;
      clip_taps(ih, s.dilation_h, s.ih, s.kh, i0, i1);
      clip_taps(iw, s.dilation_w, s.iw, s.kw, j0, j1);
      p.rows = i1 - i0;
      p.columns = j1 - j0;
      p.weight = args.weight + ((block * s.kh + i0) * s.kw + j0) * x + lane;
      p.src = src + ((ih + i0 * s.dilation_h) * s.iw + iw + j0 * s.dilation_w) * x;
      p.dst = dst + (oh * s.ow + ow) * x;
      p.residual = residual ? residual + (oh * s.ow + ow) * x : nullptr;
      p.pixel = down ? s.stride_h * s.iw * x : s.stride_w * x;
      p.dst_pixel = down ? s.ow * x : x;
      run_pixels_of(p, count);
    };
    const int64_t first = chunk * plan.rows, last = first + plan.rows < s.oh ? first + plan.rows : s.oh;
    const int64_t inner_first = clamp_index(plan.inner_top, first, last);
    const int64_t inner_last = clamp_index(plan.inner_bottom, inner_first, last);
    // Columns at the border go down the rows that have all their taps, so that they too fill the register block.
    const auto run_border = [&](int64_t begin, int64_t end) {
      for (int64_t ow = begin; ow < end; ++ow) {
        for (int64_t oh = first; oh < inner_first; ++oh) run_line(oh, ow, 1, false);
        if (inner_first < inner_last) run_line(inner_first, ow, inner_last - inner_first, true);
        for (int64_t oh = inner_last; oh < last; ++oh) run_line(oh, ow, 1, false);
      }
    };
    run_border(0, plan.inner_left);
    if (plan.inner_left < plan.inner_right) {
      for (int64_t oh = first; oh < last; ++oh) {
        run_line(oh, plan.inner_left, plan.inner_right - plan.inner_left, false);
      }
    }
    run_border(plan.inner_right, s.ow);
  }
}

constexpr DepthwiseKernels kKernels = {kLanes, run};

}  // namespace

const DepthwiseKernels& depthwise_kernels() {
  return kKernels;
}

}  // namespace neo::NEO_ISA
