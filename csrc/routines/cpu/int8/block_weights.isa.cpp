#include "routines/cpu/int8/block_weights.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

constexpr int kMaxBlockRows = kVectorRegisters == 32 ? kBlockRows : 4;

// The codes of half a word, 16 bits: in the fraction of 2^23 each is a number as large as its place makes it.
template <int kBits>
constexpr int kHalf = 16 / kBits;
constexpr int kExponent = 0x4b000000;

constexpr float place_of(int bits, int place) {
  return place == 0 ? 1.0f : (float)(1 << bits) * place_of(bits, place - 1);
}

template <int kBits>
void prepare_blocks(const float* x, int64_t depth, int64_t block, int64_t padded, float* to, float* sums) {
  for (int64_t begin = 0; begin < depth; begin += block, to += padded) {
    const int64_t count = depth - begin < block ? depth - begin : block;
    float sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float value = x[begin + i];
      sum += value;
      to[i] = value;
    }
    for (int64_t i = count; i < padded; ++i) to[i] = 0;
    for (int place = 1; place < kHalf<kBits>; ++place) {
      const float factor = 1.0f / place_of(kBits, place);
      for (int64_t i = place; i < count; i += kHalf<kBits>) to[i] *= factor;
    }
    if (sums) *sums++ = sum;
  }
}

template <int kBits, int V, int R>
void run_block_tile(const BlockTile& t) {
  constexpr int kPlaces = kHalf<kBits>;
  F32 acc[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = zero();
  }
  F32 offset[kPlaces];
  for (int place = 0; place < kPlaces; ++place)
    offset[place] = broadcast(8388608.0f + (t.zeros ? 0.0f : t.middle * place_of(kBits, place)));
  const I32 exponent = broadcast_i32(kExponent);
  const int64_t vector_words = t.blocks * t.block_words * kLanes, vector_scales = t.blocks * kLanes;
  const float* x = t.x;
  for (int64_t b = 0; b < t.blocks; ++b) {
    const uint32_t* words = t.words + b * t.block_words * kLanes;
    F32 part[R][V];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) part[r][v] = zero();
    }
    for (int64_t word = 0; word < t.block_words; ++word, words += kLanes) {
      I32 codes[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) codes[v] = load_i32((const int32_t*)(words + v * vector_words));
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 4
        for (int place = 0; place < kPlaces; ++place) {
          const I32 mask = broadcast_i32(((1 << kBits) - 1) << (place * kBits));
          F32 q[V];
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) q[v] = bits_as_f32((codes[v] & mask) | exponent) - offset[place];
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) {
            const float& at = x[r * t.x_row + place];
            if constexpr (V == 1) {
              accumulate(part[r][0], at, q[0]);
            } else {
              const F32 many = broadcast(at);
#pragma GCC unroll 4
              for (int v = 0; v < V; ++v) accumulate(part[r][v], many, q[v]);
            }
          }
        }
        x += kPlaces;
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) codes[v] = shift_right_logical<16>(codes[v]);
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const int64_t at = v * vector_scales + b * kLanes;
      const F32 scale = load(t.scales + at);
      if (t.zeros) {
        const F32 zeros = to_f32(load_u8(t.zeros + at));
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) part[r][v] = fnma(zeros, broadcast(t.sums[r * t.sums_row + b]), part[r][v]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) accumulate(acc[r][v], part[r][v], scale);
    }
  }
  const F32 lo = broadcast(t.lo), hi = broadcast(t.hi);
  for (int v = 0; v < V; ++v) {
    const int64_t count = t.columns - v * kLanes;
    if (count <= 0) break;
    const F32 bias = t.bias ? load(t.bias + v * kLanes) : zero();
    for (int r = 0; r < R; ++r) {
      const F32 y = min_nan(hi, max_nan(lo, acc[r][v] + bias));
      float* to = t.y + r * t.y_row + v * kLanes;
      count >= kLanes ? store(to, y) : store_n(to, y, count);
    }
  }
}

// Enough sums at once to hide an FMA's latency, few enough for the registers.
constexpr int vectors_of(int rows) {
  return rows == 1 ? 4 : (rows == 2 ? (kVectorRegisters == 32 ? 4 : 2) : (rows == 4 && kVectorRegisters == 32 ? 2 : 1));
}

template <int kBits, int R>
void run_rows(const BlockTile& t, int vectors) {
  vectors == 1 ? run_block_tile<kBits, 1, R>(t) : run_block_tile<kBits, vectors_of(R), R>(t);
}

template <int kBits>
void run_block(const BlockTile& t, int rows, int vectors) {
  switch (rows) {
    case 1:
      return run_rows<kBits, 1>(t, vectors);
    case 2:
      return run_rows<kBits, 2>(t, vectors);
    case 4:
      return run_rows<kBits, 4>(t, vectors);
    default:
      if constexpr (kMaxBlockRows == 8) run_rows<kBits, 8>(t, vectors);
  }
}

int block_vectors(int rows) {
  return vectors_of(rows);
}

template <int kBits>
constexpr BlockKernels kBlockKernels = {kLanes, kMaxBlockRows, &prepare_blocks<kBits>, &block_vectors,
                                        &run_block<kBits>};

}  // namespace

const BlockKernels& block_kernels(int bits) {
  return bits == 4 ? kBlockKernels<4> : kBlockKernels<8>;
}

}  // namespace neo::NEO_ISA
