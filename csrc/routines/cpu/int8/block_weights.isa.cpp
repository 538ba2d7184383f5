#include "routines/cpu/int8/block_weights.h"

#include "simd/dot.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

#ifdef NEO_ISA_SCALAR
constexpr int kMaxBlockRows = 1;  // few machines run it: it is kept small
#else
constexpr int kMaxBlockRows = kVectorRegisters == 32 ? kBlockRows : 4;
#endif

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

template <int V, int R>
NEO_INLINE void store_tile(const BlockTile& t, const F32 (&acc)[R][V]) {
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
        for (int r = 0; r < R; ++r) part[r][v] = fnma(zeros, broadcast(t.sums[r * t.blocks + b]), part[r][v]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) accumulate(acc[r][v], part[r][v], scale);
    }
  }
  store_tile<V, R>(t, acc);
}

// Enough sums at once to hide an FMA's latency, few enough for the registers.
constexpr int vectors_of(int rows) {
#ifdef NEO_ISA_SCALAR
  return 1;
#endif
  return rows == 1 ? 4 : (rows == 2 ? (kVectorRegisters == 32 ? 4 : 2) : (rows == 4 && kVectorRegisters == 32 ? 2 : 1));
}

template <int kBits, int R>
void run_rows(const BlockTile& t, int vectors) {
  vectors == 1 ? run_block_tile<kBits, 1, R>(t) : run_block_tile<kBits, vectors_of(R), R>(t);
}

template <int kBits>
void run_block(const BlockTile& t, int rows, int vectors) {
  if (rows == 1) return run_rows<kBits, 1>(t, vectors);
  if constexpr (kMaxBlockRows >= 4) {
    if (rows == 2) return run_rows<kBits, 2>(t, vectors);
    if (rows == 4) return run_rows<kBits, 4>(t, vectors);
  }
  if constexpr (kMaxBlockRows == 8) run_rows<kBits, 8>(t, vectors);
}

void encode_blocks(const float* x, int64_t depth, int64_t block, int64_t padded, int32_t zero_point,
                   const CodedRows& to) {
  constexpr float kMinMagnitude = 1e-30f, kMaxFloat = 3.402823466e38f, kSteps = 127;
  int8_t* codes = to.codes;
  int64_t b = 0;
  for (int64_t begin = 0; begin < depth; begin += block, codes += padded, ++b) {
    const int64_t count = depth - begin < block ? depth - begin : block;
    F32 most = zero();
    for (int64_t i = 0; i < count; i += kLanes) {
      const int64_t n = count - i < kLanes ? count - i : kLanes;
      most = max_nan(most, abs(n < kLanes ? load_n(x + begin + i, n) : load(x + begin + i)));
    }
    const bool is_finite = all(le(most, broadcast(kMaxFloat)));
    const float largest = is_finite ? reduce_max(most) : 0;
    const F32 steps = broadcast(largest > kMinMagnitude ? kSteps / largest : 0);
    I32 sum = broadcast_i32(0);
    for (int64_t i = 0; i < padded; i += kLanes) {
      const int64_t left = is_finite && i < count ? count - i : 0, room = padded - i;
      const F32 part = left >= kLanes ? load(x + begin + i) : load_n(x + begin + i, left);
      const I32 code = round_to_i32(part * steps);
      sum = sum + code;
      room >= kLanes ? store_i8(codes + i, code) : store_i8_n(codes + i, code, room);
    }
    to.scales[b] = is_finite ? largest / kSteps : __builtin_nanf("");
    alignas(64) int32_t lanes[kLanes];
    store_i32(lanes, sum);
    int32_t total = 0;
    for (const int32_t lane : lanes) total += lane;
    to.zero_sums[b] = -total * zero_point;
  }
}

template <int kBits, int V, int R>
void run_coded_tile(const BlockTile& t) {
  F32 acc[R][V];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = zero();
  }
  const I32 low = broadcast_i32(0x0f0f0f0f);
  const int64_t vector_words = t.blocks * t.block_words * kLanes, vector_scales = t.blocks * kLanes;
  const auto* words = (const int32_t*)t.words;
  const int8_t* x = t.rows.codes;
  for (int64_t b = 0; b < t.blocks; ++b) {
    I32 part[R][V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const I32 zeros = t.zeros ? load_u8(t.zeros + v * vector_scales + b * kLanes) : broadcast_i32(1);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const I32 start = broadcast_i32(t.rows.zero_sums[r * t.blocks + b]);
        part[r][v] = t.zeros ? start * zeros : start;
      }
    }
#pragma GCC unroll 1
    for (int64_t word = 0; word < t.block_words; ++word, words += kLanes) {
      I32 codes[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) codes[v] = load_i32(words + v * vector_words);
#pragma GCC unroll 2
      for (int half = 0; half < 8 / kBits; ++half, x += 4) {
        I32 bytes[V];
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v)
          bytes[v] = kBits == 8 ? codes[v] : ((half == 0 ? codes[v] : shift_right_logical<4>(codes[v])) & low);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          int32_t four;
          __builtin_memcpy(&four, x + r * t.x_row, 4);
          const I32 many = broadcast_i32(four);
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) dot_bytes(part[r][v], bytes[v], many);
        }
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const F32 scale = load(t.scales + v * vector_scales + b * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        acc[r][v] = fma(to_f32(part[r][v]), scale * broadcast(t.rows.scales[r * t.blocks + b]), acc[r][v]);
    }
  }
  store_tile<V, R>(t, acc);
}

template <int kBits>
void run_coded(const BlockTile& t, int rows, int vectors) {
  if (rows == 8) return run_coded_tile<kBits, 1, 8>(t);
  if (rows == 4) return run_coded_tile<kBits, 1, 4>(t);
  vectors == 1 ? run_coded_tile<kBits, 1, 1>(t) : run_coded_tile<kBits, 4, 1>(t);
}

int block_vectors(int rows) {
  return vectors_of(rows);
}

template <int kBits>
constexpr BlockKernels kBlockKernels = {kLanes,
                                        kMaxBlockRows,
                                        &prepare_blocks<kBits>,
                                        &block_vectors,
                                        &run_block<kBits>,
                                        kHasDotBytes ? &encode_blocks : nullptr,
                                        kHasDotBytes ? &run_coded<kBits> : nullptr};

}  // namespace

const BlockKernels& block_kernels(int bits) {
  return bits == 4 ? kBlockKernels<4> : kBlockKernels<8>;
}

}  // namespace neo::NEO_ISA
