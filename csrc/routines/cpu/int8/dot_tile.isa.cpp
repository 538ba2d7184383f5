#include "routines/cpu/int8/dot_tile.h"

#include "routines/cpu/int8/dot_store.h"
#include "routines/cpu/microkernel/accumulate.h"
#include "simd/dot.h"

namespace neo::NEO_ISA {
namespace {

// The sums, the weights of one word, a broadcast and, where the tier has no product that sums, a product; where there
// are few registers, rows in fours, as they become codes. The scalar tier, which few machines run, is kept small.
constexpr int max_dot_rows(int vectors) {
#ifdef NEO_ISA_SCALAR
  return vectors == 1 ? 4 : (vectors == 2 ? 2 : 1);
#endif
  return kVectorRegisters == 32 ? (vectors == 4 ? 6 : (vectors == 3 ? 8 : (vectors == 2 ? 12 : 14)))
                                : (vectors == 4 ? 2 : (vectors == 3 ? 3 : (vectors == 2 ? 5 : 10)));
}

// The rows of a block, any number of bytes apart; as Rows.
template <int R>
struct WordRows {
  static constexpr int kBases = (R + kShared - 1) / kShared;
  const uint8_t* base[kBases];
  int64_t step, twice;

  NEO_INLINE WordRows(const uint8_t* first, int64_t row_step) : step(row_step), twice(2 * row_step) {
#pragma GCC unroll 16
    for (int j = 0; j < kBases; ++j) base[j] = first + kShared * j * step;
  }

  NEO_INLINE void hide() {
#pragma GCC unroll 16
    for (int j = 0; j < kBases; ++j) asm("" : "+r"(base[j]));
    asm("" : "+r"(step), "+r"(twice));
  }

  NEO_INLINE I32 broadcast_word(int r, int k) const {
    const int i = r % kShared;
    int32_t word;
    __builtin_memcpy(&word, base[r / kShared] + (i == 0 ? 0 : (i == 1 ? step : twice)) + 4 * k, sizeof word);
    return broadcast_i32(word);
  }

  NEO_INLINE void advance(int words) {
#pragma GCC unroll 16
    for (int j = 0; j < kBases; ++j) base[j] += 4 * words;
  }
};

template <bool kBytes>
NEO_INLINE void dot(I32& c, I32 a, I32 b) {
  if constexpr (kBytes) {
    dot_bytes(c, a, b);
  } else {
    dot_pairs(c, a, b);
  }
}

template <bool kBytes, int V, int R, int count>
NEO_INLINE void sum_words(I32 (&acc)[R][V], const int32_t*& weight, WordRows<R>& rows) {
#pragma GCC unroll 4
  for (int u = 0; u < count; ++u) {
    rows.hide();
    I32 w[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) w[v] = load_i32(weight + (u * V + v) * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const I32 x = rows.broadcast_word(r, u);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) dot<kBytes>(acc[r][v], x, w[v]);
    }
  }
  weight += count * V * kLanes;
  rows.advance(count);
}

template <bool kBytes, int V, int R>
NEO_INLINE void sum_tile(I32 (&acc)[R][V], const DotTile& t) {
  // Few machines run the scalar tier, or AVX-512 without VNNI: their tiles are kept small.
#if defined(NEO_ISA_SCALAR)
  constexpr int kStep = 1;
#elif defined(NEO_ISA_AVX512)
  constexpr int kStep = kBytes ? 4 : 2;
#else
  // Pairs in wide vectors keep the units busy without long loops.
  constexpr int kStep = kBytes || kLanes < 16 ? 4 : 2;
#endif
  const int32_t* weight = t.weight;
  for (int64_t tap = 0; tap < t.tap_count; ++tap) {
    const uint8_t* block = t.src + t.taps[tap];
    for (int64_t b = 1; b <= t.blocks; ++b) {
      WordRows<R> rows(block, t.step);
      int64_t words = b < t.blocks ? t.block_words : t.last_words;
#pragma GCC unroll 1
      for (; words >= kStep; words -= kStep) sum_words<kBytes, V, R, kStep>(acc, weight, rows);
#pragma GCC unroll 1
      for (; kStep > 1 && words > 0; --words) sum_words<kBytes, V, R, 1>(acc, weight, rows);
      block += t.block_stride;
    }
  }
}

// Tiles whose plain results are stored from registers: the large ones, which are most of the work. Few machines run
// pairs in wide vectors.
constexpr bool stores_plain(bool bytes, int vectors, int rows) {
  if (!kStoresFour) return false;
  if (bytes) return rows * vectors >= (vectors == 1 ? 7 : 18);
  return kLanes == 8 && rows >= (vectors == 1 ? 7 : 4);
}

template <bool kBytes, int V, int R>
void run_dot_tile(const DotTile& t) {
  I32 acc[R][V];
  const DotResult& result = *t.result;
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const I32 init = load_i32(result.init + t.column + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) acc[r][v] = init;
  }
  sum_tile<kBytes, V, R>(acc, t);
  if constexpr (stores_plain(kBytes, V, R)) {
    if (!t.sums && !t.row_sums && t.columns >= V * kLanes && is_plain(result, t.residual)) {
      // Only the last vector may have padding.
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        const auto sum_of = [&](int r) NEO_LAMBDA { return acc[r][v]; };
        auto* const dst = (uint8_t*)t.dst + v * t.dst_vector;
        const int64_t column = t.column + v * kLanes;
        v + 1 < V ? store_plain<R, false>(result, column, dst, t.dst_row, R, sum_of)
                  : store_plain<R, true>(result, column, dst, t.dst_row, R, sum_of);
      }
      return;
    }
  }
  // One copy of the code that stores, of any size of tile.
  alignas(64) int32_t kept[R * V * kLanes];
  int32_t* sums = t.sums ? t.sums : kept;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store_i32(sums + (r * V + v) * kLanes, acc[r][v]);
  }
  if (!t.sums) store_tile(t, sums, V, R);
}

