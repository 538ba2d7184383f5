#include "routines/cpu/conv/depthwise/depthwise.h"

#include "simd/vec.h"

// The forms (depthwise_form) that an export compiles code of its own for, a bit each.
#ifndef NEO_DEPTHWISE_FORMS
#define NEO_DEPTHWISE_FORMS 0xFFFF
#endif

namespace neo::NEO_ISA {
namespace {

constexpr int kPixels = 8;

// The value is in a register from here on: the compiler does not load it again at each use.
NEO_INLINE void keep(F32& x) {
#if defined(NEO_ISA_AVX512)
  asm("" : "+v"(x.v));
#elif defined(NEO_ISA_AVX2)
  asm("" : "+x"(x.v));
#elif defined(NEO_ISA_NEON)
  asm("" : "+w"(x.v));
#else
  (void)x;
#endif
}

template <int R>
NEO_INLINE void finish(const DepthwiseLine& p, int64_t first, F32 (&acc)[R]) {
  const F32 lo = broadcast(p.lo), hi = broadcast(p.hi);
  float* dst = p.dst + first * kLanes;
  if (p.residual) {
    const float* residual = p.residual + first * kLanes;
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[r] = acc[r] + load(residual + r * kLanes);
  }
  if (p.valid == kLanes) [[likely]] {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) store(dst + r * kLanes, min(hi, max(lo, acc[r])));
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const F32 x = min(hi, max(lo, acc[r]));
      store(dst + r * kLanes, zero());
      store_n(dst + r * kLanes, x, p.valid);
    }
  }
}

// R output columns, taps side by side: each column of the source is loaded once for all its taps. kInside: all the
// columns are there.
template <int KW, int S, int R, bool kInside>
NEO_INLINE void sum_dense(const DepthwiseLine& p, int64_t left, F32 (&acc)[R]) {
  const float* weight = p.weight;
  for (int64_t i = 0; i < p.kh; ++i, weight += KW * kLanes) {
    if (!p.rows[i]) continue;
    const float* row = p.rows[i] + left * kLanes;
    asm("" : "+r"(row));
    F32 w[KW];
#pragma GCC unroll 8
    for (int j = 0; j < KW; ++j) w[j] = load(weight + j * kLanes);
#pragma GCC unroll 32
    for (int c = 0; c < (R - 1) * S + KW; ++c) {
      if (!kInside && (uint64_t)(left + c) >= (uint64_t)p.iw) continue;
      F32 x = load(row + c * kLanes);
      keep(x);
#pragma GCC unroll 8
      for (int j = 0; j < KW; ++j) {
        const int r = (c - j) / S;
        if (c >= j && (c - j) % S == 0 && r < R) acc[r] = fma(x, w[j], acc[r]);
      }
    }
  }
}

// Multiples of the distance between columns, in bytes: with these in registers the address of each of eight is one
// addressing mode.
struct PixelSteps {
  int64_t odd[4];  // 1, 3, 5, 7
  explicit NEO_INLINE PixelSteps(int64_t stride) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      odd[i] = (2 * i + 1) * stride * kLanes * (int64_t)sizeof(float);
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

// The same for any distance between taps and columns.
template <int R>
NEO_INLINE void sum_any(const DepthwiseLine& p, int64_t left, F32 (&acc)[R]) {
  const bool inside = left >= 0 && left + (R - 1) * p.stride + (p.kw - 1) * p.dilation < p.iw;
  const PixelSteps steps(p.stride);
  const float* weight = p.weight;
  for (int64_t i = 0; i < p.kh; ++i, weight += p.kw * kLanes) {
    if (!p.rows[i]) continue;
    const float *at = p.rows[i] + left * kLanes, *w = weight;
    int64_t column = left;
    for (int64_t j = 0; j < p.kw; ++j) {
      const F32 tap = load(w);
      if (inside) {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) acc[r] = fma(steps.load_pixel(at, r), tap, acc[r]);
      } else {
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          if ((uint64_t)(column + r * p.stride) < (uint64_t)p.iw) acc[r] = fma(steps.load_pixel(at, r), tap, acc[r]);
        }
      }
      at += p.dilation * kLanes;
      column += p.dilation;
      w += kLanes;
    }
  }
}

template <int KW, int S, int R>
void run_part(const DepthwiseLine& p, int64_t first) {
  F32 acc[R];
  const F32 bias = p.bias ? load(p.bias) : zero();
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) acc[r] = bias;
  const int64_t left = first * p.stride - p.pad;
  if constexpr (KW == 0) {
    sum_any<R>(p, left, acc);
  } else if (left >= 0 && left + (R - 1) * S + KW <= p.iw) {
    sum_dense<KW, S, R, true>(p, left, acc);
  } else {
    sum_dense<KW, S, R, false>(p, left, acc);
  }
  finish<R>(p, first, acc);
}

