#include "routines/cpu/move/channels.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// Beside what `dst` holds, or instead of it: then zero where nothing is picked.
template <int n>
void pick_vectors(const ChannelPick* picks, bool is_first, int64_t pixels, float* dst) {
  I32 lane[n];
  const float* src[n];
#pragma GCC unroll 4
  for (int i = 0; i < n; ++i) {
    lane[i] = load_i32(picks[i].lane);
    src[i] = picks[i].src;
  }
  for (int64_t p = 0; p < pixels; ++p, dst += kLanes) {
    F32 x = is_first ? zero() : load(dst);
#pragma GCC unroll 4
    for (int i = 0; i < n; ++i) x = pick(x, load(src[i] + p * kLanes), lane[i]);
    store(dst, x);
  }
}

}  // namespace

void pick_channels(const ChannelPick* picks, int64_t count, int64_t pixels, float* dst) {
  for (int64_t i = 0; i < count; i += 4) {
    switch (count - i) {
      case 1:
        pick_vectors<1>(picks + i, i == 0, pixels, dst);
        break;
      case 2:
        pick_vectors<2>(picks + i, i == 0, pixels, dst);
        break;
      case 3:
        pick_vectors<3>(picks + i, i == 0, pixels, dst);
        break;
      default:
        pick_vectors<4>(picks + i, i == 0, pixels, dst);
    }
  }
}

}  // namespace neo::NEO_ISA