// Codes as they are in a word: bytes count from 0 on, int16 from the zero point on.
template <bool kBytes>
NEO_INLINE int32_t in_word(int32_t code, const DotFill& f) {
  return kBytes ? code + (f.is_signed ? 128 : 0) : code - f.zero;
}

// Pixels outside the image: int16 of them are 0.
template <bool kBytes>
void fill_pixels(const DotFill& f, int64_t begin, int64_t end) {
  const int32_t pad = kBytes ? in_word<kBytes>(f.zero, f) : 0;
  if (begin < end) __builtin_memset(f.dst + begin * f.dst_pixel, pad, (size_t)((end - begin) * f.dst_pixel));
}

// Pixels [first, last) of planes of channels, item by item.
template <bool kBytes>
void fill_items(const DotFill& f, int64_t first, int64_t last) {
  constexpr int kItem = kBytes ? 1 : 2;
  const int64_t count = f.dst_pixel / kItem;
  for (int64_t c = 0; c < count; ++c) {
    uint8_t* dst = f.dst + first * f.dst_pixel + c * kItem;
    const uint8_t* src = f.src + c * f.src_block + (first - f.begin) * f.src_pixel;
    for (int64_t p = first; p < last; ++p, dst += f.dst_pixel, src += f.src_pixel) {
      int32_t code = 0;
      if (c < f.channels) code = in_word<kBytes>(f.is_signed ? (int8_t)*src : *src, f);
      const auto item = (uint16_t)code;
      __builtin_memcpy(dst, &item, kItem);
    }
  }
}

// Neighbouring pixels of planes: the words of as many of them as a vector has lanes.
template <bool kBytes>
void fill_planes(const DotFill& f) {
  constexpr int kCodes = kBytes ? 4 : 2, kWidth = 32 / kCodes;
  const int64_t words = (f.dst_pixel + 3) / 4;
  const int64_t whole = f.src_pixel == 1 ? (f.end - f.begin) / kLanes * kLanes : 0;
  const I32 shift = broadcast_i32(kBytes ? (f.is_signed ? 128 : 0) : -f.zero);
  const I32 mask = broadcast_i32(kBytes ? 0xff : 0xffff);
  for (int64_t p = 0; p < whole; p += kLanes) {
    uint8_t* dst = f.dst + (f.begin + p) * f.dst_pixel;
    for (int64_t word = 0; word < words; ++word) {
      I32 bits = broadcast_i32(0);
      for (int i = kCodes; i-- > 0;) {
        const int64_t c = word * kCodes + i;
        bits = shift_left<kWidth>(bits);
        if (c < f.channels) bits = bits | ((load_codes(f.src + c * f.src_block + p, f.is_signed) + shift) & mask);
      }
      if (f.dst_pixel == 1) {
        store_u8(dst, bits);
      } else if (f.dst_pixel == 2) {
        store_u16((uint16_t*)dst, bits);
      } else if (kBytes && kHasDotBytes && f.dst_pixel == 3) {
        store_triples(dst, bits);
      } else if (f.dst_pixel == 4) {
        store_i32((int32_t*)dst, bits);
      } else {
        // The next word overwrites the bytes beyond the pixel of this one.
        alignas(64) int32_t lanes[kLanes];
        store_i32(lanes, bits);
        for (int64_t lane = 0; lane < kLanes; ++lane)
          __builtin_memcpy(dst + lane * f.dst_pixel + word * 4, &lanes[lane], 4);
      }
    }
  }
  fill_items<kBytes>(f, f.begin + whole, f.end);
}

