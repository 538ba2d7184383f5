#pragma once

#include <cstdint>

#include "routines/cpu/activation.h"
#include "routines/cpu/microkernel/tile.h"

namespace neo {

// Addresses of the tiles of one image and one panel of output channels in an NCHW[oc_bn]c tensor.
struct OutputPanel {
  int64_t vectors = 0;
  int64_t lanes = 0;
  int64_t columns = 0;   // the channels that exist; the other lanes are padding, and zero
  float* dst = nullptr;  // of pixel 0
  int64_t dst_vector[kTileVectors] = {};
  const float* residual = nullptr;  // of pixel 0, or null
  int64_t residual_vector[kTileVectors] = {};
  int64_t row = 0;  // from pixel to pixel, in both
  float lo = 0.0f, hi = 0.0f;
  Activation activation;
};

struct BlockedOutput {
  float* dst = nullptr;  // of the image
  int64_t dst_block = 0;
  const float* residual = nullptr;  // of the image, or null
  int64_t residual_block = 0;
  int64_t oc_bn = 0;
  float lo = 0.0f, hi = 0.0f;
  Activation activation;  // keeps zero, where the last block has padding lanes; then oc_bn is the vector width
};

// Channels [oc, oc + vectors * lanes), of which `columns` exist.
OutputPanel make_output_panel(const BlockedOutput& output, int64_t oc, int64_t vectors, int64_t lanes, int64_t columns);

// Runs the tile, whose source and weights are set, on output pixels [first, first + rows).
void run_output_tile(TileKernel kernel, const TileKernels& kernels, Tile& tile, const OutputPanel& panel, int64_t first,
                     int64_t rows);

// The activation of output pixels [first, first + rows) that run_output_tile() wrote; several tiles at a time cost less
// than each alone.
void activate_output(const OutputPanel& panel, int64_t first, int64_t rows);
constexpr int64_t kTilesToActivate = 6;

}  // namespace neo
