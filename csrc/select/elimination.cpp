#include "select/elimination.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>

#include "select/distinct_rows.h"
#include "select/problem.h"

namespace neo::select {
namespace {

constexpr size_t kBlockCells = 4096;  // of a joined table

bool is_subset(const std::vector<int>& part, const std::vector<int>& whole) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

// Factors whose scope lies in another's are added to that one; longer scopes come first.
void merge_subsets(std::vector<Factor>& factors, const std::vector<int>& sizes) {
  size_t longest = 0;
  for (const Factor& factor : factors) longest = std::max(longest, factor.scope.size());
  std::vector<Factor> kept;
  for (size_t length = longest; length > 0; --length) {
    for (Factor& factor : factors) {
      if (factor.scope.size() != length) continue;
      const auto host = std::find_if(kept.begin(), kept.end(),
                                     [&](const Factor& other) { return is_subset(factor.scope, other.scope); });
      if (host == kept.end()) {
        kept.push_back(std::move(factor));
        factor.scope.clear();
      } else {
        add(*host, factor, sizes);
      }
    }
  }
  factors = std::move(kept);
}

// Fewer factors of the same sum: factors are added up where their sum is small beside the table of `table` cells to
// which each factor is added in the end. `sums` holds the sums.
std::vector<const Factor*> gathered(const std::vector<Factor>& bucket, size_t table, const std::vector<int>& sizes,
                                    std::deque<Factor>& sums) {
  constexpr size_t kSmall = 4;
  std::vector<const Factor*> factors;
  for (const Factor& factor : bucket) factors.push_back(&factor);
  while (factors.size() > 1) {
    size_t least = table / kSmall, first = 0, second = 0;
    for (size_t i = 0; i < factors.size(); ++i) {
      for (size_t j = i + 1; j < factors.size(); ++j) {
        const size_t cells = cells_of(united(factors[i]->scope, factors[j]->scope), sizes);
        if (cells <= least) least = cells, first = i, second = j;
      }
    }
    if (second == 0) break;
    Factor& sum =
        sums.emplace_back(Factor{united(factors[first]->scope, factors[second]->scope), std::vector(least, 0.0)});
    for (const size_t i : {first, second}) add(sum, *factors[i], sizes);
    factors[first] = &sum;
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(second));
  }
  return factors;
}

// A factor of other rows than the table that it is added to, block by block.
class RowView {
 public:
  // `inner`: the first axis of a block.
  RowView(const Factor& factor, RowPlaces places, size_t inner)
      : values_(factor.values.data()), places_(std::move(places)), offsets_{0} {
    for (size_t axis = inner; axis < places_.size(); ++axis) offsets_ = sums_of(offsets_, places_[axis]);
    places_.resize(inner);
  }

  // `index`: of the block, along the axes before it.
  void add_to(std::vector<double>& block, const std::vector<size_t>& index) const {
    const double* from = values_;
    for (size_t axis = 0; axis < places_.size(); ++axis) from += places_[axis][index[axis]];
    for (size_t i = 0; i < block.size(); ++i) block[i] += from[offsets_[i]];
  }

 private:
  const double* values_;
  RowPlaces places_;
  std::vector<size_t> offsets_;  // of the cells of a block
};

// The rows along each axis of a table that factors are joined to: the first axis is the variable that is minimised
// over, whose choices all count.
std::vector<Rows> joined_rows(const std::vector<FoldedFactor>& factors, const std::vector<int>& scope) {
  std::vector<Rows> rows(scope.size());
  for (size_t axis = 1; axis < scope.size(); ++axis) {
    bool is_first = true;
    for (const FoldedFactor& factor : factors) {
      const auto& own = factor.factor.scope;
      const auto found = std::find(own.begin(), own.end(), scope[axis]);
      if (found == own.end()) continue;
      const Rows& more = factor.rows[static_cast<size_t>(found - own.begin())];
      rows[axis] = is_first ? more : refined(rows[axis], more);
      is_first = false;
    }
  }
  return rows;
}

std::vector<FoldedFactor> with_own_rows(std::vector<Factor> factors) {
  std::vector<FoldedFactor> folded;
  for (Factor& factor : factors) {
    std::vector<Rows> rows(factor.scope.size());
    folded.push_back({std::move(factor), std::move(rows)});
  }
  return folded;
}

}  // namespace

Decision::Decision(std::vector<int> scope, std::vector<Rows> rows, std::vector<size_t> shape, int size)
    : scope_(std::move(scope)), rows_(std::move(rows)), shape_(std::move(shape)), size_(size) {
  size_t cells = 1;
  for (const size_t count : shape_) cells *= count;
  if (size_ < 256) {
    narrow_.resize(cells);
  } else {
    wide_.resize(cells);
  }
}

void Decision::set(size_t cell, const std::vector<int>& choices) {
  for (size_t i = 0; i < choices.size(); ++i) {
    if (size_ < 256) {
      narrow_[cell + i] = static_cast<uint8_t>(choices[i]);
    } else {
      wide_[cell + i] = choices[i];
    }
  }
}

