#include "routines/cpu/int8/dot_conv.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cpu/int8/code_table.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

// A task's rows in words stay in the second-level cache, beside the weights.
constexpr int64_t kBufferBytes = 192 << 10;
// Behind the last pixel, where a vector more than the row is written.
constexpr int64_t kVectorSlack = 64;

bool is_flat(const DotShape& s) {
  const DotPlanes& p = s.planes;
  return s.all_taps() == 1 && p.stride == 1 && p.pad == 0 && p.in == p.out && s.stride_h == 1 && s.stride_w == 1 &&
         s.pad_top == 0 && s.pad_left == 0 && s.oh == s.ih && s.ow == s.iw;
}

// The pixels of a task's buffer, and what a vector reads and writes behind them.
int64_t words_bytes(const DotPlan& plan) {
  const int64_t pixel = plan.keeps_blocks ? plan.blocks() * plan.lanes : plan.pixel_bytes();
  return round_up(plan.shape.planes.kernel * plan.buffer_plane() * pixel, int64_t{4}) + kVectorSlack;
}

// Rows of the buffer for pixels [first, first + count) of a line.
class BufferRows {
 public:
  BufferRows(const DotPlan& plan, const DotKernels& kernels, const DotOperands& args, uint8_t* buffer)
      : plan_(plan), kernels_(kernels), args_(args), buffer_(buffer) {}