using Part = void (*)(const DepthwiseLine&, int64_t first);
struct Parts {
  Part part[kPixels + 1];
};
template <int KW, int S>
constexpr Parts kParts = {{nullptr, run_part<KW, S, 1>, run_part<KW, S, 2>, run_part<KW, S, 3>, run_part<KW, S, 4>,
                           run_part<KW, S, 5>, run_part<KW, S, 6>, run_part<KW, S, 7>, run_part<KW, S, 8>}};

// A block that no model of an export needs is computed a pixel at a time, to the same bits.
template <int R>
void run_pixels(const DepthwiseLine& p, int64_t first) {
  for (int r = 0; r < R; ++r) run_part<0, 0, 1>(p, first + r);
}
constexpr Parts kSingle = {{nullptr, run_pixels<1>, run_pixels<2>, run_pixels<3>, run_pixels<4>, run_pixels<5>,
                            run_pixels<6>, run_pixels<7>, run_pixels<8>}};

constexpr bool is_kept(int form) {
  return (NEO_DEPTHWISE_FORMS >> form & 1) != 0;
}

// Those of one width and stride, or the ones for any: kParts<0, 0>.
template <int KW, int S>
constexpr const Parts& kept_parts() {
  if constexpr (is_kept(depthwise_form(KW, S, 1))) {
    return kParts<KW, S>;
  } else if constexpr (is_kept(0)) {
    return kParts<0, 0>;
  } else {
    return kSingle;
  }
}

NEO_INLINE const Parts& parts_of(const DepthwiseLine& p) {
  switch (depthwise_form(p.kw, p.stride, p.dilation)) {
    case depthwise_form(3, 1, 1):
      return kept_parts<3, 1>();
    case depthwise_form(3, 2, 1):
      return kept_parts<3, 2>();
    case depthwise_form(5, 1, 1):
      return kept_parts<5, 1>();
    case depthwise_form(5, 2, 1):
      return kept_parts<5, 2>();
    case depthwise_form(7, 1, 1):
      return kept_parts<7, 1>();
    default:
      return kept_parts<0, 0>();
  }
}

// In parts as even as can be: a part of one or two pixels would wait for its own additions.
void run_line(const DepthwiseLine& p) {
  const Parts& parts = parts_of(p);
  const int64_t count = (p.ow + kPixels - 1) / kPixels;
  for (int64_t i = 0, done = 0; i < count; ++i) {
    const int64_t part = (p.ow - done) / (count - i);
    parts.part[part](p, done);
    done += part;
  }
}

void run(const DepthwisePlan& plan, const ConvOperands& args, int64_t task_begin, int64_t task_end) {
  const ConvShape& s = plan.shape;
  const int64_t vectors = (s.ic + kLanes - 1) / kLanes;
  const float* rows[kDepthwiseMaxRows];
  DepthwiseLine line;
  line.rows = rows;
  line.set_shape(s);
  line.lo = args.lo;
  line.hi = args.hi;
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t chunk = task % plan.chunks;
    const int64_t vector = task / plan.chunks % vectors;
    const int64_t image = task / (plan.chunks * vectors);
    const float* src = args.src + image * args.src_batch + vector * args.src_channel;
    float* dst = args.dst + image * args.dst_batch + vector * args.dst_channel;
    const float* residual = args.residual;
    if (residual) residual += image * args.residual_batch + vector * args.residual_channel;
    const int64_t left = s.ic - vector * kLanes;
    line.valid = left < kLanes ? left : kLanes;
    line.bias = args.bias ? args.bias + vector * kLanes : nullptr;
    line.weight = args.weight + vector * s.kh * s.kw * kLanes;
    const int64_t first = chunk * plan.rows, last = first + plan.rows < s.oh ? first + plan.rows : s.oh;
    for (int64_t oh = first; oh < last; ++oh) {
      for (int64_t i = 0; i < s.kh; ++i) {
        const int64_t ih = oh * s.stride_h - s.pad_top + i * s.dilation_h;
        rows[i] = ih >= 0 && ih < s.ih ? src + ih * s.iw * kLanes : nullptr;
      }
      line.dst = dst + oh * s.ow * kLanes;
      line.residual = residual ? residual + oh * s.ow * kLanes : nullptr;
      run_line(line);
    }
  }
}

constexpr DepthwiseKernels kKernels = {kLanes, run_line, run};

}  // namespace

const DepthwiseKernels& depthwise_kernels() {
  return kKernels;
}

}  // namespace neo::NEO_ISA
