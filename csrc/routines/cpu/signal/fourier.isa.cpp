#include "routines/cpu/signal/fourier.h"

#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

// A number for each line.
struct Block {
  double* re;
  double* im;

  NEO_INLINE Block at(int64_t i) const { return {re + i * kFourierLines, im + i * kFourierLines}; }
};

struct Complex {
  double re, im;
};
NEO_INLINE Complex complex_at(const double* table, int64_t i) {
  return {table[2 * i], table[2 * i + 1]};
}

// `n` numbers (a whole number of blocks) of the radix-2 and radix-4 transforms, then the twiddle factors.
NEO_INLINE void butterfly2(Block a, Block b, Block y0, Block y1, Complex w, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const double re = a.re[i] - b.re[i], im = a.im[i] - b.im[i];
    y0.re[i] = a.re[i] + b.re[i];
    y0.im[i] = a.im[i] + b.im[i];
    y1.re[i] = re * w.re - im * w.im;
    y1.im[i] = re * w.im + im * w.re;
  }
}

NEO_INLINE void butterfly4(const Block* x, const Block* y, const Complex* w, int64_t n) {
  const Block a = x[0], b = x[1], c = x[2], d = x[3], e = y[0], f = y[1], g = y[2], h = y[3];
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const double sum_re = a.re[i] + c.re[i], sum_im = a.im[i] + c.im[i];
    const double difference_re = a.re[i] - c.re[i], difference_im = a.im[i] - c.im[i];
    const double other_re = b.re[i] + d.re[i], other_im = b.im[i] + d.im[i];
    // The difference of b and d by -i.
    const double turned_re = b.im[i] - d.im[i], turned_im = d.re[i] - b.re[i];
    const double f_re = difference_re + turned_re, f_im = difference_im + turned_im;
    const double g_re = sum_re - other_re, g_im = sum_im - other_im;
    const double h_re = difference_re - turned_re, h_im = difference_im - turned_im;
    e.re[i] = sum_re + other_re;
    e.im[i] = sum_im + other_im;
    f.re[i] = f_re * w[0].re - f_im * w[0].im;
    f.im[i] = f_re * w[0].im + f_im * w[0].re;
    g.re[i] = g_re * w[1].re - g_im * w[1].im;
    g.im[i] = g_re * w[1].im + g_im * w[1].re;
    h.re[i] = h_re * w[2].re - h_im * w[2].im;
    h.im[i] = h_re * w[2].im + h_im * w[2].re;
  }
}

// Any radix: the sums of a small transform as they are written.
void butterfly(const Block* x, const Block* y, const Complex* w, int64_t radix, const double* roots, int64_t n) {
  for (int64_t first = 0; first < n; first += kFourierLines) {
    for (int64_t u = 0; u < radix; ++u) {
      double re[kFourierLines] = {}, im[kFourierLines] = {};
      for (int64_t t = 0, power = 0; t < radix; ++t) {
        const Complex root = complex_at(roots, power);
        const double *a = x[t].re + first, *b = x[t].im + first;
        for (int i = 0; i < kFourierLines; ++i) {
          re[i] += a[i] * root.re - b[i] * root.im;
          im[i] += a[i] * root.im + b[i] * root.re;
        }
        power = power + u < radix ? power + u : power + u - radix;
      }
      const Complex factor = u == 0 ? Complex{1, 0} : w[u - 1];
      for (int i = 0; i < kFourierLines; ++i) {
        y[u].re[first + i] = re[i] * factor.re - im[i] * factor.im;
        y[u].im[first + i] = re[i] * factor.im + im[i] * factor.re;
      }
    }
  }
}

// Transforms the block in `x`, with `y` as room; the result is in the one that is returned.
__attribute__((noinline)) Block transform(const FourierStages& s, Block x, Block y) {
  int64_t n = s.size, stride = 1;
  for (int64_t stage = 0; stage < s.count; ++stage) {
    const int64_t radix = s.radix[stage], m = n / radix;
    const double* twiddle = s.table + s.twiddle[stage];
    for (int64_t p = 0; p < m; ++p) {
      Block from[kFourierMaxRadix], to[kFourierMaxRadix];
      Complex w[kFourierMaxRadix];
      for (int64_t t = 0; t < radix; ++t) {
        from[t] = x.at(stride * (p + t * m));
        to[t] = y.at(stride * (radix * p + t));
        if (t > 0) w[t - 1] = complex_at(twiddle, p * (radix - 1) + t - 1);
      }
      const int64_t numbers = stride * kFourierLines;
      if (radix == 4) {
        butterfly4(from, to, w, numbers);
      } else if (radix == 2) {
        butterfly2(from[0], from[1], to[0], to[1], w[0], numbers);
      } else {
        butterfly(from, to, w, radix, s.table + s.roots[stage], numbers);
      }
    }
    n = m;
    stride *= radix;
    const Block swapped = x;
    x = y;
    y = swapped;
  }
  return x;
}

