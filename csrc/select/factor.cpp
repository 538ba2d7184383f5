#include "select/factor.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

namespace neo::select {
namespace {

// to[0..n) += values, one by one or the same for all.
void add_run(double* to, const double* values, size_t n, bool same) {
  if (same) {
    const double x = *values;
    for (size_t i = 0; i < n; ++i) to[i] += x;
  } else {
    for (size_t i = 0; i < n; ++i) to[i] += values[i];
  }
}

}  // namespace

size_t cells_of(const std::vector<int>& scope, const std::vector<int>& sizes) {
  size_t cells = 1;
  for (const int v : scope) cells *= at(sizes[at(v)]);
  return cells;
}

std::vector<size_t> shape_of(const std::vector<int>& scope, const std::vector<int>& sizes) {
  std::vector<size_t> shape;
  for (const int v : scope) shape.push_back(at(sizes[at(v)]));
  return shape;
}

std::vector<int> united(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

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

void add(Factor& to, const Factor& factor, const std::vector<int>& sizes) {
  add(to.values.data(), broadcast(factor, to.scope, sizes), 0, shape_of(to.scope, sizes), 0);
}

void take_least(double* least, const double* values, size_t count) {
  for (size_t i = 0; i < count; ++i) least[i] = std::min(least[i], values[i]);
}

std::vector<Factor> merged(std::vector<Factor> factors) {
  std::vector<Factor> out;
  std::map<std::vector<int>, size_t> index;
  for (Factor& factor : factors) {
    const auto [found, is_new] = index.try_emplace(factor.scope, out.size());
    if (is_new) {
      out.push_back(std::move(factor));
      continue;
    }
    std::vector<double>& sum = out[found->second].values;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += factor.values[i];
  }
  return out;
}

std::vector<Factor> relabelled(const std::vector<Factor>& factors, const std::vector<int>& position,
                               const std::vector<int>& sizes) {
  std::vector<Factor> out;
  for (const Factor& factor : factors) {
    // The factor as one of its new scope: a stride for each axis, the axes in their new order.
    const size_t rank = factor.scope.size();
    std::vector<size_t> axes(rank), strides(rank, 1);
    std::iota(axes.begin(), axes.end(), size_t{0});
    for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * at(sizes[at(factor.scope[i])]);
    std::sort(axes.begin(), axes.end(),
              [&](size_t a, size_t b) { return position[at(factor.scope[a])] < position[at(factor.scope[b])]; });
    Factor& renamed = out.emplace_back();
    Broadcast view{factor.values.data(), {}};
    std::vector<size_t> shape;
    for (const size_t axis : axes) {
      renamed.scope.push_back(position[at(factor.scope[axis])]);
      shape.push_back(at(sizes[at(factor.scope[axis])]));
      view.strides.push_back(strides[axis]);
    }
    // An innermost run is dense or the same for all; one axis more of size 1 makes it single elements.
    shape.push_back(1);
    view.strides.push_back(1);
    renamed.values.assign(factor.values.size(), 0.0);
    add(renamed.values.data(), view, 0, shape, 0);
  }
  return out;
}

size_t cell_of(const Factor& factor, const std::vector<int>& choice, const std::vector<int>& sizes) {
  size_t cell = 0;
  for (const int v : factor.scope) cell = cell * at(sizes[at(v)]) + at(choice[at(v)]);
  return cell;
}

double value_of(const std::vector<Factor>& factors, const std::vector<int>& choice, const std::vector<int>& sizes) {
  Sum sum;
  for (const Factor& factor : factors) sum.add(factor.values[cell_of(factor, choice, sizes)]);
  return sum.value();
}

}  // namespace neo::select
