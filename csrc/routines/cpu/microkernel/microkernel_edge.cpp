#include "routines/cpu/microkernel/microkernel_edge.h"

#include <algorithm>
#include <limits>

namespace neo {
namespace {

constexpr int64_t kWidestVector = 16;

void run_edge(TileKernel kernel, const TileKernels& kernels, const Tile& tile, int64_t rows, int64_t vectors,
              int64_t columns) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  alignas(64) float acc[kTileRows * kTileVectors * kWidestVector];
  TileEdge edge;
  edge.acc = acc;
  edge.rows = rows;
  edge.vectors = vectors;
  edge.columns = columns;
  edge.init = tile.init;
  edge.init_row = tile.init_row;
  std::copy_n(tile.init_vector, kTileVectors, edge.init_vector);
  edge.dst = tile.dst;
  edge.dst_row = tile.dst_row;
  std::copy_n(tile.dst_vector, kTileVectors, edge.dst_vector);
  edge.lo = tile.lo;
  edge.hi = tile.hi;
  Tile sums = tile;
  sums.init = nullptr;
  sums.dst = acc;
  sums.dst_row = vectors * kernels.lanes;
  for (int64_t v = 0; v < vectors; ++v) sums.dst_vector[v] = v * kernels.lanes;
  sums.lo = -kInfinity;
  sums.hi = kInfinity;
  kernel(sums);
  kernels.edge(edge);
}

}  // namespace

void run_microkernel_edge(TileKernel kernel, const TileKernels& kernels, const Tile& tile, int64_t rows,
                          int64_t vectors, int64_t columns) {
  if (columns == vectors * kernels.lanes) {
    kernel(tile);
  } else {
    run_edge(kernel, kernels, tile, rows, vectors, columns);
  }
}

}  // namespace neo
