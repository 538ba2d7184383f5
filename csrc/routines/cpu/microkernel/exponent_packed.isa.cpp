#include "routines/cpu/microkernel/exponent_packed.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// `most` where x is not a number, which max leaves to the machine.
NEO_INLINE F32 larger(F32 x, F32 most) {
  return select(lt(most, x), x, most);
}

float largest(const float* values, int64_t count) {
  F32 most = zero();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) most = larger(abs(load(values + i)), most);
  return reduce_max(larger(abs(load_n(values + i, count - i)), most));
}

NEO_INLINE Mask is_outlier(F32 x, F32 least) {
  return (!le(least, abs(x))) & ne(x, zero());
}

int64_t count_outliers(const float* values, int64_t count, float least, int64_t most) {
  const F32 bound = broadcast(least);
  int64_t found = 0;
  for (int64_t i = 0; i < count && found <= most; i += kLanes) {
    const int64_t end = i + kLanes < count ? i + kLanes : count;
    if (!any(is_outlier(end - i == kLanes ? load(values + i) : load_n(values + i, end - i), bound))) continue;
    for (int64_t j = i; j < end; ++j) found += values[j] != 0 && !(values[j] >= least || values[j] <= -least);
  }
  return found <= most ? found : most + 1;
}

// Bits of the words of a group that a weight leaves free.
constexpr int32_t kHole = 0x78000000;

// Makes seven words of eight weights' bits, the hole empty. The hole of word i has bits 26 - 4i ... 23 - 4i of the last
// weight, that of the seventh bits 2, 1, 0 and 31.
NEO_INLINE void fill_holes(const I32 (&bits)[8], float* to) {
  const I32 last = bits[7], hole = broadcast_i32(kHole);
  I32 parts[7] = {shift_left<4>(last),  shift_left<8>(last),  shift_left<12>(last), shift_left<16>(last),
                  shift_left<20>(last), shift_left<24>(last), shift_left<28>(last)};
  parts[6] = bit_select(broadcast_i32(0x08000000), shift_right_logical<4>(last), parts[6]);
  for (int i = 0; i < 7; ++i) store(to + i * kLanes, bits_as_f32(bit_select(hole, parts[i], bits[i])));
}

NEO_INLINE void read_weights(const float* from, F32 (&weights)[8]) {
  I32 word[7];
#pragma GCC unroll 7
  for (int i = 0; i < 7; ++i) word[i] = bits_as_i32(load(from + i * kLanes));
  I32 last = shift_right_logical<4>(word[0]) & broadcast_i32(0x07800000);
  last = bit_select(broadcast_i32(0x00780000), shift_right_logical<8>(word[1]), last);
  last = bit_select(broadcast_i32(0x00078000), shift_right_logical<12>(word[2]), last);
  last = bit_select(broadcast_i32(0x00007800), shift_right_logical<16>(word[3]), last);
  last = bit_select(broadcast_i32(0x00000780), shift_right_logical<20>(word[4]), last);
  last = bit_select(broadcast_i32(0x00000078), shift_right_logical<24>(word[5]), last);
  last = bit_select(broadcast_i32((int32_t)0x80000007), rotate_left<4>(word[6]), last);
#pragma GCC unroll 7
  for (int i = 0; i < 7; ++i) weights[i] = bits_as_f32(word[i] & broadcast_i32(~kHole));
  weights[7] = bits_as_f32(last);
}

void compress(const float* panel, int64_t groups, int64_t vectors, int32_t base, float least, float* to) {
  const F32 bound = broadcast(least);
  const I32 first = broadcast_i32(base), none = broadcast_i32(0), rest = broadcast_i32((int32_t)0x807fffff);
  for (int64_t i = 0; i < groups * vectors; ++i, panel += 8 * kLanes, to += 7 * kLanes) {
    I32 bits[8];
    for (int v = 0; v < 8; ++v) {
      const F32 x = load(panel + v * kLanes);
      const I32 exponent = (shift_right_logical<23>(bits_as_i32(x)) & broadcast_i32(0xff)) - first;
      bits[v] = select(is_outlier(x, bound) | eq(x, zero()), none,
                       bit_select(rest, bits_as_i32(x), shift_left<23>(exponent)));
    }
    fill_holes(bits, to);
  }
}

// Processors behind a mesh, whose software fetches, have this instruction set.
constexpr bool kMayFetch = kLanes == 16;

// Rows whose part of x is scaled in one go.
constexpr int64_t kScaledRows = 256;