  // Fills in what output rows [row, row + rows) by columns [column, column + columns) of a group read.
  void fill(int64_t image, int64_t plane, int64_t group, int64_t row, int64_t rows, int64_t column,
            int64_t columns) const {
    const DotShape& s = plan_.shape;
    const bool samples_rows = s.kh == 1, samples_columns = s.kw == 1;
    const int64_t row_stride = samples_rows ? s.stride_h : 1, column_stride = samples_columns ? s.stride_w : 1;
    const int64_t top = row * s.stride_h - s.pad_top, left = column * s.stride_w - s.pad_left;
    const int64_t count = (rows - 1) * plan_.row_step + (s.kh - 1) * s.dilation_h + 1;
    DotFill f;
    f.form = plan_.form;
    f.channels = s.group_ic();
    f.dst_pixel = plan_.pixel_bytes();
    f.columns = (columns - 1) * plan_.column_step + (s.kw - 1) * s.dilation_w + 1;
    f.zero = args_.zero;
    f.is_signed = args_.is_signed;
    f.src_block = plan_.form == DotFill::Form::Pixels ? plan_.lanes : args_.src_channel;
    const int64_t pixel = plan_.form == DotFill::Form::Planes   ? 1
                          : plan_.form == DotFill::Form::Blocks ? plan_.lanes
                                                                : args_.src_channel;
    f.src_pixel = pixel * column_stride;
    // The first and the last pixel inside the image.
    f.begin = std::clamp<int64_t>(left >= 0 ? 0 : ceil_div(-left, column_stride), 0, f.columns);
    f.end = std::clamp<int64_t>(s.iw > left ? ceil_div(s.iw - left, column_stride) : 0, f.begin, f.columns);
    const int64_t first_channel = group * s.group_ic();
    const uint8_t* src = args_.src + image * args_.src_batch;
    if (plan_.form == DotFill::Form::Pixels) {
      src += first_channel;
    } else {
      src += first_channel / (plan_.form == DotFill::Form::Blocks ? plan_.lanes : 1) * args_.src_channel;
    }
    const int64_t begin = f.begin, end = f.end;
    for (int64_t k = 0; k < s.planes.kernel; ++k) {
      const int64_t id = plane * s.planes.stride - s.planes.pad + k * s.planes.dilation;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t ih = top + i * row_stride;
        const bool inside = id >= 0 && id < s.planes.in && ih >= 0 && ih < s.ih;
        f.begin = inside ? begin : f.columns;
        f.end = inside ? end : f.columns;
        f.src = src + ((id * s.ih + ih) * s.iw + left + begin * column_stride) * pixel;
        f.dst = buffer_ + (k * plan_.buffer_plane() + i * plan_.buffer_columns) * plan_.pixel_bytes();
        kernels_.fill(f);
      }
    }
  }

  // The blocks of `columns` pixels of a plan that keeps them.
  void fill_blocks(int64_t image, int64_t column, int64_t columns) const {
    DotFill f;
    f.form = DotFill::Form::Blocks;
    f.channels = f.src_pixel = f.dst_pixel = plan_.lanes;
    f.end = f.columns = columns;
    f.zero = args_.zero;
    f.is_signed = args_.is_signed;
    for (int64_t b = 0; b < plan_.blocks(); ++b) {
      f.src = args_.src + image * args_.src_batch + b * args_.src_channel + column * plan_.lanes;
      f.dst = buffer_ + b * plan_.columns * plan_.lanes;
      kernels_.fill(f);
    }
  }

  // Behind the buffer's pixels and their sums: the sum of the bytes that each of the rows by columns output pixels
  // reads.
  int32_t* sums() const {
    const int64_t pixels = plan_.shape.planes.kernel * plan_.buffer_plane();
    return reinterpret_cast<int32_t*>(buffer_ + words_bytes(plan_)) + pixels;
  }

  void sum(int64_t rows, int64_t columns) const {
    const DotShape& s = plan_.shape;
    const int64_t line = plan_.buffer_columns, plane = plan_.buffer_plane(), pixel_bytes = plan_.pixel_bytes();
    int32_t* out = sums();
    int32_t* pixel_sums = out - s.planes.kernel * plane;
    const int64_t filled_rows = (rows - 1) * plan_.row_step + (s.kh - 1) * s.dilation_h + 1;
    const int64_t filled_columns = (columns - 1) * plan_.column_step + (s.kw - 1) * s.dilation_w + 1;
    for (int64_t k = 0; k < s.planes.kernel; ++k) {
      for (int64_t i = 0; i < filled_rows; ++i) {
        const int64_t at = k * plane + i * line;
        kernels_.sum_pixels(buffer_ + at * pixel_bytes, pixel_bytes, filled_columns, s.group_ic(), pixel_sums + at);
      }
    }
    if (s.planes.kernel > 1) kernels_.sum_taps(pixel_sums, plane, s.planes.kernel, filled_rows * line, pixel_sums);
    int32_t* column_sums = out + plan_.rows * plan_.columns;
    int32_t* window_sums = column_sums + line;
    const int64_t windows = (columns - 1) * plan_.column_step + 1;
    for (int64_t i = 0; i < rows; ++i, out += plan_.columns) {
      kernels_.sum_taps(pixel_sums + i * plan_.row_step * line, s.dilation_h * line, s.kh, filled_columns, column_sums);
      if (plan_.column_step == 1) {
        kernels_.sum_taps(column_sums, s.dilation_w, s.kw, columns, out);
      } else {
        kernels_.sum_taps(column_sums, s.dilation_w, s.kw, windows, window_sums);
        for (int64_t j = 0; j < columns; ++j) out[j] = window_sums[j * plan_.column_step];
      }
    }
  }

 private:
  const DotPlan& plan_;
  const DotKernels& kernels_;
  const DotOperands& args_;
  uint8_t* buffer_;
};

// The units of a task, about `part` of so many for each image, that teams of two and of four share best.
template <class Cycles, class Fits>
int64_t even_share(int64_t units, int64_t part, int64_t images, const Cycles& cycles, const Fits& fits) {
  constexpr int64_t kMaxTries = 24;
  int64_t best = part, least = std::numeric_limits<int64_t>::max();
  for (int64_t n = std::min(units, 2 * part); n >= ceil_div(part, 2); n -= ceil_div(part, kMaxTries)) {
    if (n > part && !fits(n)) continue;
    int64_t all = 0;
    for (const int64_t members : {2, 4}) all += members * ceil_div(images * ceil_div(units, n), members) * cycles(n);
    if (all < least) {
      least = all;
      best = n;
    }
  }
  return best;
}

}  // namespace

const DotResult& whole_sums() {
  static constexpr int kMaxColumns = kDotVectors * 16;
  static constexpr std::array<int32_t, kMaxColumns> kNone = {};
  static constexpr auto kAll = [] {
    std::array<int32_t, kMaxColumns> all = {};
    all.fill(-1);
    return all;
  }();
  static const DotResult result = [] {
    DotResult r;
    r.init = kNone.data();
    r.scale = r.add = reinterpret_cast<const float*>(kNone.data());
    r.mask = kAll.data();
    r.is_whole = true;
    return r;
  }();
  return result;
}

