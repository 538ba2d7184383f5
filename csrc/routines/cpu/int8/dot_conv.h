#pragma once

// Convolutions and matrix products of 8-bit codes, summed exactly: the rows of a task are brought into words of
// neighbouring channels (with the padding around them), and register blocks multiply these by packed weights. A product
// of matrices is a convolution of one row whose pixels are the matrix's rows.

#include <stdint.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "routines/cpu/int8/dot_tile.h"
#include "routines/patterns/conv_shape.h"

namespace neo {

// The axis before rows and columns, in convolutions of three axes: planes, of which an output plane reads `kernel`.
struct DotPlanes {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, pad = 0, dilation = 1;
};

struct DotShape : ConvShape {
  DotPlanes planes;

  int64_t all_taps() const { return planes.kernel * taps(); }
  int64_t all_flops() const { return planes.kernel * planes.out * flops(); }
};

struct DotSchedule {
  int64_t oc_vectors = 4;  // of output channels per register block, 1 ... 4
  bool row_sums = false;   // weights in words of bytes are less than they should be, by DotResult's shift
};

// Made by plan_dot; plain bytes.
struct DotPlan {
  DotShape shape;  // of one row, where each output pixel reads the input pixel at its place
  DotSchedule schedule;
  int64_t lanes = 0, codes = 4;  // the latter of a word
  DotFill::Form form = DotFill::Form::Blocks;
  bool in_place = false;      // the source's own bytes are the words
  bool keeps_blocks = false;  // the buffer has blocks of channels as the source has
  bool packs_rows = false;  // a window's row is one tap: pixels of few channels lie without gaps, and words across them
  int64_t words = 0;        // of a tap of one group
  int64_t group_vectors = 0;  // of output channels of one group, padding lanes included
  int64_t panels = 0;         // per group
  // A task: output rows by output columns, of some panels.
  int64_t rows = 0, columns = 0, panel_chunk = 0;
  int64_t row_chunks = 0, column_chunks = 0, panel_chunks = 0;
  int64_t tasks = 0;
  // Steps in a task's buffer, which has shape.planes.kernel planes: from output row to output row and from output pixel
  // to output pixel, in buffer rows and pixels.
  int64_t row_step = 1, column_step = 1;
  int64_t buffer_rows = 0, buffer_columns = 0;

  int64_t taps() const { return packs_rows ? shape.planes.kernel * shape.kh : shape.all_taps(); }
  int64_t buffer_plane() const { return buffer_rows * buffer_columns; }  // pixels
  int64_t blocks() const { return (words * codes + lanes - 1) / lanes; }
  int64_t pixel_bytes() const { return packs_rows ? shape.group_ic() * 4 / codes : words * 4; }
  int64_t buffer_bytes() const;
  int64_t channels() const { return shape.groups * group_vectors * lanes; }  // padded
  int64_t weight_words() const { return channels() * taps() * words; }
};

class CodeTable;

struct DotOperands {
  const uint8_t* src = nullptr;
  int64_t src_batch = 0, src_channel = 0;  // bytes; the latter of a channel, or of a block of them
  int32_t zero = 0;
  bool is_signed = false;
  const int32_t* weight = nullptr;
  DotResult result;
  const uint8_t* residual = nullptr;  // held like dst, or null
  int64_t residual_batch = 0, residual_vector = 0;
  void* dst = nullptr;
  int64_t dst_batch = 0, dst_vector = 0;  // elements
  int64_t dst_pixel = 0;                  // from pixel to pixel, in dst and residual
  const CodeTable* table = nullptr;       // that the result's codes go through, or null
};

constexpr int64_t kMaxDotTaps = 256;

// The sums of a tile as they are, from 0 on, in columns of which none is padding.
const DotResult& whole_sums();

// As few groups of the shape's as fill vectors together, as one of their channels with zeros between them.
DotShape join_groups(const DotShape& shape, DotFill::Form form, int64_t lanes);

// Null where the kernels take the shape; else why not.
const char* reject_dot(const DotShape& shape, DotFill::Form form, int64_t lanes);

// `may_read`: the codes are bytes of words as they are.
DotPlan plan_dot(const DotShape& shape, const DotSchedule& schedule, const DotKernels& kernels, DotFill::Form form,
                 bool may_read);

// Weights in the order [group][panel][tap][word][columns of the panel]; read(channel, count, input channel of the
// group, tap of the kernel, to) writes those of so many channels.
template <class Read>
void pack_dot_weight(const DotPlan& plan, const Read& read, int32_t* packed);

void run_dot(const DotPlan& plan, const DotKernels& kernels, const DotOperands& args, int64_t task_begin,
             int64_t task_end, uint8_t* buffer);

// Puts a weight in its place among words of bytes or of int16.
inline void put_dot_weight(int32_t* words, int64_t codes, int64_t at, int32_t weight) {
  const auto code = static_cast<int16_t>(weight);  // its low byte comes first
  auto* const bytes = reinterpret_cast<std::byte*>(words);
  if (codes == 4) {
    std::memcpy(bytes + at, &code, 1);
  } else {
    std::memcpy(bytes + at * 2, &code, 2);
  }
}

// Vectors [begin, end) of a group that a panel has.
struct DotPanel {
  int64_t begin, end;
  int64_t vectors() const { return end - begin; }
};
DotPanel dot_panel(const DotPlan& plan, int64_t panel);

// visit(pixel, rows) for the register blocks of at most `most` rows that `pixels` are cut into, as even as possible.
template <class Visit>
void for_each_dot_tile(int64_t pixels, int64_t most, const Visit& visit) {
  if (pixels <= 0) return;
  const int64_t tiles = (pixels + most - 1) / most, rows = pixels / tiles, more = pixels % tiles;
  for (int64_t i = 0, pixel = 0; i < tiles; ++i) {
    const int64_t count = rows + (i < more ? 1 : 0);
    visit(pixel, count);
    pixel += count;
  }
}

template <class Read>
void pack_dot_weight(const DotPlan& plan, const Read& read, int32_t* packed) {
  const DotShape& s = plan.shape;
  std::vector<int32_t> weights(static_cast<size_t>(plan.lanes));
  const int64_t of_tap = s.group_ic() * (plan.packs_rows ? s.kw : 1);
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t p = 0; p < plan.panels; ++p) {
      const DotPanel panel = dot_panel(plan, p);
      const int64_t first = panel.begin * plan.lanes, columns = panel.vectors() * plan.lanes;
      const int64_t valid = std::clamp<int64_t>(s.group_oc() - first, 0, columns);
      for (int64_t tap = 0; tap < plan.taps(); ++tap) {
        for (int64_t word = 0; word < plan.words; ++word, packed += columns) {
          std::fill_n(packed, columns, 0);
          for (int64_t i = 0; i < plan.codes && word * plan.codes + i < of_tap; ++i) {
            const int64_t at = word * plan.codes + i, ic = at % s.group_ic(), column = at / s.group_ic();
            const int64_t from = plan.packs_rows ? tap * s.kw + column : tap;
            for (int64_t vector = 0; vector < valid; vector += plan.lanes) {
              const int64_t channel = g * s.group_oc() + first + vector, lanes = std::min(plan.lanes, valid - vector);
              read(channel, lanes, ic, from, weights.data());
              for (int64_t lane = 0; lane < lanes; ++lane) {
                const int64_t to = vector * plan.codes + dot_weight_at(plan.lanes, plan.codes, lane, i);
                put_dot_weight(packed, plan.codes, to, weights[static_cast<size_t>(lane)]);
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace neo
