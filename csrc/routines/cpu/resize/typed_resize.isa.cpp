#include "routines/cpu/resize/typed_resize.h"

#include "routines/cpu/eltwise/typed_loops.h"

namespace neo::NEO_ISA {
namespace {

// An element without weight does not count, whatever it is.
template <class C>
NEO_INLINE C add_weighted(C sum, C x, C w) {
  return w == (C)0 ? sum : sum + w * x;
}

template <class C>
NEO_KERNEL mix_row(const AxisMix& m, int64_t outer, int64_t output) {
  const C* plane = (const C*)m.src + outer * m.input * m.inner;
  C* y = (C*)m.dst + (outer * m.output + output) * m.inner;
  for (int64_t t = 0; t < m.taps; ++t) {
    const C* x = plane + m.position[t * m.output + output] * m.inner;
    const C w = (C)m.weight[t * m.output + output];
    if (t == 0) {
      for (int64_t i = 0; i < m.inner; ++i) y[i] = add_weighted((C)0, x[i], w);
    } else if (w != (C)0) {
      for (int64_t i = 0; i < m.inner; ++i) y[i] += w * x[i];
    }
  }
}

template <class C>
NEO_KERNEL mix_elements(const AxisMix& m, int64_t outer) {
  const C* x = (const C*)m.src + outer * m.input;
  C* y = (C*)m.dst + outer * m.output;
  const int64_t n = m.output;
  if (m.taps == 2) {
    const int32_t *a = m.position, *b = a + n;
    const double *v = m.weight, *w = v + n;
    for (int64_t o = 0; o < n; ++o) y[o] = add_weighted(add_weighted((C)0, x[a[o]], (C)v[o]), x[b[o]], (C)w[o]);
    return;
  }
  for (int64_t t = 0; t < m.taps; ++t) {
    const int32_t* at = m.position + t * n;
    const double* w = m.weight + t * n;
    if (t == 0) {
      for (int64_t o = 0; o < n; ++o) y[o] = add_weighted((C)0, x[at[o]], (C)w[o]);
    } else {
      for (int64_t o = 0; o < n; ++o) y[o] = add_weighted(y[o], x[at[o]], (C)w[o]);
    }
  }
}

template <class C>
NEO_INLINE void mix(const AxisMix& m, int64_t begin, int64_t end) {
  for (int64_t task = begin; task < end; ++task) {
    m.inner == 1 ? mix_elements<C>(m, task) : mix_row<C>(m, task / m.output, task % m.output);
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

}  // namespace

void mix_tasks(const AxisMix& m, int64_t begin, int64_t end) {
  m.wide ? mix<double>(m, begin, end) : mix<float>(m, begin, end);
}

// Elements [begin, end).
void convert_resized(const ConvertArgs& args, int64_t begin, int64_t end) {
  const auto convert = [&]<class T>(Type<T>) NEO_LAMBDA {
    if (args.to_lane) {
      narrow((const double*)args.src + begin, (T*)args.dst + begin, end - begin);
    } else {
      widen((const T*)args.src + begin, (double*)args.dst + begin, end - begin);
    }
  };
  switch (args.lane) {
    case Lane::I8:
      return convert(Type<int8_t>());
    case Lane::U8:
      return convert(Type<uint8_t>());
    case Lane::I32:
      return convert(Type<int32_t>());
    default:
      return convert(Type<int64_t>());
  }
}

}  // namespace neo::NEO_ISA