int64_t DotPlan::buffer_bytes() const {
  if (in_place) return 0;
  const int64_t pixels = shape.planes.kernel * buffer_plane();
  const int64_t sums = schedule.row_sums ? 4 * (pixels + rows * columns + 2 * buffer_columns) : 0;
  return words_bytes(*this) + sums;
}

DotPanel dot_panel(const DotPlan& plan, int64_t panel) {
  const IndexRange range = even_part(plan.group_vectors, plan.panels, panel);
  return {range.begin, range.end};
}

DotShape join_groups(const DotShape& shape, DotFill::Form form, int64_t lanes) {
  const auto vectors = [&](int64_t channels) { return lanes / std::gcd(lanes, channels); };
  int64_t joined = vectors(shape.group_oc());
  if (form == DotFill::Form::Blocks) joined = std::max(joined, vectors(shape.group_ic()));
  DotShape s = shape;
  if (s.groups % joined == 0) s.groups /= joined;
  return s;
}

const char* reject_dot(const DotShape& shape, DotFill::Form form, int64_t lanes) {
  const DotShape s = join_groups(shape, form, lanes);
  if (s.all_taps() > kMaxDotTaps) return "the kernel has more than 256 taps";
  if (s.groups > 1) {
    if (s.group_oc() % lanes != 0) return "output channels per group must be a multiple of the vector width";
    if (form == DotFill::Form::Blocks && s.group_ic() % lanes != 0) return "a group's input channels must fill blocks";
  }
  return nullptr;
}

