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

__attribute__((noinline, noclone)) void store_sums(const DotTile& t, const int32_t* sums, int vectors, int rows) {
  for (int v = 0; v < vectors; ++v) {
    const int64_t at = v * t.dst_vector, added = v * t.residual_vector;
    store_rows(sums + v * kLanes, (int64_t)vectors * kLanes, t.row_sums, rows, *t.result, t.column + v * kLanes,
               t.columns - v * kLanes, t.dst, at, t.dst_row, t.residual ? t.residual + added : nullptr, t.residual_row);
  }
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
  // One copy of the code that stores, of any size of tile.
  alignas(64) int32_t kept[R * V * kLanes];
  int32_t* sums = t.sums ? t.sums : kept;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store_i32(sums + (r * V + v) * kLanes, acc[r][v]);
  }
  if (!t.sums) store_sums(t, sums, V, R);
}

// Codes as they are in a word: bytes count from 0 on, int16 from the zero point on.
template <bool kBytes>
NEO_INLINE int32_t in_word(int32_t code, const DotFill& f) {
  return kBytes ? code + (f.is_signed ? 128 : 0) : code - f.zero;
}

template <bool kBytes>
void fill_pixels(const DotFill& f, int64_t begin, int64_t end) {
  constexpr int kItem = kBytes ? 1 : 2;
  const int64_t count = f.dst_pixel / kItem;
  for (int64_t p = begin; p < end; ++p) {
    uint8_t* dst = f.dst + p * f.dst_pixel;
    const int32_t pad = kBytes ? in_word<kBytes>(f.zero, f) : 0;
    for (int64_t c = 0; c < count; ++c) {
      const auto item = (uint16_t)pad;
      __builtin_memcpy(dst + c * kItem, &item, kItem);
    }
  }
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
    for (int64_t p = f.begin; p < f.end; ++p, dst += f.dst_pixel, src += f.src_pixel) {
      for (int64_t b = 0; b < blocks; ++b) fill_vector<kBytes>(f, src + b * f.src_block, dst + b * kLanes);
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

// The number of a tile's sum once the residual, or else the addend, is in.
NEO_INLINE F32 add_residual(F32 t, const DotResult& r, const uint8_t* residual, F32 addend, int64_t count) {
  if (r.has_middle) {
    const F32 steps = min(broadcast(r.middle_hi), max(broadcast(r.middle_lo), t));
    t = to_f32(round_to_i32(steps)) * broadcast(r.middle_scale);
  }
  if (!residual) return t + addend;
  I32 codes;
  if (count >= kLanes) {
    codes = load_codes(residual, r.residual_is_signed);
  } else {
    codes = r.residual_is_signed ? load_i8_n((const int8_t*)residual, count) : load_u8_n(residual, count);
  }
  const F32 added = to_f32(codes - broadcast_i32(r.residual_zero)) * broadcast(r.residual_scale);
  return t + added;
}

// As store_rows(), of any result.
[[gnu::noinline]] void store_any_rows(const int32_t* sums, int64_t sums_step, const int32_t* row_sums, int64_t rows,
                                      const DotResult& result, int64_t column, int64_t count, void* dst, int64_t at,
                                      int64_t row, const uint8_t* residual, int64_t residual_row) {
  const F32 lo = broadcast(result.lo), hi = broadcast(result.hi);
  const F32 scale = load(result.scale + column), add = load(result.add + column);
  const I32 mask = load_i32(result.mask + column), zero_point = broadcast_i32(result.zero);
  const bool is_whole = count >= kLanes;
  const I32 shift = row_sums ? load_i32(result.shift + column) : broadcast_i32(0);
  const auto sum_of = [&](int64_t r) __attribute__((always_inline)) {
    const I32 sum = load_i32(sums);
    return row_sums ? sum + broadcast_i32(row_sums[r]) * shift : sum;
  };
  if (result.is_whole) {
    for (int64_t r = 0; r < rows; ++r, sums += sums_step, at += row) {
      const I32 whole = sum_of(r) & mask;
      is_whole ? store_i32((int32_t*)dst + at, whole) : store_i32_n((int32_t*)dst + at, whole, count);
    }
    return;
  }
  if (result.is_float) {
    for (int64_t r = 0; r < rows; ++r, sums += sums_step, at += row) {
      const F32 x = min(hi, max(lo, to_f32(sum_of(r)) * scale + add));
      const F32 kept = bits_as_f32(bits_as_i32(x) & mask);
      is_whole ? store((float*)dst + at, kept) : store_n((float*)dst + at, kept, count);
    }
    return;
  }
  auto* to = (uint8_t*)dst + at;
  const auto number_of = [&](int64_t r) __attribute__((always_inline)) {
    const I32 sum = load_i32(sums + r * sums_step);
    return to_f32(row_sums ? sum + broadcast_i32(row_sums[r]) * shift : sum) * scale + add;
  };
  const auto store_all = [&](const auto& steps_of) __attribute__((always_inline)) {
    int64_t r = 0;
    if constexpr (kStoresFour) {
      const bool has_padding = !all(eq(mask, broadcast_i32(-1)));
      const auto kept = [&](I32 steps) __attribute__((always_inline)) {
        return has_padding ? (steps + zero_point) & mask : steps;
      };
      const int32_t plus = has_padding ? 0 : result.zero;
      for (; is_whole && r + 2 <= rows; r += 4) {
        const int64_t n = rows - r;
        const I32 a = kept(steps_of(r)), b = kept(steps_of(r + 1));
        const I32 c = n > 2 ? kept(steps_of(r + 2)) : a, d = n > 3 ? kept(steps_of(r + 3)) : a;
        store_four(to + r * row, row, n, a, b, c, d, plus, result.is_signed);
      }
    }
    for (; r < rows; ++r) store_codes(to + r * row, (steps_of(r) + zero_point) & mask, result.is_signed, count);
  };
  if (!residual && !result.addend) {
    store_all([&](int64_t r) __attribute__((always_inline)) { return round_to_i32(min(hi, max(lo, number_of(r)))); });
    return;
  }
  const F32 addend = result.addend ? load(result.addend + column) : zero();
  const CodesDivisor y_scale(result.y_scale);
  store_all([&](int64_t r) __attribute__((always_inline)) {
    const uint8_t* added = residual ? residual + r * residual_row : nullptr;
    return y_scale.round(add_residual(number_of(r), result, added, addend, count), lo, hi);
  });
}

}  // namespace

void store_rows(const int32_t* sums, int64_t sums_step, const int32_t* row_sums, int64_t rows, const DotResult& result,
                int64_t column, int64_t count, void* dst, int64_t at, int64_t row, const uint8_t* residual,
                int64_t residual_row) {
  if constexpr (kStoresFour) {
    const bool is_plain = !row_sums && !residual && !result.addend && !result.is_whole && !result.is_float;
    if (is_plain && count >= kLanes && all(eq(load_i32(result.mask + column), broadcast_i32(-1)))) {
      const F32 lo = broadcast(result.lo), hi = broadcast(result.hi);
      const F32 scale = load(result.scale + column), add = load(result.add + column);
      auto* to = (uint8_t*)dst + at;
      const auto steps_of = [&](int64_t r) __attribute__((always_inline)) {
        const I32 sum = load_i32(sums + (r < rows ? r : rows - 1) * sums_step);
        return round_to_i32(min(hi, max(lo, to_f32(sum) * scale + add)));
      };
      int64_t r = 0;
      for (; r + 1 < rows; r += 4) {
        store_four(to + r * row, row, rows - r, steps_of(r), steps_of(r + 1), steps_of(r + 2), steps_of(r + 3),
                   result.zero, result.is_signed);
      }
      if (r < rows) {
        const I32 last = steps_of(r);
        store_four(to + r * row, row, 1, last, last, last, last, result.zero, result.is_signed);
      }
      return;
    }
  }
  store_any_rows(sums, sums_step, row_sums, rows, result, column, count, dst, at, row, residual, residual_row);
}

const DotKernels& dot_kernels(bool bytes) {
  if constexpr (kHasDotBytes) {
    if (bytes) return kDotKernels<true>;
  }
  return kDotKernels<false>;
}

}  // namespace neo::NEO_ISA
