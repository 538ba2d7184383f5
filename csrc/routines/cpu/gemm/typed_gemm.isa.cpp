#include "routines/cpu/gemm/typed_gemm.h"

#include "base/span.h"
#include "routines/cpu/microkernel/short_product.h"

// Sums of floats take their products unrounded where the instruction set has that.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast")
#endif

namespace neo::NEO_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kVectors = 3;  // of columns of a tile
constexpr int kRows = 4;

template <class T>
struct Lanes {
  typedef T Vector __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  static constexpr int64_t kCount = kBytes / (int64_t)sizeof(T);
  static constexpr int64_t kColumns = kVectors * kCount;
};

struct Batch {
  int64_t a = 0, b = 0, c = 0, residual = 0;

  static NEO_INLINE Batch of(const TypedGemmArgs& args, int64_t index) {
    Batch at;
    for (int i = kGemmBatchAxes - 1; i >= 0; --i) {
      const int64_t position = index % args.shape.batch[i];
      index /= args.shape.batch[i];
      at.a += position * args.a_batch[i];
      at.b += position * args.b_batch[i];
      at.c += position * args.c_batch[i];
      at.residual += position * args.residual_batch[i];
    }
    return at;
  }
};

// Rows of A times columns of B, whose rows are `b_row` elements apart.
template <class T, int R>
NEO_INLINE void multiply_tile(const T* a, int64_t a_row, int64_t a_column, const T* b, int64_t b_row, int64_t k,
                              T (*sums)[Lanes<T>::kColumns]) {
  using V = typename Lanes<T>::Vector;
  V acc[R][kVectors] = {};
  for (int64_t i = 0; i < k; ++i) {
    V x[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) x[v] = *(const V*)(b + i * b_row + v * Lanes<T>::kCount);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const T factor = a[r * a_row + i * a_column];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[r][v] += factor * x[v];
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) *(V*)(sums[r] + v * Lanes<T>::kCount) = acc[r][v];
  }
}

// The sum of products of two rows.
template <class T>
NEO_INLINE T dot(const T* a, const T* b, int64_t k) {
  using V = typename Lanes<T>::Vector;
  constexpr int64_t kCount = Lanes<T>::kCount;
  constexpr int kParts = 4;
  V acc[kParts] = {};
  int64_t i = 0;
  for (; i + kParts * kCount <= k; i += kParts * kCount) {
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) acc[p] += *(const V*)(a + i + p * kCount) * *(const V*)(b + i + p * kCount);
  }
  for (; i + kCount <= k; i += kCount) acc[0] += *(const V*)(a + i) * *(const V*)(b + i);
  T lanes[kCount];
  *(V*)lanes = (acc[0] + acc[1]) + (acc[2] + acc[3]);
  for (int64_t width = kCount / 2; width > 0; width /= 2) {
    for (int64_t l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  }
  for (; i < k; ++i) lanes[0] += a[i] * b[i];
  return lanes[0];
}

// The sums of products of some rows and one.
template <class T>
NEO_INLINE void multiply_rows(const T* a, int64_t a_row, const T* b, int64_t k, int64_t rows, T* sums) {
  if constexpr (sizeof(T) == 4 && (T)0.5f != 0) {
    multiply_column(a, a_row, b, k, rows, sums);
  } else {
    for (int64_t r = 0; r < rows; ++r) sums[r] = dot(a + r * a_row, b, k);
  }
}

template <class T>
NEO_INLINE void finish(const TypedGemmArgs& args, const T* sums, const T* residual, int64_t columns, T* c) {
  if (args.alpha == 1.0 && !residual) {
    using V = typename Lanes<T>::Vector;
    int64_t j = 0;
    for (; j + Lanes<T>::kCount <= columns; j += Lanes<T>::kCount) *(V*)(c + j) = *(const V*)(sums + j);
    for (; j < columns; ++j) c[j] = sums[j];
    return;
  }
  for (int64_t j = 0; j < columns; ++j) {
    T value = sums[j];
    if (args.lane >= Lane::F32) value = (T)((double)value * args.alpha);
    if (residual) {
      T added = residual[j * args.residual_column];
      if (args.lane >= Lane::F32) added = (T)((double)added * args.beta);
      value = value + added;
    }
    c[j] = value;
  }
}