DotPlan plan_dot(const DotShape& shape, const DotSchedule& schedule, const DotKernels& kernels, DotFill::Form form,
                 bool may_read) {
  DotPlan plan;
  plan.shape = join_groups(shape, form, kernels.lanes);
  plan.schedule = schedule;
  plan.lanes = kernels.lanes;
  plan.codes = kernels.codes;
  plan.form = form;
  DotShape& s = plan.shape;
  const bool flat = is_flat(s);
  if (flat) {
    s.iw = s.ow = s.planes.in * s.ih * s.iw;
    s.ih = s.oh = s.planes.in = s.planes.out = 1;
  }
  const bool whole_words =
      form == DotFill::Form::Blocks || (form == DotFill::Form::Pixels && s.ic % kernels.codes == 0);
  const bool keeps_source = flat && !schedule.row_sums && kernels.codes == 4 && s.groups == 1;
  plan.in_place = keeps_source && may_read && whole_words;
  plan.keeps_blocks = keeps_source && !may_read && form == DotFill::Form::Blocks;
  plan.packs_rows = form == DotFill::Form::Planes && s.kw > 1 && s.dilation_w == 1 && s.group_ic() < plan.codes;
  plan.words = ceil_div(s.group_ic() * (plan.packs_rows ? s.kw : 1), plan.codes);
  plan.group_vectors = ceil_div(s.group_oc(), plan.lanes);
  plan.panels = ceil_div(plan.group_vectors, schedule.oc_vectors);
  plan.row_step = s.kh == 1 ? 1 : s.stride_h;
  plan.column_step = s.kw == 1 ? 1 : s.stride_w;

  // Codes cost a fraction of what floats do; of few pixels, the weights' way from memory costs more.
  constexpr int64_t kFaster = 3, kOfWeight = 3;
  const int64_t images = std::max<int64_t>(1, s.n * s.planes.out * s.groups);
  const int64_t weights = s.oc * s.group_ic() * s.all_taps();
  const int64_t work = std::max(s.all_flops() / kFaster, kOfWeight * weights);
  const int64_t wanted = ceil_div(worthwhile_tasks(work), images);
  const bool is_heavy = s.group_oc() * s.all_taps() > 2 * s.oh * s.ow;
  const bool by_columns = s.oh == 1;
  const int64_t tile = kernels.max_rows[std::min(schedule.oc_vectors, plan.group_vectors)];
  const int64_t units = std::max<int64_t>(1, by_columns ? ceil_div(s.ow, tile) : s.oh);
  int64_t part = ceil_div(units, std::clamp<int64_t>(is_heavy ? 1 : wanted, 1, units));
  const auto buffer_fits = [&](int64_t n) {
    const int64_t rows = by_columns ? 1 : n, columns = by_columns ? n * tile : s.ow;
    const int64_t buffer_rows = (rows - 1) * plan.row_step + (s.kh - 1) * s.dilation_h + 1;
    const int64_t buffer_columns = (columns - 1) * plan.column_step + (s.kw - 1) * s.dilation_w + 1;
    return plan.in_place || s.planes.kernel * buffer_rows * buffer_columns * plan.pixel_bytes() <= kBufferBytes;
  };
  while (part > 1 && !buffer_fits(part)) part = ceil_div(part, 2);
  // Cycles of a unit's products, of bringing a row into words, and of a task's beginning.
  const int64_t columns = by_columns ? tile : s.ow,
                padded = (columns - 1) * plan.column_step + (s.kw - 1) * s.dilation_w + 1;
  const int64_t products = columns * plan.taps() * plan.words * plan.group_vectors / 2;
  const int64_t filled = plan.in_place ? 0 : padded * 2 * ceil_div(plan.pixel_bytes(), plan.lanes);
  const auto task_cycles = [&](int64_t n) {
    constexpr int64_t kTaskCycles = 400;
    return kTaskCycles + n * products +
           filled * (by_columns ? n : (n - 1) * plan.row_step + (s.kh - 1) * s.dilation_h + 1);
  };
  if (part < units) part = even_share(units, part, images, task_cycles, buffer_fits);
  plan.rows = by_columns ? 1 : part;
  plan.columns = by_columns ? std::min(part * tile, std::max<int64_t>(1, s.ow)) : s.ow;
  plan.row_chunks = ceil_div(s.oh, plan.rows);
  plan.column_chunks = s.ow == 0 ? 0 : ceil_div(s.ow, plan.columns);
  const int64_t chunks = std::max<int64_t>(1, plan.row_chunks * plan.column_chunks);
  const int64_t panel_parts = std::clamp<int64_t>(ceil_div(wanted, chunks), 1, plan.panels);
  plan.panel_chunk = ceil_div(plan.panels, panel_parts);
  plan.panel_chunks = ceil_div(plan.panels, plan.panel_chunk);
  plan.buffer_rows = (plan.rows - 1) * plan.row_step + (s.kh - 1) * s.dilation_h + 1;
  plan.buffer_columns = (plan.columns - 1) * plan.column_step + (s.kw - 1) * s.dilation_w + 1;
  plan.tasks = s.n * s.planes.out * s.groups * plan.row_chunks * plan.column_chunks * plan.panel_chunks;
  return plan;
}