// Two vectors of codes as int16 from the zero point on.
NEO_INLINE PairWords words_of_pair(const DotFill& f, const uint8_t* a, const uint8_t* b) {
  const uint8_t middle = f.is_signed ? 128 : 0;
  const auto from = (int16_t)(f.zero + middle);
  return __builtin_convertvector(load_pair(a, b) ^ middle, PairWords) - from;
}

// A vector of codes, as bytes or as int16.
template <bool kBytes>
NEO_INLINE void fill_vector(const DotFill& f, const uint8_t* src, uint8_t* dst) {
  if constexpr (kBytes) {
    copy_as_bytes(dst, src, kLanes, f.is_signed);
  } else {
    const PairWords words = words_of_pair(f, src, src);
    __builtin_memcpy(dst, &words, sizeof words / 2);
  }
}

// A last block writes too much, which others overwrite: bytes are written pixel by pixel, int16 of blocks from the last
// one on.
template <bool kBytes>
void fill_blocks(const DotFill& f) {
  constexpr int kItem = kBytes ? 1 : 2;
  const int64_t blocks = (f.channels + kLanes - 1) / kLanes;
  uint8_t* dst = f.dst + f.begin * f.dst_pixel;
  const uint8_t* src = f.src;
  if constexpr (kBytes) {
    const uint8_t middle = f.is_signed ? 128 : 0;
    if (blocks == 1 && f.dst_pixel == kLanes && f.src_pixel == kLanes) {
      const I32 flip = broadcast_i32(f.is_signed ? (int32_t)0x80808080 : 0);
      const int64_t bytes = (f.end - f.begin) * kLanes;
      int64_t i = 0;
      for (; i + 4 * kLanes <= bytes; i += 4 * kLanes)
        store_i32((int32_t*)(dst + i), load_i32((const int32_t*)(src + i)) ^ flip);
      for (; i < bytes; i += kLanes) fill_vector<kBytes>(f, src + i, dst + i);
      return;
    }
    for (int64_t p = f.begin; p < f.end; ++p, dst += f.dst_pixel, src += f.src_pixel) {
      int64_t b = 0;
      for (; b + 2 <= blocks; b += 2) {
        const PairBytes pair = load_pair(src + b * f.src_block, src + (b + 1) * f.src_block) ^ middle;
        __builtin_memcpy(dst + b * kLanes, &pair, sizeof pair);
      }
      if (b < blocks) fill_vector<kBytes>(f, src + b * f.src_block, dst + b * kLanes);
    }
    return;
  }
  for (int64_t b = blocks; b-- > 0;) {
    const uint8_t* from = src + b * f.src_block;
    uint8_t* to = dst + b * kLanes * kItem;
    int64_t p = f.begin;
    for (; p + 2 <= f.end; p += 2, from += 2 * f.src_pixel, to += 2 * f.dst_pixel) {
      const PairWords words = words_of_pair(f, from, from + f.src_pixel);
      __builtin_memcpy(to, &words, sizeof words / 2);
      __builtin_memcpy(to + f.dst_pixel, (const uint8_t*)&words + sizeof words / 2, sizeof words / 2);
    }
    if (p < f.end) fill_vector<kBytes>(f, from, to);
  }
}

