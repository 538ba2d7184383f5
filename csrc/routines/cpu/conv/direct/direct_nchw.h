#pragma once

// Direct convolution that reads plain NCHW and writes NCHW[oc_bn]c: the first layer of a network, with few input
// channels. A task copies what needs padding at the sides, of the input rows of a few output rows, into a row buffer.

#include <stdint.h>

#include "base/int_math.h"
#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/conv/row_buffer.h"
#include "routines/cpu/microkernel/tile.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

constexpr int64_t kStemChannels = 16;   // most input channels that the routines take
constexpr int64_t kStemProducts = 512;  // most ic * kh * kw
// Share of what register blocks reach that is left behind the short sums.
constexpr double kStemEfficiency = 0.9;

struct DirectNchwSchedule {
  int64_t oc_bn = 16;
  int64_t reg_n = 0;       // pixels per register block; 0: as many as the registers hold
  int64_t oc_vectors = 4;  // vectors of output channels per register block
  int64_t lines = 0;       // output rows per task; 0: chosen by the shape
};

struct DirectNchwPlan {
  ConvShape shape;
  DirectNchwSchedule schedule;
  int64_t lanes = 0;
  int64_t vectors = 0;  // of output channels, padding lanes included
  int64_t panels = 0;
  int64_t rows = 0;  // output rows per task
  int64_t chunks = 0;
  ConvShape padded;  // the shape as the row buffer sees it: a stride of one, so that rows stay whole
  RowBuffer buffer;
  // Output columns that read no padding at the sides: register blocks there read the image itself. None where the row
  // buffer would hold most of a row anyway.
  int64_t inside_begin = 0, inside_end = 0;
  int64_t left_end = 0, right_begin = 0;  // output columns whose input the row buffer holds: before, from there on
  int64_t workspace_size = 0;             // floats that a task uses
  int64_t tasks = 0;
};

const char* reject_direct_nchw(const ConvShape& shape, const DirectNchwSchedule& schedule, int64_t lanes);
DirectNchwPlan plan_direct_nchw(const ConvShape& shape, const DirectNchwSchedule& schedule, const TileKernels& kernels);

// [panel][ic][tap][oc of the panel]; `weight` is OIHW.
int64_t direct_nchw_weight_size(const DirectNchwPlan& plan);
void pack_direct_nchw_weight(const DirectNchwPlan& plan, const float* weight, float* packed);

// The register blocks of some output lines: where they find their input.
class DirectNchwLines {
 public:
  // `channel`: from channel to channel of the image; `workspace`: plan.workspace_size floats.
  DirectNchwLines(const DirectNchwPlan& plan, const RowKernels& kernels, int64_t channel, float* workspace)
      : plan_(plan), kernels_(kernels), channel_(channel), workspace_(workspace) {}

  // Goes to these output lines, at most plan.rows, of the image at `src`.
  void read(const float* src, IndexRange lines);

  // The register blocks of one of them, of at most `most` pixels: sets what `tile` reads, whose weights begin with
  // those of the panel and are weight_step apart, and calls f with the output columns.
  template <class F>
  void each_tile(int64_t line, int64_t most, Tile& tile, F&& f) {
    const ConvShape& s = plan_.shape;
    const int64_t row = (line - first_line_) * s.stride_h;
    set_taps(top_ + row, tile.weight_step);
    tile.points = true;
    tile.step = s.stride_w;
    tile.tap_count = tap_count_;
    const float* padded = workspace_ + row * plan_.buffer.row;
    const float* inside = src_ + (top_ + row) * s.iw;
    const int64_t tiles = ceil_div(s.ow, most);
    const bool fetches = line != fetched_line_;  // the first panel of a line does
    fetched_line_ = line;
    for (int64_t i = 0; i < tiles; ++i) {
      const IndexRange part = even_part(s.ow, tiles, i);
      const bool is_inside = part.begin >= plan_.inside_begin && part.end <= plan_.inside_end;
      tile.taps = is_inside ? inside_ : padded_;
      tile.src = (is_inside ? inside : padded) + part.begin * s.stride_w;
      if (fetches) fetch(top_ + row, part);
      f(part);
    }
  }

 private:
  // For a line whose window begins `top` input rows into the image: only rows that lie in it count.
  void set_taps(int64_t top, int64_t weight_step);
  // Fetches what the next line's window, below that which begins at `top`, reads more for these columns.
  void fetch(int64_t top, IndexRange columns) const;

  const DirectNchwPlan& plan_;
  const RowKernels& kernels_;
  int64_t channel_;
  float* workspace_;
  const float* src_ = nullptr;
  int64_t first_line_ = 0, top_ = 0, fetched_line_ = -1;
  IndexRange rows_ = {-1, -1};  // of the window, that count
  int64_t weight_step_ = 0, tap_count_ = 0;
  TileTap padded_[kStemProducts], inside_[kStemProducts];
};

void run_direct_nchw(const DirectNchwPlan& plan, const TileKernels& kernels, const RowKernels& row_kernels,
                     const ConvOperands& args, int64_t task_begin, int64_t task_end, float* workspace);

}  // namespace neo
