#include "routines/cpu/conv/row_buffer.h"

#include <string.h>

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// `count` of the floats that lie kStride, a power of two, apart; no access beyond the last one.
template <int kStride>
NEO_INLINE F32 load_every(const float* src, int64_t count) {
  const int64_t floats = (count - 1) * kStride + 1;
  F32 part[kStride];
#pragma GCC unroll 4
  for (int i = 0; i < kStride; ++i) {
    const int64_t left = floats - i * kLanes;
    part[i] = load_n(src + i * kLanes, left < 0 ? 0 : (left < kLanes ? left : kLanes));
  }
  if constexpr (kStride == 2) return even(part[0], part[1]);
  return even(even(part[0], part[1]), even(part[kStride - 2], part[kStride - 1]));
}

template <int kStride>
void take_every_fixed(const float* src, int64_t count, float* dst) {
  int64_t i = 0;
  for (; i + kLanes < count; i += kLanes, src += kStride * kLanes) {
    F32 part[kStride];
#pragma GCC unroll 4
    for (int j = 0; j < kStride; ++j) part[j] = load(src + j * kLanes);
    if constexpr (kStride == 2) {
      store(dst + i, even(part[0], part[1]));
    } else {
      store(dst + i, even(even(part[0], part[1]), even(part[kStride - 2], part[kStride - 1])));
    }
  }
  store_n(dst + i, load_every<kStride>(src, count - i), count - i);
}

void take_every(const float* src, int64_t stride, int64_t count, float* dst) {
  if (count <= 0) return;
  switch (stride) {
    case 1:
      memcpy(dst, src, (size_t)count * sizeof(float));
      break;
    case 2:
      take_every_fixed<2>(src, count, dst);
      break;
    case 4:
      take_every_fixed<4>(src, count, dst);
      break;
    default:
      for (int64_t i = 0; i < count; ++i) dst[i] = src[i * stride];
  }
}

// The lane of row `row` that goes to lane i of vector j of some rows interleaved; -1: another row's does.
template <int kRows>
struct Turns {
  int32_t lane[kRows][kRows][kLanes];  // by vector and row
};

template <int kRows>
constexpr Turns<kRows> make_turns() {
  Turns<kRows> t = {};
  for (int j = 0; j < kRows; ++j) {
    for (int row = 0; row < kRows; ++row) {
      for (int i = 0; i < kLanes; ++i) {
        const int at = j * kLanes + i;
        t.lane[j][row][i] = at % kRows == row ? at / kRows : -1;
      }
    }
  }
  return t;
}

template <int kRows>
constexpr Turns<kRows> kTurns = make_turns<kRows>();

// Rows in place to vectors of their lanes in turn: of an even number of rows the even ones and the odd ones, then both.
template <int kRows>
NEO_INLINE void take_turns(F32 (&v)[kRows]) {
  if constexpr (kRows > 2 && kRows % 2 == 0) {
    F32 even_rows[kRows / 2], odd_rows[kRows / 2];
#pragma GCC unroll 4
    for (int i = 0; i < kRows / 2; ++i) {
      even_rows[i] = v[2 * i];
      odd_rows[i] = v[2 * i + 1];
    }
    take_turns<kRows / 2>(even_rows);
    take_turns<kRows / 2>(odd_rows);
#pragma GCC unroll 4
    for (int i = 0; i < kRows / 2; ++i) {
      F32 pair[2] = {even_rows[i], odd_rows[i]};
      take_turns<2>(pair);
      v[2 * i] = pair[0];
      v[2 * i + 1] = pair[1];
    }
  } else {
    F32 rows[kRows];
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) rows[row] = v[row];
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) {
      F32 x = zero();
#pragma GCC unroll 8
      for (int row = 0; row < kRows; ++row) x = pick(x, rows[row], load_i32(kTurns<kRows>.lane[j][row]));
      v[j] = x;
    }
  }
}

NEO_INLINE int64_t at_most(int64_t n, int64_t most) {
  return n < most ? n : most;
}

