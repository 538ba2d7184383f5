#include "routines/cpu/resize/typed_resize.h"

#include "routines/cpu/eltwise/typed_loops.h"

namespace neo::NEO_ISA {
namespace {

// An element without weight does not count, whatever it is.
template <class C>
NEO_INLINE C add_weighted(C sum, C x, C w) {
  return w == (C)0 ? sum : sum + w * x;
}

// The first tap of some elements, to which others are added, or another one.
template <class C>
NEO_KERNEL add_tap(bool is_first, C start, const C* x, C w, int64_t n, C* y) {
  if (is_first) {
    for (int64_t i = 0; i < n; ++i) y[i] = add_weighted(start, x[i], w);
  } else if (w != (C)0) {
    for (int64_t i = 0; i < n; ++i) y[i] += w * x[i];
  }
}

// The number of taps is known when compiling.
template <int taps, class C>
NEO_KERNEL mix_few(const MixTable& m, const C* x, C* y) {
  const int64_t n = m.outputs;
  for (int64_t o = 0; o < n; ++o) {
    C sum = (C)0;
#pragma GCC unroll 4
    for (int t = 0; t < taps; ++t) sum = add_weighted(sum, x[m.position[t * n + o]], (C)m.weight[t * n + o]);
    y[o] = sum;
  }
}

template <class C>
NEO_KERNEL mix_elements(const MixTable& m, const C* x, C* y) {
  const int64_t n = m.outputs;
  if (m.taps == 2 && !m.start) return mix_few<2>(m, x, y);
  if (m.taps == 4 && !m.start) return mix_few<4>(m, x, y);
  for (int64_t o = 0; o < n; ++o) y[o] = m.start ? (C)m.start[o] : (C)0;
  for (int64_t t = 0; t < m.taps; ++t) {
    const int32_t* at = m.position + t * n;
    const double* w = m.weight + t * n;
    for (int64_t o = 0; o < n; ++o) y[o] = add_weighted(y[o], x[at[o]], (C)w[o]);
  }
}

template <class T>
NEO_KERNEL widen(const T* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = (double)x[i];
}

// Half to even by a sum beside which there is no place for a fraction; numbers beyond 2^51 are whole.
NEO_INLINE double rounded(double x) {
  constexpr double kWhole = 0x1.8p52;
  const double near = (x + kWhole) - kWhole;
  return x > -0x1p51 && x < 0x1p51 ? near : x;
}

template <class T>
NEO_KERNEL narrow(const double* x, T* y, int64_t n) {
  constexpr bool is_signed = (T)-1 < (T)0;
  constexpr int kBits = 8 * (int)sizeof(T) - (is_signed ? 1 : 0);
  constexpr T most = (T)(((((uint64_t)1 << (kBits - 1)) - 1) << 1) | 1);
  constexpr T least = is_signed ? (T)(-most - 1) : (T)0;
  for (int64_t i = 0; i < n; ++i) {
    const double r = rounded(x[i]);
    if constexpr (sizeof(T) < 4) {
      const double low = r > (double)least ? r : (double)least;
      y[i] = (T)(int32_t)(low < (double)most ? low : (double)most);
    } else {
      y[i] = r <= (double)least ? least : r >= (double)most ? most : (T)(int64_t)r;
    }
  }
}

template <class F>
NEO_INLINE void with_integer(Lane lane, F&& f) {
  switch (lane) {
    case Lane::I8:
      return f(Type<int8_t>());
    case Lane::U8:
      return f(Type<uint8_t>());
    case Lane::I32:
      return f(Type<int32_t>());
    default:
      return f(Type<int64_t>());
  }
}

// Elements as numbers to compute with: themselves, or `n` of them in a buffer.
template <class C>
NEO_INLINE const C* numbers(Lane lane, const void* x, int64_t at, int64_t n, C* buffer) {
  if constexpr (sizeof(C) == 8) {
    if (lane != Lane::F64) {
      with_integer(lane, [&]<class T>(Type<T>) NEO_LAMBDA { widen((const T*)x + at, buffer, n); });
      return buffer;
    }
  }
  return (const C*)x + at;
}

// `n` elements of output `o`, whose taps are stretches of elements of x, `stride` apart.
template <class C>
NEO_KERNEL mix_stretches(const MixTable& m, int64_t o, Lane lane, const void* x, int64_t at, int64_t stride, int64_t n,
                         C* y) {
  constexpr int64_t kChunk = 256;
  C buffer[kChunk];
  const C start = m.start ? (C)m.start[o] : (C)0;
  for (int64_t first = 0; first < n; first += kChunk) {
    const int64_t count = n - first < kChunk ? n - first : kChunk;
    for (int64_t t = 0; t < m.taps; ++t) {
      const C w = (C)m.weight[t * m.outputs + o];
      if (t > 0 && w == (C)0) continue;
      const C* from = numbers(lane, x, at + m.position[t * m.outputs + o] * stride + first, count, buffer);
      add_tap(t == 0, start, from, w, count, y + first);
    }
  }
}

// `n` elements of a mixed input row, from `first` on: in the source itself where one is taken as it is.
template <class C>
NEO_INLINE const C* mixed_row(const RowMix& m, int64_t line, int64_t first, int64_t n, C* mixed) {
  const int64_t o = line % m.row.outputs, size = m.input_row();
  const int64_t at = line / m.row.outputs * m.input_rows * size + first;
  if (m.row.taps == 0) return numbers(m.from, m.src, at + o * size, n, mixed);
  mix_stretches(m.row, o, m.from, m.src, at, size, n, mixed);
  return mixed;
}

template <class C>
NEO_INLINE void mix_columns(const RowMix& m, const C* row, C* y) {
  constexpr Lane kLane = sizeof(C) == 8 ? Lane::F64 : Lane::F32;
  if (m.inner == 1) return mix_elements(m.column, row, y);
  for (int64_t o = 0; o < m.column.outputs; ++o)
    mix_stretches(m.column, o, kLane, row, 0, m.inner, m.inner, y + o * m.inner);
}

template <class C>
NEO_INLINE void mix(const RowMix& m, int64_t begin, int64_t end) {
  const bool narrows = m.to != Lane::F32 && m.to != Lane::F64, keeps_columns = m.column.taps == 0;
  const int64_t parts = m.parts(), size = m.output_row();
  C* const mixed = (C*)m.workspace;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t line = task / parts, first = task % parts * m.part, at = line * size + first;
    const int64_t left = size - first, n = keeps_columns && m.part < left ? m.part : left;
    C* y = !narrows ? (C*)m.dst + at : keeps_columns ? mixed : mixed + m.input_row();
    const C* row = mixed_row(m, line, first, keeps_columns ? n : m.input_row(), keeps_columns ? y : mixed);
    if (!keeps_columns) {
      mix_columns(m, row, y);
      row = y;
    }
    if constexpr (sizeof(C) == 8) {
      if (narrows) with_integer(m.to, [&]<class T>(Type<T>) NEO_LAMBDA { narrow(row, (T*)m.dst + at, n); });
    }
  }
}

template <class T>
NEO_KERNEL repeat(const T* __restrict from, T* __restrict to, int64_t count, int64_t times) {
  if (times == 2) {
    for (int64_t i = 0; i < count; ++i) to[2 * i] = to[2 * i + 1] = from[i];
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t t = 0; t < times; ++t) *to++ = from[i];
  }
}

}  // namespace

// Elements of 1 or 4 bytes.
void repeat_elements(const void* from, void* to, int64_t width, int64_t count, int64_t times) {
  switch (width) {
    case 1:
      return repeat((const uint8_t*)from, (uint8_t*)to, count, times);
    default:
      return repeat((const uint32_t*)from, (uint32_t*)to, count, times);
  }
}

void mix_tasks(const RowMix& m, int64_t begin, int64_t end) {
  m.from == Lane::F32 ? mix<float>(m, begin, end) : mix<double>(m, begin, end);
}

}  // namespace neo::NEO_ISA
