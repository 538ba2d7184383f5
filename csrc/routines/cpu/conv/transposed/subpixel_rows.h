#pragma once

// Transposed convolution on plain NCHW with few output channels, as decoders end: a task copies its input rows, with
// zeros around them, and for every residue of an output row modulo the stride sums over the taps that reach it; a
// register block is up to kTileRows output channels by up to kTileVectors vectors of pixels, which begin at any float
// of the copy. The residues of a row are then interleaved. Rows that are short beside a register block are one: the
// sums then run over the copy, row after row.

#include <stdint.h>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/conv/row_buffer.h"
#include "routines/cpu/microkernel/tile.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

struct SubpixelRowsSchedule {
  int64_t vectors = 4;  // of pixels per register block, 1 ... kTileVectors
  // 0: chosen by the shape.
  int64_t rows = 0;   // output channels per register block
  int64_t bands = 0;  // per task, at most as many as the second-level cache holds the input of
  // 1: a register block has all residues of its channels along a row, whose taps read the same pixels: result u of
  // residue c is output u * stride + c - pad.
  int64_t joined = 0;
};

// A band is as many output rows as the stride has; a position along a row as many pixels, and one along the depth as
// many planes.
struct SubpixelRowsPlan {
  Im2colConvShape shape;
  SubpixelRowsSchedule schedule;
  int64_t lanes = 0;
  int64_t channel_tiles = 0;       // register blocks per group
  int64_t bands = 0, columns = 0;  // bands and positions per task
  int64_t depths = 0, band_chunks = 0, column_chunks = 0;
  int64_t front = 0, top = 0, left = 0;  // input plane, row and column that the first position of all reads first
  int64_t extra_planes = 0;              // that a position along the depth reads beside its first one
  int64_t extra_rows = 0;                // that a band reads beside its first one
  int64_t row = 0;                       // floats of a copied row
  bool is_flat = false;                  // the sums of all bands of a task are one row
  int64_t row_taps = 0;                  // joined: of each residue along a row, zeros included
  int64_t first = 0;                     // joined: u of position 0
  int64_t pitch = 0;                     // floats of a residue's sums
  int64_t sums = 0;                      // where they are in the workspace, after the input
  int64_t line = 0;                      // where a row of results is made there
  int64_t workspace_size = 0;            // floats that a task uses
  int64_t tasks = 0;                     // fixed by shape and schedule

  int64_t plane() const { return (bands + extra_rows) * row; }
  int64_t channel() const { return (extra_planes + 1) * plane(); }
  // Floats of the sums of so many bands and positions.
  int64_t length(int64_t some_bands, int64_t some_columns) const {
    return is_flat ? (some_bands - 1) * row + some_columns : some_columns;
  }
};

const char* reject_subpixel_rows(const Im2colConvShape& shape);
SubpixelRowsPlan plan_subpixel_rows(const Im2colConvShape& shape, const SubpixelRowsSchedule& schedule,
                                    const TileKernels& kernels);

// Why the residues of a row cannot be joined; null where they can.
const char* reject_joined_rows(const Im2colConvShape& shape, int64_t vectors, const TileKernels& kernels);

// [group][channel tile][residue][tap][ic][oc of the tile], or joined, the residues of depth and height alone and then
// [tap][ic][residue of the width][oc of the tile]. `weight` is I O/g K....
int64_t subpixel_rows_weight_size(const SubpixelRowsPlan& plan);
void pack_subpixel_rows_weight(const SubpixelRowsPlan& plan, const float* weight, float* packed);

void run_subpixel_rows(const SubpixelRowsPlan& plan, const TileKernels& kernels, const RowKernels& row_kernels,
                       const ConvOperands& args, int64_t task_begin, int64_t task_end, float* workspace);

}  // namespace neo