template <bool kBytes>
void fill_rows(const DotFill& f) {
  constexpr int kItem = kBytes ? 1 : 2;
  uint8_t* dst = f.dst + f.begin * f.dst_pixel;
  const uint8_t* src = f.src;
  for (int64_t p = f.begin; p < f.end; ++p, dst += f.dst_pixel, src += f.src_pixel) {
    int64_t c = 0;
    for (; c + kLanes <= f.channels; c += kLanes) fill_vector<kBytes>(f, src + c, dst + c * kItem);
    if (c < f.channels) {
      uint8_t last[kLanes] = {};
      __builtin_memcpy(last, src + c, (size_t)(f.channels - c));
      fill_vector<kBytes>(f, last, dst + c * kItem);
    }
  }
}

template <bool kBytes>
void fill_row(const DotFill& f) {
  fill_pixels<kBytes>(f, 0, f.begin);
  if (f.begin < f.end) {
    f.form == DotFill::Form::Planes   ? fill_planes<kBytes>(f)
    : f.form == DotFill::Form::Blocks ? fill_blocks<kBytes>(f)
                                      : fill_rows<kBytes>(f);
  }
  fill_pixels<kBytes>(f, f.end, f.columns);
}

// The words of `rows` rows of a vector of columns, of which `count` exist: bytes as they lie, int16 from the zero point
// on.
template <bool kBytes>
[[gnu::noinline]] I32 words_of_rows(const DotPack& p, const uint8_t* at, int rows, int64_t count) {
  constexpr int kWidth = kBytes ? 8 : 16;
  I32 bits = broadcast_i32(0);
  for (int i = count == 0 ? 0 : rows; i-- > 0;) {
    const uint8_t* row = at + i * p.step;
    I32 codes = count == kLanes ? load_u8(row) : load_u8_n(row, count);
    if constexpr (!kBytes) {
      if (p.is_signed) codes = shift_right<24>(shift_left<24>(codes));
      codes = (codes - broadcast_i32(p.zero)) & broadcast_i32(0xffff);
    }
    bits = shift_left<kWidth>(bits) | codes;
  }
  if constexpr (!kBytes && kSplitsPairs) {
    int16_t from[2 * kLanes], to[2 * kLanes];
    store_i32((int32_t*)from, bits);
    for (int i = 0; i < 2 * kLanes; ++i) to[dot_weight_at(kLanes, 2, i / 2, i % 2)] = from[i];
    bits = load_i32((const int32_t*)to);
  }
  return bits;
}

// Bytes without a sign are held less 128; zero points are seen to after that.
template <bool kBytes>
void pack_panel(const DotPack& p) {
  constexpr int kCodes = kBytes ? 4 : 2;
  const I32 ones = broadcast_i32(0x01010101);
  const int32_t middle = kBytes && !p.is_signed ? 128 : 0;
  const int64_t words = (p.rows + kCodes - 1) / kCodes;
  I32 sums[kDotVectors];
  for (I32& sum : sums) sum = broadcast_i32(0);
  int32_t* dst = p.dst;
  for (int64_t word = 0; word < words; ++word) {
    const int rows = (int)(p.rows - word * kCodes < kCodes ? p.rows - word * kCodes : kCodes);
    const I32 signs = broadcast_i32(middle ? (int32_t)(0x80808080u >> (8 * (4 - rows))) : 0);
    const uint8_t* at = p.src + word * kCodes * p.step;
    for (int64_t v = 0; v < p.vectors; ++v, at += kLanes, dst += kLanes) {
      const int64_t left = p.columns - v * kLanes;
      const int64_t count = left < 0 ? 0 : (left < kLanes ? left : kLanes);
      I32 bits;
      if (kBytes && rows == kCodes && count == kLanes) {
        bits = load_columns(at, at + p.step, at + 2 * p.step, at + 3 * p.step);
      } else {
        bits = words_of_rows<kBytes>(p, at, rows, count);
      }
      if constexpr (kBytes) {
        bits = bits ^ signs;
        dot_bytes(sums[v], ones, bits);
      }
      store_i32(dst, bits);
    }
  }
  const int32_t offset = (int32_t)((uint32_t)p.rows * (uint32_t)(middle - p.zero));
  for (int64_t v = 0; v < p.vectors; ++v)
    store_i32(p.init + v * kLanes, (broadcast_i32(0) - sums[v] - broadcast_i32(offset)) * broadcast_i32(p.from));
}

