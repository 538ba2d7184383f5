#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "select/problem.h"

namespace neo::select {

// A table with an axis per variable of its scope, which increases; row-major.
struct Factor {
  std::vector<int> scope;
  std::vector<double> values;
};

size_t cells_of(const std::vector<int>& scope, const std::vector<int>& sizes);
std::vector<size_t> shape_of(const std::vector<int>& scope, const std::vector<int>& sizes);
std::vector<int> united(const std::vector<int>& a, const std::vector<int>& b);

// A factor seen from a larger scope: its stride along each of that scope's axes, 0 where it has none.
struct Broadcast {
  const double* values;
  std::vector<size_t> strides;
};

Broadcast broadcast(const Factor& factor, const std::vector<int>& scope, const std::vector<int>& sizes);
// Adds a factor, from an offset into it, to a table over the axes `from` and on.
void add(double* to, const Broadcast& factor, size_t offset, const std::vector<size_t>& shape, size_t from);
// Adds a factor to one whose scope contains the factor's.
void add(Factor& to, const Factor& factor, const std::vector<int>& sizes);

// least[i] = the lesser of least[i] and values[i].
void take_least(double* least, const double* values, size_t count);

// Factors of the same scope as one, in the order of their first.
std::vector<Factor> merged(std::vector<Factor> factors);
// Renames variable v to position[v]; `sizes` are the old variables'.
std::vector<Factor> relabelled(const std::vector<Factor>& factors, const std::vector<int>& position,
                               const std::vector<int>& sizes);

// The place in a factor's table of a choice of every variable.
size_t cell_of(const Factor& factor, const std::vector<int>& choice, const std::vector<int>& sizes);
// The sum of the factors at a choice of every variable; infinite where one of them is.
double value_of(const std::vector<Factor>& factors, const std::vector<int>& choice, const std::vector<int>& sizes);

}  // namespace neo::select
