#include "routines/cpu/conv/output_panel.h"

#include <algorithm>

namespace neo {

OutputPanel make_output_panel(const BlockedOutput& output, int64_t oc, int64_t vectors, int64_t lanes,
                              int64_t columns) {
  OutputPanel panel;
  panel.vectors = vectors;
  panel.lanes = lanes;
  TileEdge& e = panel.edge;
  e.vectors = vectors;
  e.columns = columns;
  e.dst = output.dst;
  e.init = output.residual;
  e.dst_row = e.init_row = output.oc_bn;
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t c = oc + v * lanes;
    e.dst_vector[v] = c / output.oc_bn * output.dst_block + c % output.oc_bn;
    e.init_vector[v] = c / output.oc_bn * output.residual_block + c % output.oc_bn;
  }
  e.lo = output.lo;
  e.hi = output.hi;
  panel.activation = output.activation;
  return panel;
}

void run_output_tile(TileKernel kernel, const TileKernels& kernels, Tile& tile, const OutputPanel& panel, int64_t first,
                     int64_t rows) {
  const TileEdge& e = panel.edge;
  tile.dst = e.dst + first * e.dst_row;
  tile.dst_row = e.dst_row;
  tile.init = e.init ? e.init + first * e.init_row : nullptr;
  tile.init_row = e.init_row;
  std::copy_n(e.dst_vector, kTileVectors, tile.dst_vector);
  std::copy_n(e.init_vector, kTileVectors, tile.init_vector);
  tile.lo = e.lo;
  tile.hi = e.hi;
  kernel(tile);
  // Padding lanes have sums too, of weights that are zero: not a number where a source is infinite.
  for (int64_t v = std::max<int64_t>(0, e.columns) / panel.lanes; v < panel.vectors; ++v) {
    const int64_t valid = std::max<int64_t>(0, e.columns - v * panel.lanes);
    kernels.clear(tile.dst + tile.dst_vector[v] + valid, tile.dst_row, rows, panel.lanes - valid);
  }
}

void activate_output(const OutputPanel& panel, int64_t first, int64_t rows) {
  if (!panel.activation) return;
  const TileEdge& e = panel.edge;
  for (int64_t v = 0; v < panel.vectors && v * panel.lanes < e.columns; ++v) {
    panel.activation(e.dst + first * e.dst_row + e.dst_vector[v], rows * panel.lanes);
  }
}

}  // namespace neo
