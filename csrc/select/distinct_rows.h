#pragma once

#include <cstddef>
#include <vector>

#include "select/elimination.h"
#include "select/factor.h"

namespace neo::select {

// Looks for equal rows along both axes of a factor on two variables; any other stays as it is.
FoldedFactor fold(Factor factor, const std::vector<int>& sizes);
// Tells apart what either tells apart.
Rows refined(const Rows& a, const Rows& b);
// How many rows there are for so many choices.
int row_count(const Rows& rows, int choices);
// The place in a factor of each row along each axis of a larger scope: 0 along an axis that the factor has not. The
// rows tell apart all that the factor's do; `counts`: of these, by variable.
using RowPlaces = std::vector<std::vector<size_t>>;
RowPlaces places_of(const FoldedFactor& factor, const std::vector<int>& scope, const std::vector<Rows>& rows,
                    const std::vector<int>& counts);
// Every sum of two of these offsets, the second running faster.
std::vector<size_t> sums_of(const std::vector<size_t>& outer, const std::vector<size_t>& inner);
// Whether the factor's own rows are these.
bool has_rows(const FoldedFactor& factor, const std::vector<int>& scope, const std::vector<Rows>& rows);
// The factor with these rows.
Factor unfolded(FoldedFactor factor, const std::vector<int>& scope, const std::vector<Rows>& rows,
                const std::vector<int>& counts);

// The order of greedy_order by tables whose equal rows are one; all variables may be eliminated. Variables are left
// where a table has more cells than `largest`, or all of them more than `most`.
Order distinct_order(const std::vector<int>& sizes, const std::vector<FoldedFactor>& factors, double largest,
                     double most, Rule rule);

}  // namespace neo::select
