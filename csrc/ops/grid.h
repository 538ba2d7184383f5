#pragma once

#include "ops/op.h"

namespace neo {

// The grid of an AffineGrid: its sizes, and the coordinate of each place along each of its axes, from -1 to 1.
struct AffinePlaces {
  Dims spatial, output;
  std::vector<std::vector<double>> coordinates;
};

// As the operands of a call say; a Shape error where they do not fit each other.
AffinePlaces affine_places(const ReferenceContext& ctx);

}  // namespace neo