// A lane for each pixel: where a pixel is a word these are neighbours, else the sums of a vector for each are
// transposed.
void sum_bytes(const uint8_t* src, int64_t step, int64_t pixels, int64_t bytes, int32_t* sums) {
  constexpr int64_t kBytesOfVector = 4 * kLanes;
  const bool is_word = step == 4;
  const int64_t bytes_left = is_word ? bytes : bytes % kBytesOfVector, whole = is_word ? 0 : bytes - bytes_left;
  // Only the bytes that exist count in a last vector.
  alignas(64) uint8_t last[kBytesOfVector];
  for (int64_t i = 0; i < kBytesOfVector; ++i) last[i] = (is_word ? i % 4 : i) < bytes_left;
  const I32 ones = broadcast_i32(0x01010101), last_ones = load_i32((const int32_t*)last);
  const auto sum = [&](const uint8_t* at) __attribute__((always_inline)) {
    I32 acc = broadcast_i32(0);
    for (int64_t i = 0; i < whole; i += kBytesOfVector) dot_bytes(acc, load_i32((const int32_t*)(at + i)), ones);
    if (bytes_left > 0) dot_bytes(acc, load_i32((const int32_t*)(at + whole)), last_ones);
    return acc;
  };
  for (int64_t p = 0; p < pixels; p += kLanes, src += kLanes * step) {
    const int64_t n = pixels - p < kLanes ? pixels - p : kLanes;
    I32 acc = broadcast_i32(0);
    if (is_word) {
      acc = sum(src);
    } else {
      F32 rows[kLanes];
      for (int64_t i = 0; i < kLanes; ++i) rows[i] = i < n ? bits_as_f32(sum(src + i * step)) : zero();
      transpose(rows);
      for (int64_t i = 0; i < kLanes; ++i) acc = acc + bits_as_i32(rows[i]);
    }
    n < kLanes ? store_i32_n(sums + p, acc, n) : store_i32(sums + p, acc);
  }
}

void sum_taps(const int32_t* src, int64_t step, int64_t taps, int64_t count, int32_t* sums) {
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t n = count - i < kLanes ? count - i : kLanes;
    I32 acc = broadcast_i32(0);
    for (int64_t k = 0; k < taps; ++k) {
      const int32_t* at = src + k * step + i;
      acc = acc + (n < kLanes ? load_i32_n(at, n) : load_i32(at));
    }
    n < kLanes ? store_i32_n(sums + i, acc, n) : store_i32(sums + i, acc);
  }
}

template <bool kBytes, int V, int R>
constexpr DotTileKernel dot_tile() {
  if constexpr (R <= max_dot_rows(V)) {
    return &run_dot_tile<kBytes, V, R>;
  } else {
    return nullptr;
  }
}

#define NEO_DOT_ROWS(V)                                                                                              \
  {                                                                                                                  \
    nullptr, dot_tile<kBytes, V, 1>(), dot_tile<kBytes, V, 2>(), dot_tile<kBytes, V, 3>(), dot_tile<kBytes, V, 4>(), \
        dot_tile<kBytes, V, 5>(), dot_tile<kBytes, V, 6>(), dot_tile<kBytes, V, 7>(), dot_tile<kBytes, V, 8>(),      \
        dot_tile<kBytes, V, 9>(), dot_tile<kBytes, V, 10>(), dot_tile<kBytes, V, 11>(), dot_tile<kBytes, V, 12>(),   \
        dot_tile<kBytes, V, 13>(), dot_tile<kBytes, V, 14>(),                                                        \
  }

template <bool kBytes>
constexpr DotKernels kDotKernels = {
    kLanes,
    kBytes ? 4 : 2,
    {0, max_dot_rows(1), max_dot_rows(2), max_dot_rows(3), max_dot_rows(4)},
    {{}, NEO_DOT_ROWS(1), NEO_DOT_ROWS(2), NEO_DOT_ROWS(3), NEO_DOT_ROWS(4)},
    &fill_row<kBytes>,
    &pack_panel<kBytes>,
    kBytes ? &sum_bytes : nullptr,
    kBytes ? &sum_taps : nullptr,
};

}  // namespace

const DotKernels& dot_kernels(bool bytes) {
  if constexpr (kHasDotBytes) {
    if (bytes) return kDotKernels<true>;
  }
  return kDotKernels<false>;
}

}  // namespace neo::NEO_ISA