// Adds the product of groups to `sums`, those of even rows and then those of odd ones. `scaled` is x times the scale
// and finite: tiny floats are multiplied as they are.
template <int vectors, bool kFetches>
NEO_INLINE void add_scaled(const float* scaled, int64_t groups, const float* panel, int64_t prefetched, float* sums) {
  F32 sum[2 * vectors];
#pragma GCC unroll 8
  for (int v = 0; v < 2 * vectors; ++v) sum[v] = load(sums + v * kLanes);
  for (; groups > 0; --groups, scaled += kExponentPackedRows) {
#pragma GCC unroll 4
    for (int part = 0; part < vectors; ++part, panel += 7 * kLanes) {
      if constexpr (kFetches) {
#pragma GCC unroll 8
        for (int64_t i = 0; i < 7 * kLanes; i += 16) prefetch_read(panel + prefetched + i);
      }
      F32 weights[8];
      read_weights(panel, weights);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        const int at = part * 8 + i, v = at % (2 * vectors);
        sum[v] = fma(broadcast(scaled[at / vectors]), weights[i], sum[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < 2 * vectors; ++v) store(sums + v * kLanes, sum[v]);
}

// The same for any x.
__attribute__((noinline)) void add_any(const float* x, int64_t step, int64_t rows, int64_t vectors, float scale,
                                       const float* panel, float* sums) {
  for (int64_t at = 0; at < rows * vectors; at += 8, panel += 7 * kLanes) {
    F32 weights[8];
    read_weights(panel, weights);
    for (int64_t i = at; i < at + 8 && i < rows * vectors; ++i) {
      float* sum = sums + i % (2 * vectors) * kLanes;
      store(sum, fma(broadcast(x[i / vectors * step]), weights[i - at] * broadcast(scale), load(sum)));
    }
  }
}

// x * scale, and zero up to whole groups. Whether all are finite.
NEO_INLINE bool scale_rows(const float* x, int64_t step, int64_t rows, float scale, float* to) {
  const F32 factor = broadcast(scale);
  F32 finite = zero();  // NaN where one is not
  int64_t i = 0;
  if (step == 1) {
    for (; i + kLanes <= rows; i += kLanes) {
      const F32 value = load(x + i) * factor;
      finite = fma(value, zero(), finite);
      store(to + i, value);
    }
  }
  float rest = 0;
  for (; i < rows; ++i) {
    to[i] = x[i * step] * scale;
    rest += to[i] * 0.0f;
  }
  for (; i % kExponentPackedRows != 0; ++i) to[i] = 0;
  return rest == 0 && !any(ne(finite, zero()));
}

template <int vectors>
void multiply(const float* x, int64_t step, int64_t rows, float scale, const float* panel, int64_t prefetched,
              float* to) {
  float scaled[kScaledRows], sums[2 * vectors * kLanes];
  for (int v = 0; v < vectors; ++v) {
    store(sums + v * kLanes, load(to + v * kLanes));
    store(sums + (vectors + v) * kLanes, zero());
  }
  for (; rows > 0; rows -= kScaledRows, x += kScaledRows * step) {
    const int64_t count = rows < kScaledRows ? rows : kScaledRows;
    const int64_t groups = (count + kExponentPackedRows - 1) / kExponentPackedRows;
    if (!scale_rows(x, step, count, scale, scaled))
      add_any(x, step, count, vectors, scale, panel, sums);
    else if (kMayFetch && prefetched > 0)
      add_scaled<vectors, kMayFetch>(scaled, groups, panel, prefetched, sums);
    else
      add_scaled<vectors, false>(scaled, groups, panel, prefetched, sums);
    panel += groups * exponent_packed_group_floats(vectors, kLanes);
  }
  for (int v = 0; v < vectors; ++v) {
    store(to + v * kLanes, load(sums + v * kLanes) + load(sums + (vectors + v) * kLanes));
  }
}

void finish(const float* sums, const float* bias, float lo, float hi, int64_t columns, float* y) {
  for (int64_t i = 0; i < columns; i += kLanes) {
    const int64_t count = columns - i < kLanes ? columns - i : kLanes;
    F32 value = load(sums + i);
    if (bias) value = value + load(bias + i);
    value = min(broadcast(hi), max(broadcast(lo), value));
    store_n(y + i, value, count);
  }
}

constexpr ExponentPackedKernels kKernels = {
    largest, count_outliers, compress, {multiply<1>, multiply<2>, multiply<3>, multiply<4>}, finish};

}  // namespace

const ExponentPackedKernels& exponent_packed_kernels() {
  return kKernels;
}

}  // namespace neo::NEO_ISA