template <class T>
__attribute__((noinline)) void run_typed(const TypedGemmArgs& args, int64_t begin, int64_t end, void* workspace) {
  constexpr int64_t kColumns = Lanes<T>::kColumns;
  const GemmShape& s = args.shape;
  const int64_t chunks = (s.m + kTypedGemmRows - 1) / kTypedGemmRows, panels = (s.n + kColumns - 1) / kColumns;
  for (int64_t task = begin; task < end; ++task) {
    const Batch at = Batch::of(args, task / (chunks * panels));
    const int64_t first_row = task % chunks * kTypedGemmRows, column = task / chunks % panels * kColumns;
    const int64_t rows = s.m - first_row < kTypedGemmRows ? s.m - first_row : kTypedGemmRows;
    const int64_t columns = s.n - column < kColumns ? s.n - column : kColumns;
    const T* b = (const T*)args.b + at.b + column * args.b_column;
    int64_t b_row = args.b_row;
    const auto finish_row = [&](int64_t row, const T* sums) NEO_LAMBDA {
      const T* residual = args.residual ? (const T*)args.residual + at.residual + row * args.residual_row +
                                              column * args.residual_column
                                        : nullptr;
      finish(args, sums, residual, columns, (T*)args.c + at.c + row * args.c_row + column);
    };
    if (columns <= kDotColumns && args.a_column == 1) {
      T* copy = (T*)workspace;
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t i = 0; i < s.k; ++i) copy[j * s.k + i] = b[i * args.b_row + j * args.b_column];
      }
      const T* a = (const T*)args.a + at.a + first_row * args.a_row;
      T sums[kDotColumns][kTypedGemmRows];
      for (int64_t j = 0; j < columns; ++j) multiply_rows(a, args.a_row, copy + j * s.k, s.k, rows, sums[j]);
      for (int64_t r = 0; r < rows; ++r) {
        T line[kDotColumns];
        for (int64_t j = 0; j < columns; ++j) line[j] = sums[j][r];
        finish_row(first_row + r, line);
      }
      continue;
    }
    if (args.b_column != 1 || columns < kColumns) {
      T* copy = (T*)workspace;
      for (int64_t i = 0; i < s.k; ++i) {
        for (int64_t j = 0; j < kColumns; ++j)
          copy[i * kColumns + j] = j < columns ? b[i * args.b_row + j * args.b_column] : (T)0;
      }
      b = copy;
      b_row = kColumns;
    }
    for (int64_t r = 0; r < rows; r += kRows) {
      const T* a = (const T*)args.a + at.a + (first_row + r) * args.a_row;
      const int64_t count = rows - r < kRows ? rows - r : kRows;
      alignas(64) T sums[kRows][kColumns];
      switch (count) {
        case 1:
          multiply_tile<T, 1>(a, args.a_row, args.a_column, b, b_row, s.k, sums);
          break;
        case 2:
          multiply_tile<T, 2>(a, args.a_row, args.a_column, b, b_row, s.k, sums);
          break;
        case 3:
          multiply_tile<T, 3>(a, args.a_row, args.a_column, b, b_row, s.k, sums);
          break;
        default:
          multiply_tile<T, kRows>(a, args.a_row, args.a_column, b, b_row, s.k, sums);
      }
      for (int64_t i = 0; i < count; ++i) finish_row(first_row + r + i, sums[i]);
    }
  }
}

}  // namespace

int64_t typed_gemm_columns(Lane lane) {
  return kVectors * kBytes / lane_bytes(lane);
}

void typed_gemm_tasks(const TypedGemmArgs& args, int64_t begin, int64_t end, void* workspace) {
  switch (args.lane) {
    case Lane::F32:
      return run_typed<float>(args, begin, end, workspace);
    case Lane::F64:
      return run_typed<double>(args, begin, end, workspace);
    case Lane::U32:
      return run_typed<uint32_t>(args, begin, end, workspace);
    default:
      return run_typed<uint64_t>(args, begin, end, workspace);
  }
}

}  // namespace neo::NEO_ISA