std::optional<int> Decision::best(const std::vector<int>& choice) const {
  size_t cell = 0;
  for (size_t axis = 0; axis < scope_.size(); ++axis) {
    const size_t own = at(choice[at(scope_[axis])]);
    cell = cell * shape_[axis] + (rows_[axis].empty() ? own : at(rows_[axis][own]));
  }
  const int found = size_ < 256 ? narrow_[cell] : wide_[cell];
  return found == size_ ? std::nullopt : std::optional(found);
}

Elimination::Elimination(std::vector<int> sizes, int count, std::vector<Factor> factors)
    : Elimination(std::move(sizes), count, with_own_rows(std::move(factors))) {}

Elimination::Elimination(std::vector<int> sizes, int count, std::vector<FoldedFactor> factors)
    : sizes_(std::move(sizes)), counts_(sizes_), count_(count), buckets_(sizes_.size()) {
  for (FoldedFactor& factor : factors) place(std::move(factor));
  for (int v = 0; v < count_; ++v) eliminate(v);
  for (size_t v = at(count_); v < buckets_.size(); ++v) {
    std::vector<Factor> bucket;
    for (FoldedFactor& folded : buckets_[v]) {
      const std::vector<int> scope = folded.factor.scope;
      bucket.push_back(unfolded(std::move(folded), scope, std::vector<Rows>(scope.size()), sizes_));
    }
    for (Factor& factor : merged(std::move(bucket))) rest_.push_back(std::move(factor));
  }
}

void Elimination::place(FoldedFactor folded) {
  if (folded.factor.scope.empty()) {
    constant_ += folded.factor.values[0];
  } else {
    buckets_[at(folded.factor.scope[0])].push_back(std::move(folded));
  }
}

void Elimination::eliminate(int v) {
  std::vector<FoldedFactor> folded = std::move(buckets_[at(v)]);
  std::vector<int> scope{v};
  for (const FoldedFactor& factor : folded) scope = united(scope, factor.factor.scope);
  const std::vector<Rows> rows = joined_rows(folded, scope);
  for (size_t axis = 0; axis < scope.size(); ++axis)
    counts_[at(scope[axis])] = row_count(rows[axis], sizes_[at(scope[axis])]);
  const std::vector<size_t> shape = shape_of(scope, counts_);
  const size_t cells = cells_of(scope, counts_) / shape[0];
  // Factors of other rows are written out where they are small.
  constexpr size_t kSmall = 8;
  std::vector<Factor> bucket;
  std::vector<FoldedFactor> others;
  for (FoldedFactor& factor : folded) {
    const bool is_small = cells_of(factor.factor.scope, counts_) <= cells * shape[0] / kSmall;
    if (is_small || has_rows(factor, scope, rows)) {
      bucket.push_back(unfolded(std::move(factor), scope, rows, counts_));
    } else {
      others.push_back(std::move(factor));
    }
  }
  merge_subsets(bucket, counts_);
  if (bucket.empty()) bucket.push_back({{v}, std::vector<double>(at(sizes_[at(v)]), 0.0)});
  std::deque<Factor> sums;
  std::vector<Broadcast> parts;
  for (const Factor* factor : gathered(bucket, cells * shape[0], counts_, sums))
    parts.push_back(broadcast(*factor, scope, counts_));
  // The joined table is made block by block, of the inner axes, so that a block stays in the nearest caches.
  size_t inner = shape.size(), block = 1;
  while (inner > 1 && (block == 1 || block * shape[inner - 1] <= kBlockCells)) block *= shape[--inner];
  std::vector<RowView> views;
  for (const FoldedFactor& factor : others)
    views.emplace_back(factor.factor, places_of(factor, scope, rows, counts_), inner);
  std::vector<double> least(cells, kInfinity), joined(block);
  std::vector<int> chosen(block);
  const std::vector<int> left(scope.begin() + 1, scope.end());
  std::vector<Rows> rows_left(rows.begin() + 1, rows.end());
  Decision decision(left, rows_left, {shape.begin() + 1, shape.end()}, sizes_[at(v)]);
  std::vector<size_t> index(inner, 0);  // of the block, along the axes before `inner`
  for (size_t begin = 0; begin < cells; begin += block) {
    std::fill(chosen.begin(), chosen.end(), sizes_[at(v)]);
    for (size_t i = 0; i < shape[0]; ++i) {
      std::fill(joined.begin(), joined.end(), 0.0);
      index[0] = i;
      for (const Broadcast& part : parts) {
        add(joined.data(), part, std::inner_product(index.begin(), index.end(), part.strides.begin(), size_t{0}), shape,
            inner);
      }
      for (const RowView& view : views) view.add_to(joined, index);
      double* to = least.data() + begin;
      for (size_t j = 0; j < block; ++j) {
        const bool is_less = joined[j] < to[j];
        to[j] = is_less ? joined[j] : to[j];
        chosen[j] = is_less ? static_cast<int>(i) : chosen[j];
      }
    }
    decision.set(begin, chosen);
    for (size_t axis = inner; --axis > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
  }
  decisions_.push_back(std::move(decision));
  for (const int w : scope) counts_[at(w)] = sizes_[at(w)];
  place({{left, std::move(least)}, std::move(rows_left)});
}

bool Elimination::decode(std::vector<int>& choice) const {
  for (int v = count_ - 1; v >= 0; --v) {
    const auto best = decisions_[at(v)].best(choice);
    if (!best) return false;
    choice[at(v)] = *best;
  }
  return true;
}

}  // namespace neo::select
