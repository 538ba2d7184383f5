#include "select/elimination.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <utility>

#include "select/problem.h"

namespace neo::select {
namespace {

constexpr size_t kBlockCells = 4096;  // of a joined table

// A factor seen from a larger scope: its stride along each of that scope's axes, 0 where it has none.
struct Broadcast {
  const double* values;
  std::vector<size_t> strides;
};

Broadcast broadcast(const Factor& factor, const std::vector<int>& scope, const std::vector<int>& sizes) {
  Broadcast out{factor.values.data(), std::vector<size_t>(scope.size(), 0)};
  size_t stride = 1, axis = scope.size();
  for (size_t i = factor.scope.size(); i-- > 0; stride *= at(sizes[at(factor.scope[i])])) {
    while (scope[--axis] != factor.scope[i]) {
    }
    out.strides[axis] = stride;
  }
  return out;
}

// to[0..n) += values, one by one or the same for all.
void add_run(double* to, const double* values, size_t n, bool same) {
  if (same) {
    const double x = *values;
    for (size_t i = 0; i < n; ++i) to[i] += x;
  } else {
    for (size_t i = 0; i < n; ++i) to[i] += values[i];
  }
}

// Adds a factor, from an offset into it, to a table over the axes `from` and on.
void add(double* to, const Broadcast& factor, size_t offset, const std::vector<size_t>& shape, size_t from) {
  size_t last = shape.size();
  if (last == from) {
    *to += factor.values[offset];
    return;
  }
  // The longest run of inner axes along which the factor is dense, or does not change.
  --last;
  const bool same = factor.strides[last] == 0;
  size_t run = shape[last];
  while (last > from && factor.strides[last - 1] == (same ? 0 : run)) run *= shape[--last];
  std::vector<size_t> index(last - from, 0);
  size_t where = offset;
  for (;;) {
    add_run(to, factor.values + where, run, same);
    to += run;
    size_t axis = last;
    for (;;) {
      if (axis == from) return;
      --axis;
      where += factor.strides[axis];
      if (++index[axis - from] < shape[axis]) break;
      where -= factor.strides[axis] * shape[axis];
      index[axis - from] = 0;
    }
  }
}

bool is_subset(const std::vector<int>& part, const std::vector<int>& whole) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

std::vector<size_t> shape_of(const std::vector<int>& scope, const std::vector<int>& sizes) {
  std::vector<size_t> shape;
  for (const int v : scope) shape.push_back(at(sizes[at(v)]));
  return shape;
}

// Factors whose scope lies in another's are added to that one.
void merge(std::vector<Factor>& factors, const std::vector<int>& sizes) {
  std::stable_sort(factors.begin(), factors.end(),
                   [](const Factor& a, const Factor& b) { return a.scope.size() > b.scope.size(); });
  std::vector<Factor> kept;
  for (Factor& factor : factors) {
    const auto host = std::find_if(kept.begin(), kept.end(),
                                   [&](const Factor& other) { return is_subset(factor.scope, other.scope); });
    if (host == kept.end()) {
      kept.push_back(std::move(factor));
    } else {
      add(host->values.data(), broadcast(factor, host->scope, sizes), 0, shape_of(host->scope, sizes), 0);
    }
  }
  factors = std::move(kept);
}

size_t cells_of(const std::vector<int>& scope, const std::vector<int>& sizes) {
  size_t cells = 1;
  for (const int v : scope) cells *= at(sizes[at(v)]);
  return cells;
}

std::vector<int> united(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

// Fewer factors of the same sum: those whose sum is small beside a table of so many cells, which every factor that is
// left is added to. `sums` holds what is made.
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
    for (const size_t i : {first, second})
      add(sum.values.data(), broadcast(*factors[i], sum.scope, sizes), 0, shape_of(sum.scope, sizes), 0);
    factors[first] = &sum;
    factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(second));
  }
  return factors;
}

}  // namespace

Elimination::Elimination(std::vector<int> sizes, int count, std::vector<Factor> factors)
    : sizes_(std::move(sizes)), count_(count), buckets_(sizes_.size()) {
  for (Factor& factor : factors) place(std::move(factor));
  for (int v = 0; v < count_; ++v) eliminate(v);
  for (size_t v = at(count_); v < buckets_.size(); ++v) {
    std::stable_sort(buckets_[v].begin(), buckets_[v].end(),
                     [](const Factor& a, const Factor& b) { return a.scope < b.scope; });
    for (Factor& factor : buckets_[v]) {
      if (rest_.empty() || rest_.back().scope != factor.scope) {
        rest_.push_back(std::move(factor));
        continue;
      }
      for (size_t i = 0; i < factor.values.size(); ++i) rest_.back().values[i] += factor.values[i];
    }
  }
}

void Elimination::place(Factor factor) {
  if (factor.scope.empty()) {
    constant_ += factor.values[0];
  } else {
    buckets_[at(factor.scope[0])].push_back(std::move(factor));
  }
}

void Elimination::eliminate(int v) {
  auto& bucket = buckets_[at(v)];
  merge(bucket, sizes_);
  if (bucket.empty()) bucket.push_back({{v}, std::vector<double>(at(sizes_[at(v)]), 0.0)});
  std::vector<int> scope;
  for (const Factor& factor : bucket) scope = united(scope, factor.scope);
  const std::vector<size_t> shape = shape_of(scope, sizes_);
  const size_t cells = cells_of(scope, sizes_) / shape[0];
  std::deque<Factor> sums;
  std::vector<Broadcast> parts;
  for (const Factor* factor : gathered(bucket, cells * shape[0], sizes_, sums))
    parts.push_back(broadcast(*factor, scope, sizes_));
  // The joined table is made block by block, of the inner axes, so that a block stays in the nearest caches.
  size_t inner = shape.size(), block = 1;
  while (inner > 1 && (block == 1 || block * shape[inner - 1] <= kBlockCells)) block *= shape[--inner];
  std::vector<double> least(cells, std::numeric_limits<double>::infinity()), joined(block);
  std::vector<size_t> index(inner, 0);  // of the block, along the axes before `inner`
  for (size_t begin = 0; begin < cells; begin += block) {
    for (size_t i = 0; i < shape[0]; ++i) {
      std::fill(joined.begin(), joined.end(), 0.0);
      index[0] = i;
      for (const Broadcast& part : parts) {
        add(joined.data(), part, std::inner_product(index.begin(), index.end(), part.strides.begin(), size_t{0}), shape,
            inner);
      }
      for (size_t j = 0; j < block; ++j) least[begin + j] = std::min(least[begin + j], joined[j]);
    }
    for (size_t axis = inner; --axis > 0 && ++index[axis] == shape[axis];) index[axis] = 0;
  }
  place({{scope.begin() + 1, scope.end()}, std::move(least)});
}

bool Elimination::decode(std::vector<int>& choice) const {
  for (int v = count_ - 1; v >= 0; --v) {
    std::vector<double> total(at(sizes_[at(v)]), 0.0);
    for (const Factor& factor : buckets_[at(v)]) {
      size_t offset = 0, step = 1;
      for (size_t i = 1; i < factor.scope.size(); ++i) {
        const auto size = at(sizes_[at(factor.scope[i])]);
        offset = offset * size + at(choice[at(factor.scope[i])]);
        step *= size;
      }
      for (size_t i = 0; i < total.size(); ++i) total[i] += factor.values[offset + i * step];
    }
    const auto best = std::min_element(total.begin(), total.end());
    if (!(*best < std::numeric_limits<double>::infinity())) return false;
    choice[at(v)] = static_cast<int>(best - total.begin());
  }
  return true;
}

}  // namespace neo::select
