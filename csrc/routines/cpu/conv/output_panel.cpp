#include "routines/cpu/conv/output_panel.h"

#include <algorithm>

namespace neo {

OutputPanel make_output_panel(const BlockedOutput& output, int64_t oc, int64_t vectors, int64_t lanes,
                              int64_t columns) {
  OutputPanel panel;
  panel.vectors = vectors;
  panel.lanes = lanes;
  panel.columns = std::max<int64_t>(0, columns);
  panel.dst = output.dst;
  panel.residual = output.residual;
  panel.row = output.oc_bn;
  for (int64_t v = 0; v < vectors; ++v) {
    const int64_t c = oc + v * lanes;
    panel.dst_vector[v] = c / output.oc_bn * output.dst_block + c % output.oc_bn;
    panel.residual_vector[v] = c / output.oc_bn * output.residual_block + c % output.oc_bn;
  }
  panel.lo = output.lo;
  panel.hi = output.hi;
  panel.activation = output.activation;
  return panel;
}

void run_output_tile(TileKernel kernel, const TileKernels& kernels, Tile& tile, const OutputPanel& panel, int64_t first,
                     int64_t rows) {
  tile.dst = panel.dst + first * panel.row;
  tile.init = panel.residual ? panel.residual + first * panel.row : nullptr;
  tile.dst_row = tile.init_row = panel.row;
  std::copy_n(panel.dst_vector, kTileVectors, tile.dst_vector);
  std::copy_n(panel.residual_vector, kTileVectors, tile.init_vector);
  tile.lo = panel.lo;
  tile.hi = panel.hi;
  kernel(tile);
  // Padding lanes have sums too, of weights that are zero: not a number where a source is infinite.
  for (int64_t v = panel.columns / panel.lanes; v < panel.vectors; ++v) {
    const int64_t valid = std::max<int64_t>(0, panel.columns - v * panel.lanes);
    kernels.clear(tile.dst + tile.dst_vector[v] + valid, tile.dst_row, rows, panel.lanes - valid);
  }
}

void activate_output(const OutputPanel& panel, int64_t first, int64_t rows) {
  if (!panel.activation) return;
  for (int64_t v = 0; v < panel.vectors && v * panel.lanes < panel.columns; ++v) {
    panel.activation(panel.dst + first * panel.row + panel.dst_vector[v], rows * panel.lanes);
  }
}

}  // namespace neo
