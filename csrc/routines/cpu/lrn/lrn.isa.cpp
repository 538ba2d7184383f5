#include "routines/cpu/lrn/lrn.h"

#include "simd/math.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

enum class Power { ThreeQuarters, One, Half, Any };

NEO_INLINE int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
NEO_INLINE int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

template <Power power>
NEO_INLINE F32 normalized(const LrnArgs& args, F32 x, F32 squares) {
  const F32 s = fma(squares, broadcast(args.scale), broadcast(args.bias));
  if (power == Power::One) return x / s;
  if (power == Power::Any) return x * exp(log(s) * broadcast(-args.beta));
  const F32 root = sqrt(s);
  return x / (power == Power::Half ? root : root * sqrt(root));
}

template <Power power>
void plain_task(const LrnArgs& args, int64_t image, int64_t channel, int64_t pixel) {
  const int64_t last_pixel = smaller(args.pixels, pixel + kLrnPixels);
  const int64_t last_channel = smaller(args.channels, channel + kLrnChannels);
  const float* src = args.src + image * args.image;
  float* dst = args.dst + image * args.image;
  for (int64_t c = channel; c < last_channel; ++c) {
    const int64_t first = larger(0, c - args.before), end = smaller(args.channels, c + args.after + 1);
    for (int64_t p = pixel; p < last_pixel; p += kLanes) {
      const int64_t n = smaller(kLanes, last_pixel - p);
      F32 squares = zero();
      for (int64_t w = first; w < end; ++w) {
        const float* at = src + w * args.pixels + p;
        const F32 x = n == kLanes ? load(at) : load_n(at, n);
        squares = fma(x, x, squares);
      }
      const float* at = src + c * args.pixels + p;
      if (n == kLanes) {
        store(dst + c * args.pixels + p, normalized<power>(args, load(at), squares));
      } else {
        store_n(dst + c * args.pixels + p, normalized<power>(args, load_n(at, n), squares), n);
      }
    }
  }
}

// The squares of the block before, of the block itself and of the one behind it lie in a row, so that a window's k-th
// channels are one vector. All of a group of pixels are written before the first is read.
template <Power power>
void blocked_task(const LrnArgs& args, int64_t image, int64_t block, int64_t pixel) {
  constexpr int64_t kGroup = 8;
  constexpr int64_t kRow = 3 * kLanes;
  float squares[kGroup * kRow];
  const int64_t blocks = (args.channels + kLanes - 1) / kLanes;
  const int64_t last = smaller(args.pixels, pixel + kLrnBlock);
  const int64_t plane = args.pixels * kLanes;
  const float* src = args.src + image * args.image + block * plane;
  float* dst = args.dst + image * args.image + block * plane;
  const Mask exists = lt(to_f32(iota_i32()), broadcast((float)smaller(kLanes, args.channels - block * kLanes)));
  for (int64_t p = pixel; p < last; p += kGroup) {
    const int64_t count = smaller(kGroup, last - p);
    for (int64_t i = 0; i < count; ++i) {
      const float* at = src + (p + i) * kLanes;
      const F32 before = block > 0 ? load(at - plane) : zero();
      const F32 x = load(at);
      const F32 after = block + 1 < blocks ? load(at + plane) : zero();
      store(squares + i * kRow, before * before);
      store(squares + i * kRow + kLanes, x * x);
      store(squares + i * kRow + 2 * kLanes, after * after);
    }
    for (int64_t i = 0; i < count; ++i) {
      const float* window = squares + i * kRow + kLanes - args.before;
      F32 sum = load(window);
      for (int64_t k = 1; k <= args.before + args.after; ++k) sum = sum + load(window + k);
      const F32 y = normalized<power>(args, load(src + (p + i) * kLanes), sum);
      store(dst + (p + i) * kLanes, select(exists, y, zero()));
    }
  }
}

template <Power power, bool blocked>
void tasks(const LrnArgs& args, int64_t begin, int64_t end) {
  const int64_t width = blocked ? kLrnBlock : kLrnPixels;
  const int64_t depth = blocked ? kLanes : kLrnChannels;
  const int64_t parts = (args.pixels + width - 1) / width;
  const int64_t groups = (args.channels + depth - 1) / depth;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t pixel = task % parts * width;
    const int64_t group = task / parts % groups;
    const int64_t image = task / parts / groups;
    if constexpr (blocked) {
      blocked_task<power>(args, image, group, pixel);
    } else {
      plain_task<power>(args, image, group * depth, pixel);
    }
  }
}

template <bool blocked>
NEO_INLINE void run(const LrnArgs& args, int64_t begin, int64_t end) {
  if (args.beta == 0.75f) return tasks<Power::ThreeQuarters, blocked>(args, begin, end);
  if (args.beta == 1.0f) return tasks<Power::One, blocked>(args, begin, end);
  if (args.beta == 0.5f) return tasks<Power::Half, blocked>(args, begin, end);
  tasks<Power::Any, blocked>(args, begin, end);
}

}  // namespace

void lrn_tasks(const LrnArgs& args, int64_t begin, int64_t end) {
  run<false>(args, begin, end);
}

void lrn_blocked_tasks(const LrnArgs& args, int64_t begin, int64_t end) {
  run<true>(args, begin, end);
}

}  // namespace neo::NEO_ISA