// Every number by one of a table; `sign` -1: the result's conjugate.
NEO_INLINE void multiply(Block x, const double* table, int64_t count, double sign) {
  for (int64_t k = 0; k < count; ++k) {
    const Complex w = complex_at(table, k);
    const Block at = x.at(k);
    for (int i = 0; i < kFourierLines; ++i) {
      const double re = at.re[i], im = at.im[i];
      at.re[i] = re * w.re - im * w.im;
      at.im[i] = sign * (re * w.im + im * w.re);
    }
  }
}

NEO_INLINE void clear(Block x, int64_t begin, int64_t end) {
  for (int64_t i = begin * kFourierLines; i < end * kFourierLines; ++i) x.re[i] = x.im[i] = 0;
}

// A convolution with a chirp, by transforms of a size of small factors.
NEO_INLINE Block transform_by_chirp(const FourierArgs& args, Block x, Block y) {
  const FourierStages& s = args.stages;
  const double* chirp = s.table + args.chirp;
  multiply(x, chirp, args.size, 1);
  clear(x, args.size, s.size);
  Block spectrum = transform(s, x, y);
  // The transform back is that of the conjugate, and its conjugate.
  multiply(spectrum, s.table + args.spectrum, s.size, -1);
  const Block sums = transform(s, spectrum, spectrum.re == x.re ? y : x);
  const double scale = 1.0 / (double)s.size;
  for (int64_t i = 0; i < args.size * kFourierLines; ++i) {
    sums.re[i] *= scale;
    sums.im[i] *= -scale;
  }
  multiply(sums, chirp, args.size, 1);
  return sums;
}

template <class T>
NEO_INLINE void load_line(const FourierArgs& args, int64_t line, int64_t lane, double sign, Block x) {
  const T* src = (const T*)args.src + line / args.inner * args.from.outer + line % args.inner * args.from.inner;
  const T* window = (const T*)args.window;
  for (int64_t t = 0; t < args.given; ++t) {
    const T* number = src + t * args.from.step;
    const double factor = window ? (double)window[t] : 1.0;
    x.re[t * kFourierLines + lane] = factor * (double)number[0];
    x.im[t * kFourierLines + lane] = args.from.parts == 2 ? sign * factor * (double)number[1] : 0.0;
  }
  for (int64_t t = args.size / 2 + 1; args.mirrors && t < args.size; ++t) {
    x.re[t * kFourierLines + lane] = x.re[(args.size - t) * kFourierLines + lane];
    x.im[t * kFourierLines + lane] = -x.im[(args.size - t) * kFourierLines + lane];
  }
}

template <class T>
NEO_INLINE void store_line(const FourierArgs& args, int64_t line, int64_t lane, double sign, Block y) {
  T* dst = (T*)args.dst + line / args.inner * args.to.outer + line % args.inner * args.to.inner;
  const double scale = args.inverse ? 1.0 / (double)args.size : 1.0;
  for (int64_t k = 0; k < args.bins; ++k) {
    dst[k * args.to.step] = (T)(scale * y.re[k * kFourierLines + lane]);
    if (args.to.parts == 2) dst[k * args.to.step + 1] = (T)(sign * scale * y.im[k * kFourierLines + lane]);
  }
}

template <class T>
NEO_INLINE void fourier(const FourierArgs& args, int64_t begin, int64_t end) {
  const int64_t block = args.stages.size * kFourierLines;
  const Block x = {args.workspace, args.workspace + block}, y = {x.re + 2 * block, x.im + 2 * block};
  const double sign = args.inverse ? -1.0 : 1.0;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t first = task * kFourierLines;
    const int64_t lines = args.lines - first < kFourierLines ? args.lines - first : kFourierLines;
    clear(x, lines < kFourierLines ? 0 : args.given, args.size);
    for (int64_t lane = 0; lane < lines; ++lane) load_line<T>(args, first + lane, lane, sign, x);
    const Block result = args.bluestein ? transform_by_chirp(args, x, y) : transform(args.stages, x, y);
    for (int64_t lane = 0; lane < lines; ++lane) store_line<T>(args, first + lane, lane, sign, result);
  }
}

}  // namespace

void fourier_tasks(const FourierArgs& args, int64_t begin, int64_t end) {
  args.wide ? fourier<double>(args, begin, end) : fourier<float>(args, begin, end);
}

}  // namespace neo::NEO_ISA
