#include "select/mini_buckets.h"

#include <algorithm>
#include <utility>

namespace neo::select {
namespace {

struct Members {
  std::vector<int> scope;
  std::vector<const Factor*> factors;
};

double joined_cells(const std::vector<int>& scope, const std::vector<int>& sizes) {
  double cells = 1;
  for (const int v : scope) cells *= sizes[at(v)];
  return cells;
}

// Each factor, the longest first, goes to the first part whose table stays within the limit.
std::vector<Members> split_bucket(const std::vector<Factor>& bucket, const std::vector<int>& sizes, double limit) {
  Members whole;
  for (const Factor& factor : bucket) {
    whole.scope = united(whole.scope, factor.scope);
    whole.factors.push_back(&factor);
  }
  if (joined_cells(whole.scope, sizes) <= limit) return {whole};
  std::vector<Members> parts;
  const auto place = [&](const Factor* factor) {
    const auto part = std::find_if(parts.begin(), parts.end(), [&](const Members& p) {
      return joined_cells(united(p.scope, factor->scope), sizes) <= limit;
    });
    if (part == parts.end()) {
      parts.push_back({factor->scope, {factor}});
    } else {
      part->scope = united(part->scope, factor->scope);
      part->factors.push_back(factor);
    }
  };
  for (size_t length = whole.scope.size(); length > 0; --length) {
    for (const Factor* factor : whole.factors) {
      if (factor->scope.size() == length) place(factor);
    }
  }
  return parts;
}

// Moves costs of the first variable between the tables until each has the same minimum per choice of it. Gives what was
// added per table and choice; infinite for choices that some table forbids.
std::vector<std::vector<double>> even_out(std::vector<MiniBuckets::Part>& parts, size_t choices) {
  std::vector<std::vector<double>> added(parts.size(), std::vector<double>(choices));
  for (size_t i = 0; i < choices; ++i) {
    double total = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      const size_t row = parts[p].joined.values.size() / choices;
      const double* from = parts[p].joined.values.data() + i * row;
      added[p][i] = *std::min_element(from, from + row);
      total += added[p][i];
    }
    const double mean = total / static_cast<double>(parts.size());
    for (size_t p = 0; p < parts.size(); ++p) {
      added[p][i] = mean < kInfinity ? mean - added[p][i] : kInfinity;
      const size_t row = parts[p].joined.values.size() / choices;
      for (size_t j = i * row; j < (i + 1) * row; ++j) parts[p].joined.values[j] += added[p][i];
    }
  }
  return added;
}

}  // namespace

MiniBuckets::MiniBuckets(std::vector<int> sizes, std::vector<Factor> factors, double limit, double most)
    : sizes_(std::move(sizes)), waiting_(sizes_.size()), parts_(sizes_.size()), splits_(sizes_.size()) {
  for (Factor& factor : factors) place(std::move(factor));
  constexpr double kShare = 1.0 / 64;
  for (size_t v = 0; v < sizes_.size(); ++v) {
    eliminate(merged(std::move(waiting_[v])), static_cast<int>(v), std::min(limit, most * kShare));
    for (const Part& part : parts_[v]) most -= static_cast<double>(part.joined.values.size());
  }
}

void MiniBuckets::place(Factor factor) {
  if (factor.scope.empty()) {
    bound_ += factor.values[0];
  } else {
    waiting_[at(factor.scope[0])].push_back(std::move(factor));
  }
}

void MiniBuckets::eliminate(std::vector<Factor> bucket, int v, double limit) {
  const size_t choices = at(sizes_[at(v)]);
  if (bucket.empty()) bucket.push_back({{v}, std::vector<double>(choices, 0.0)});
  std::vector<Part>& parts = parts_[at(v)];
  const std::vector<Members> members = split_bucket(bucket, sizes_, limit);
  for (const Members& part : members) {
    Factor joined{part.scope, std::vector<double>(cells_of(part.scope, sizes_), 0.0)};
    for (const Factor* factor : part.factors) add(joined, *factor, sizes_);
    parts.push_back({std::move(joined), {}});
  }
  if (parts.size() > 1) {
    exact_ = false;
    std::vector<std::vector<double>> added = even_out(parts, choices);
    for (size_t p = 0; p < parts.size(); ++p) {
      Split& split = splits_[at(v)].emplace_back();
      for (const Factor* factor : members[p].factors) split.scopes.push_back(factor->scope);
      split.added = std::move(added[p]);
    }
  }
  for (Part& part : parts) {
    const size_t row = part.joined.values.size() / choices;
    const double* values = part.joined.values.data();
    part.message.assign(values, values + row);
    for (size_t i = 1; i < choices; ++i) take_least(part.message.data(), values + i * row, row);
    place({{part.joined.scope.begin() + 1, part.joined.scope.end()}, part.message});
  }
}

double MiniBuckets::bound_of(size_t v, const std::vector<int>& choice) const {
  double total = 0;
  for (const Part& part : parts_[v]) total += part.joined.values[cell_of(part.joined, choice, sizes_)];
  return total;
}

std::vector<int> MiniBuckets::decode() const {
  std::vector<int> choice(sizes_.size(), 0);
  for (size_t v = sizes_.size(); v-- > 0;) {
    double least = kInfinity;
    int best = -1;
    for (int i = 0; i < sizes_[v]; ++i) {
      choice[v] = i;
      const double bound = bound_of(v, choice);
      if (bound < least) least = bound, best = i;
    }
    if (best < 0) return {};
    choice[v] = best;
  }
  return choice;
}

}  // namespace neo::select
