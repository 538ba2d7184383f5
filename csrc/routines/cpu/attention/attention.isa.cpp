#include "routines/cpu/attention/attention.h"

#include <math.h>

#include "simd/math.h"
#include "simd/vec.h"

namespace neo::NEO_ISA {
namespace {

NEO_INLINE Mask lanes_below(int64_t n) {
  return lt(to_f32(iota_i32()), broadcast((float)n));
}

// Scores as they are: full() of whole vectors, part() of the n keys that are left.
struct Kept {
  static constexpr bool kChanges = false;
  NEO_INLINE F32 full(F32 score, int64_t) const { return score; }
  NEO_INLINE F32 part(F32 score, int64_t, int64_t) const { return score; }
};

struct Added {
  static constexpr bool kChanges = true;
  const float* added;
  F32 number;
  NEO_INLINE F32 full(F32 score, int64_t i) const { return fma(load(added + i), number, score); }
  NEO_INLINE F32 part(F32 score, int64_t i, int64_t n) const { return fma(load_n(added + i, n), number, score); }
};

struct Chosen {
  static constexpr bool kChanges = true;
  const uint8_t* condition;
  bool fills_where;
  F32 number;
  NEO_INLINE F32 chosen(I32 holds, F32 score) const {
    const Mask fails = eq(holds, broadcast_i32(0));
    return fills_where ? select(fails, score, number) : select(fails, number, score);
  }
  NEO_INLINE F32 full(F32 score, int64_t i) const { return chosen(load_u8(condition + i), score); }
  NEO_INLINE F32 part(F32 score, int64_t i, int64_t n) const { return chosen(load_u8_n(condition + i, n), score); }
};

// The maximum of a row's scores, which it changes; those behind the keys become -inf. NaN does not count.
template <class Change>
NEO_INLINE F32 change_row(float* scores, int64_t keys, Change change) {
  F32 top = broadcast(-INFINITY), other = top;
  int64_t i = 0;
  for (; i + 2 * kLanes <= keys; i += 2 * kLanes) {
    const F32 a = change.full(load(scores + i), i), b = change.full(load(scores + i + kLanes), i + kLanes);
    if constexpr (Change::kChanges) {
      store(scores + i, a);
      store(scores + i + kLanes, b);
    }
    top = max(a, top);
    other = max(b, other);
  }
  if (i + kLanes <= keys) {
    const F32 a = change.full(load(scores + i), i);
    if constexpr (Change::kChanges) store(scores + i, a);
    top = max(a, top);
    i += kLanes;
  }
  if (i < keys) {
    const int64_t n = keys - i;
    const F32 a = select(lanes_below(n), change.part(load(scores + i), i, n), broadcast(-INFINITY));
    store(scores + i, a);
    other = max(a, other);
  }
  return max(top, other);
}

F32 change_row_by(const AttentionTerm& term, int64_t row, float* scores, int64_t keys) {
  const int64_t at = row * term.strides.row;
  if (term.added) return change_row(scores, keys, Added{term.added + at, broadcast(term.number)});
  return change_row(scores, keys, Chosen{term.condition + at, term.fills_where, broadcast(term.number)});
}

// Scores that are NaN do not count for the maximum, but make the sum NaN.
void exponentials(const ScoreBlock& block) {
  for (int64_t r = 0; r < block.rows; ++r) {
    float* scores = block.scores + r * block.step;
    F32 tops = block.term_count == 0 ? change_row(scores, block.keys, Kept()) : zero();
    for (int t = 0; t < block.term_count; ++t) tops = change_row_by(block.terms[t], r, scores, block.keys);
    const float found = reduce_max(tops);
    const float before = block.is_first ? -INFINITY : block.top[r];
    const float now = found > before ? found : before;
    // Where all scores were -inf, their exponentials are zero, and so is what they are multiplied by.
    const F32 top = broadcast(now == -INFINITY ? 0.0f : now);
    F32 sum = zero(), other = zero();
    int64_t i = 0;
    for (; i + 2 * kLanes <= block.step; i += 2 * kLanes) {
      const F32 a = exp_falling(load(scores + i) - top), b = exp_falling(load(scores + i + kLanes) - top);
      store(scores + i, a);
      store(scores + i + kLanes, b);
      sum = sum + a;
      other = other + b;
    }
    if (i < block.step) {
      const F32 a = exp_falling(load(scores + i) - top);
      store(scores + i, a);
      sum = sum + a;
    }
    block.top[r] = now;
    float total = reduce_add(sum + other);
    if (!block.is_first) {
      store_n(block.correction + r, exp_falling(broadcast(before) - top), 1);
      total += block.sum[r] * block.correction[r];
    }
    block.sum[r] = total;
  }
}

void dots(const ScoreRows& s) {
  for (int64_t j = 0; j < s.keys; j += kLanes) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const float* q = s.q + r * s.q_step;
      F32 sums[kLanes];
#pragma GCC unroll 16
      for (int t = 0; t < kLanes; ++t) {
        // Lanes behind the keys repeat the last one.
        const float* k = s.k + (j + t < s.keys ? j + t : s.keys - 1) * s.k_step;
        F32 sum = zero();
        int64_t i = 0;
        for (; i + kLanes <= s.size; i += kLanes) sum = fma(load(q + i), load(k + i), sum);
        if (i < s.size) sum = fma(load_n(q + i, s.size - i), load_n(k + i, s.size - i), sum);
        sums[t] = sum;
      }
      transpose(sums);
#pragma GCC unroll 4
      for (int n = kLanes / 2; n > 0; n /= 2) {
        for (int t = 0; t < n; ++t) sums[t] = sums[t] + sums[t + n];
      }
      store(s.scores + r * s.step + j, sums[0] * broadcast(s.scale));
    }
  }
}

void scale_rows(float* y, int64_t step, int64_t rows, int64_t columns, const float* factors) {
  for (int64_t r = 0; r < rows; ++r, y += step) {
    const F32 factor = broadcast(factors[r]);
    int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) store(y + i, load(y + i) * factor);
    if (i < columns) store_n(y + i, load_n(y + i, columns - i) * factor, columns - i);
  }
}

constexpr AttentionKernels kAttentionKernels = {dots, exponentials, scale_rows};

}  // namespace

const AttentionKernels& attention_kernels() {
  return kAttentionKernels;
}

}  // namespace neo::NEO_ISA
