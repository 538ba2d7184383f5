#pragma once

#include <cstdint>

#include "routines/cpu/microkernel/tile.h"

namespace neo {

// Runs the tile, whose operands and destination are set, and stores its first `columns` columns.
void run_microkernel_edge(TileKernel kernel, const TileKernels& kernels, const Tile& tile, int64_t rows,
                          int64_t vectors, int64_t columns);

}  // namespace neo