void run_dot(const DotPlan& plan, const DotKernels& kernels, const DotOperands& args, int64_t task_begin,
             int64_t task_end, uint8_t* buffer) {
  const DotShape& s = plan.shape;
  const int64_t taps = plan.taps(), pixel_bytes = plan.pixel_bytes();
  int64_t offsets[kMaxDotTaps];
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t columns = plan.packs_rows ? 1 : s.kw;
    const int64_t plane = tap / (s.kh * columns), row = tap / columns % s.kh * s.dilation_h;
    const int64_t column = tap % columns * s.dilation_w;
    offsets[tap] = (plane * plan.buffer_plane() + row * plan.buffer_columns + column) * pixel_bytes;
  }
  const BufferRows rows_of(plan, kernels, args, buffer);
  int64_t filled = -1;
  for (int64_t task = task_begin; task < task_end; ++task) {
    // Tasks that share pixels are neighbours.
    const int64_t panels = task % plan.panel_chunks, place = task / plan.panel_chunks;
    const int64_t chunk = place % (plan.row_chunks * plan.column_chunks);
    const int64_t group = place / (plan.row_chunks * plan.column_chunks) % s.groups;
    const int64_t plane = place / (plan.row_chunks * plan.column_chunks) / s.groups % s.planes.out;
    const int64_t image = place / (plan.row_chunks * plan.column_chunks) / s.groups / s.planes.out;
    const int64_t row = chunk / plan.column_chunks * plan.rows, column = chunk % plan.column_chunks * plan.columns;
    const int64_t rows = std::min(plan.rows, s.oh - row), columns = std::min(plan.columns, s.ow - column);
    if (!plan.in_place && filled != place) {
      plan.keeps_blocks ? rows_of.fill_blocks(image, column, columns)
                        : rows_of.fill(image, plane, group, row, rows, column, columns);
      if (plan.schedule.row_sums) rows_of.sum(rows, columns);
      filled = place;
    }
    DotTile tile;
    tile.taps = offsets;
    tile.tap_count = taps;
    tile.result = &args.result;
    const uint8_t* src = buffer;
    int64_t src_pixel = pixel_bytes;
    tile.block_words = tile.last_words = plan.words;
    if (plan.in_place) {
      src_pixel = plan.form == DotFill::Form::Blocks ? plan.lanes : args.src_channel;
      src = args.src + image * args.src_batch + column * src_pixel;
    }
    if (plan.keeps_blocks || (plan.in_place && plan.form == DotFill::Form::Blocks)) {
      src_pixel = plan.lanes;
      tile.block_words = plan.lanes / 4;
      tile.blocks = plan.blocks();
      tile.last_words = plan.words - (tile.blocks - 1) * tile.block_words;
      tile.block_stride = plan.in_place ? args.src_channel : plan.columns * plan.lanes;
    }
    tile.step = src_pixel * plan.column_step;
    const int64_t item = args.result.is_float || args.result.is_whole ? 4 : 1;
    tile.dst_row = tile.residual_row = args.dst_pixel;
    tile.dst_vector = args.dst_vector;
    tile.residual_vector = args.residual_vector;
    const int64_t last_panel = std::min((panels + 1) * plan.panel_chunk, plan.panels);
    for (int64_t p = panels * plan.panel_chunk; p < last_panel; ++p) {
      const DotPanel panel = dot_panel(plan, p);
      const int64_t vector = group * plan.group_vectors + panel.begin;
      const bool is_dense = args.dst_vector == plan.lanes;
      tile.column = vector * plan.lanes;
      tile.columns = is_dense ? s.oc - tile.column : kDotVectors * plan.lanes;
      tile.weight = args.weight + tile.column * taps * plan.words;
      const DotTileKernel* kernel = kernels.tiles[panel.vectors()];
      for (int64_t line = 0; line < rows; ++line) {
        const uint8_t* line_src = src + line * plan.row_step * plan.buffer_columns * pixel_bytes;
        for_each_dot_tile(columns, kernels.max_rows[panel.vectors()], [&](int64_t first, int64_t count) {
          tile.src = line_src + first * tile.step;
          const int64_t pixel = (plane * s.oh + row + line) * s.ow + column + first;
          const int64_t at = image * args.dst_batch + vector * args.dst_vector + pixel * args.dst_pixel;
          tile.dst = static_cast<uint8_t*>(args.dst) + at * item;
          if (plan.schedule.row_sums) tile.row_sums = rows_of.sums() + line * plan.columns + first;
          if (args.residual) {
            tile.residual =
                args.residual + image * args.residual_batch + vector * args.residual_vector + pixel * args.dst_pixel;
          }
          kernel[count](tile);
        });
      }
      if (!args.table) continue;
      const int64_t pixel = (plane * s.oh + row) * s.ow + column, valid = s.oc - tile.column;
      uint8_t* dst = static_cast<uint8_t*>(args.dst) + image * args.dst_batch + vector * args.dst_vector;
      dst += pixel * args.dst_pixel;
      if (!is_dense) {
        for (int64_t v = 0; v < panel.vectors(); ++v, dst += args.dst_vector)
          args.table->apply(dst, rows * columns, plan.lanes, valid - v * plan.lanes);
      } else if (plan.panels == 1) {
        args.table->apply(dst, dst, columns * s.oc);
      } else {
        const int64_t count = std::min(valid, panel.vectors() * plan.lanes);
        for (int64_t i = 0; i < columns; ++i, dst += args.dst_pixel) args.table->apply(dst, dst, count);
      }
    }
  }
}

}  // namespace neo