// The addend and the clamp that interleave() applies to the rows.
struct InterleaveEnd {
  const float* residual;  // or null
  F32 low, high;
  float* dst;

  NEO_INLINE void put(int64_t i, F32 x) const {
    if (residual) x = x + load(residual + i);
    store(dst + i, clamp_nan(x, low, high));
  }
  NEO_INLINE void put_n(int64_t i, F32 x, int64_t n) const {
    if (residual) x = x + load_n(residual + i, n);
    store_n(dst + i, clamp_nan(x, low, high), n);
  }
};

template <int kRows>
NEO_INLINE void interleave_line(const float* src, int64_t src_row, int64_t count, const InterleaveEnd& end) {
  int64_t i = 0;
  for (; i + kRows * kLanes <= count; i += kRows * kLanes, src += kLanes) {
    F32 v[kRows];
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) v[row] = load(src + row * src_row);
    take_turns<kRows>(v);
#pragma GCC unroll 8
    for (int j = 0; j < kRows; ++j) end.put(i + j * kLanes, v[j]);
  }
  if (i == count) return;
  F32 v[kRows];
#pragma GCC unroll 8
  for (int row = 0; row < kRows; ++row) v[row] = load_n(src + row * src_row, (count - i - row + kRows - 1) / kRows);
  take_turns<kRows>(v);
  for (int j = 0; j < kRows && i < count; ++j, i += kLanes) end.put_n(i, v[j], at_most(count - i, kLanes));
}

// The parts of line `line`.
NEO_INLINE InterleaveEnd end_of(const Interleaving& t, int64_t line) {
  const float* residual = t.residual ? t.residual + line * t.dst_line : nullptr;
  return {residual, broadcast(t.lo), broadcast(t.hi), t.dst + line * t.dst_line};
}

template <int kRows>
void interleave_rows(const Interleaving& t) {
  for (int64_t line = 0; line < t.lines; ++line)
    interleave_line<kRows>(t.src + line * t.src_line, t.src_row, t.count, end_of(t, line));
}

void interleave_any(const Interleaving& t) {
  for (int64_t line = 0; line < t.lines; ++line) {
    const float* src = t.src + line * t.src_line;
    const InterleaveEnd end = end_of(t, line);
    for (int64_t first = 0; first < t.rows; ++first, src += t.src_row) {
      for (int64_t i = first, at = 0; i < t.count; i += t.rows, ++at) {
        const float x = end.residual ? src[at] + end.residual[i] : src[at];
        end.dst[i] = x < t.lo ? t.lo : (x > t.hi ? t.hi : x);
      }
    }
  }
}

void interleave(const Interleaving& t) {
  switch (t.rows) {
    case 1:
      return interleave_rows<1>(t);
    case 2:
      return interleave_rows<2>(t);
    case 3:
      return interleave_rows<3>(t);
    case 4:
      return interleave_rows<4>(t);
    case 5:
      return interleave_rows<5>(t);
    case 8:
      return interleave_rows<8>(t);
    default:
      return interleave_any(t);
  }
}

void gather_runs(const float* src, const ShortRun* runs, int64_t count, float* dst) {
  for (const ShortRun* run = runs; run < runs + count; ++run) {
    for (int64_t i = 0; i < run->length; i += kLanes) store(dst + run->to + i, load(src + run->from + i));
  }
}

void gather_places(const float* src, const int32_t* places, int64_t count, float* dst) {
  for (int64_t i = 0; i < count; i += kLanes) store(dst + i, gather(src, load_i32(places + i)));
}

void fill(float value, int64_t count, float* dst) {
  const F32 x = broadcast(value);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(dst + i, x);
  if (i < count) store_n(dst + i, x, count - i);
}

constexpr RowKernels kKernels = {gather_runs, gather_places, take_every, interleave, fill};

}  // namespace

const RowKernels& row_kernels() {
  return kKernels;
}

}  // namespace neo::NEO_ISA
