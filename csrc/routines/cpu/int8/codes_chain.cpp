#include "routines/cpu/int8/codes_chain.h"

#include <algorithm>
#include <limits>

#include "base/int_math.h"
#include "routines/cpu/int8/code_table.h"
#include "routines/cpu/int8/int8_problem.h"

namespace neo {
namespace {

constexpr int64_t kFloat = sizeof(float), kLineBytes = 64;
// Behind the last pixel of words, where a vector more may be written or read.
constexpr int64_t kChainSlack = 64;

// The rows of the expanded image that output rows [begin, end) read.
IndexRange source_rows(const ConvShape& s, IndexRange out) {
  const int64_t first = out.begin * s.stride_h - s.pad_top;
  const int64_t last = (out.end - 1) * s.stride_h - s.pad_top + (s.kh - 1) * s.dilation_h + 1;
  return {std::clamp<int64_t>(first, 0, s.ih), std::clamp<int64_t>(last, 0, s.ih)};
}

int64_t window_rows(const ConvShape& s, int64_t rows) {
  return std::min(s.ih, (rows - 1) * s.stride_h + (s.kh - 1) * s.dilation_h + 1);
}

// Vectors whose memory does not repeat the same cache sets.
int64_t vector_step(int64_t pixels, int64_t lanes) {
  return (pixels | 1) * lanes;
}

DotPlan plan_pointwise(int64_t ic, int64_t oc, const DotKernels& kernels) {
  DotShape s;
  s.ic = ic;
  s.oc = oc;
  return plan_dot(s, {kChainVectors, false}, kernels, DotFill::Form::Blocks, false);
}

void set_sizes(CodesChainPlan& plan, int64_t strip) {
  const ConvShape& s = plan.shape.depthwise;
  plan.strip = strip;
  plan.band = std::clamp<int64_t>(ceil_div(kChainPixels, std::max<int64_t>(1, s.ow)), 1, strip);
  plan.ring_rows = window_rows(s, plan.band);
  plan.ring_vector = vector_step(plan.ring_rows * s.iw, plan.lanes);
  const int64_t strip_rows = plan.shape.shares_strip() ? s.oh : strip;
  plan.strip_vector = plan.shape.projects ? vector_step(strip_rows * s.ow, plan.lanes) : 0;
  const auto words = [](const DotPlan& product, int64_t pixels) {
    return round_up(pixels * product.words * 4 + kChainSlack, kLineBytes);
  };
  const bool fills_x = plan.shape.expands && !plan.shape.x_is_bytes;
  const bool fills_strip = plan.shape.projects && !plan.shape.strip_is_bytes;
  const int64_t strip_bytes = plan.vectors * plan.strip_vector + kChainSlack;
  plan.ring_at = fills_x ? words(plan.expand, window_rows(s, strip) * s.iw) : 0;
  plan.sums_at = plan.ring_at + round_up(kChainVectors * plan.ring_vector * kFloat, kLineBytes);
  plan.words_at = plan.sums_at + round_up(plan.band * s.ow * plan.lanes * kFloat, kLineBytes);
  plan.strip_at = plan.words_at + (fills_strip ? words(plan.project, kChainPixels) : 0);
  plan.workspace_bytes = plan.strip_at + (plan.projects_alone() ? strip_bytes : 0);
  plan.shared_bytes = plan.shape.shares_strip() ? strip_bytes : 0;
}

// One task: rows of the results by panels of the depthwise channels. `strip`: of codes, from output row `first` on.
class CodesChainTask {
 public:
  CodesChainTask(const CodesChainPlan& plan, const CodesChainParts& parts, const CodesChainArgs& args, int64_t image,
                 uint8_t* workspace, uint8_t* strip, int64_t first)
      : plan_(plan), parts_(parts), args_(args), workspace_(workspace), strip_(strip), first_(first) {
    src_ = args.src + image * args.src_batch;
    dst_ = args.dst + image * args.dst_batch;
    if (args.residual) residual_ = args.residual + image * args.residual_batch;
    ring_ = reinterpret_cast<float*>(workspace + plan.ring_at);
    sums_ = reinterpret_cast<float*>(workspace + plan.sums_at);
  }

  // The strip's codes of output rows, or the results where no projection follows.
  void run(IndexRange rows, IndexRange panels) {
    const ConvShape& s = plan_.shape.depthwise;
    source_ = source_rows(s, rows);
    if (plan_.shape.expands && !plan_.shape.x_is_bytes) {
      fill_words(src_ + source_.begin * s.iw * plan_.lanes, args_.src_block, plan_.expand, args_.x,
                 source_.size() * s.iw, workspace_);
    }
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const IndexRange vectors = even_part(plan_.vectors, plan_.panels, panel);
      int64_t done = 0;
      for (int64_t row = rows.begin; row < rows.end; row += plan_.band) {
        const IndexRange out{row, std::min(row + plan_.band, rows.end)};
        const IndexRange in = source_rows(s, out);
        plan_.shape.expands ? expand(vectors, {std::max(done, in.begin), in.end})
                            : read(vectors, {std::max(done, in.begin), in.end});
        done = std::max(done, in.end);
        for (int64_t v = vectors.begin; v < vectors.end; ++v) depthwise(v, v - vectors.begin, out);
      }
    }
  }

  // Output pixels of the chain.
  void project(IndexRange pixels) {
    const ConvShape& s = plan_.shape.depthwise;
    const DotPlan& product = plan_.project;
    const int64_t lanes = plan_.lanes;
    uint8_t* words = workspace_ + plan_.words_at;
    DotTile t = make_tile(args_.project);
    t.dst_row = t.residual_row = lanes;
    t.dst_vector = args_.dst_block;
    t.residual_vector = args_.residual_block;
    const int64_t chunks = ceil_div(pixels.size(), kChainPixels);
    for (int64_t i = 0; i < chunks; ++i) {
      const IndexRange chunk = even_part(pixels.size(), chunks, i);
      const int64_t first = pixels.begin + chunk.begin, count = chunk.size();
      const uint8_t* codes = strip_ + (first - first_ * s.ow) * lanes;
      if (plan_.shape.strip_is_bytes) {
        read_blocks(t, codes, plan_.strip_vector, product);
      } else {
        fill_words(codes, plan_.strip_vector, product, args_.strip, count, words);
        read_words(t, words, product);
      }
      const uint8_t* src = t.src;
      for (int64_t p = 0; p < product.panels; ++p) {
        const DotPanel panel = dot_panel(product, p);
        set_panel(t, args_.project, panel, product);
        const DotTileKernel* kernel = parts_.dot->tiles[panel.vectors()];
        for_each_dot_tile(count, parts_.dot->max_rows[panel.vectors()], [&](int64_t pixel, int64_t rows) {
          const int64_t at = (first + pixel) * lanes;
          t.src = src + pixel * t.step;
          t.dst = dst_ + panel.begin * args_.dst_block + at;
          if (residual_) t.residual = residual_ + panel.begin * args_.residual_block + at;
          kernel[rows](t);
        });
        for (int64_t v = panel.begin; args_.project.table && v < panel.end; ++v)
          look_up(args_.project, dst_ + v * args_.dst_block + first * lanes, count, v, product.shape.oc);
      }
    }
  }

 private:
  static constexpr int64_t kTap = 0;

  // Pixels of blocks of codes that lie side by side as words.
  void fill_words(const uint8_t* codes, int64_t block, const DotPlan& product, CodesView view, int64_t pixels,
                  uint8_t* words) const {
    DotFill f;
    f.src = codes;
    f.src_pixel = plan_.lanes;
    f.src_block = block;
    f.channels = product.shape.ic;
    f.dst = words;
    f.dst_pixel = product.words * 4;
    f.end = f.columns = pixels;
    f.zero = view.zero;
    f.is_signed = view.is_signed;
    parts_.dot->fill(f);
  }

  static DotTile make_tile(const CodesChainStage& stage) {
    DotTile t;
    t.taps = &kTap;
    t.tap_count = 1;
    t.result = &stage.result;
    return t;
  }

  static void read_words(DotTile& t, const uint8_t* words, const DotPlan& product) {
    t.src = words;
    t.step = product.words * 4;
    t.block_words = t.last_words = product.words;
  }

  // Bytes of blocks as they are.
  void read_blocks(DotTile& t, const uint8_t* codes, int64_t block, const DotPlan& product) const {
    t.src = codes;
    t.step = plan_.lanes;
    t.block_words = plan_.lanes / kByteCodes;
    t.blocks = ceil_div(product.words, t.block_words);
    t.last_words = product.words - (t.blocks - 1) * t.block_words;
    t.block_stride = block;
  }

  void set_panel(DotTile& t, const CodesChainStage& stage, DotPanel panel, const DotPlan& product) const {
    t.column = panel.begin * plan_.lanes;
    t.columns = kDotVectors * plan_.lanes;
    t.weight = stage.weight + t.column * product.words;
  }

  void look_up(const CodesChainStage& stage, uint8_t* codes, int64_t pixels, int64_t vector, int64_t channels) const {
    if (stage.table) stage.table->apply(codes, pixels, plan_.lanes, channels - vector * plan_.lanes);
  }

  float* ring_row(int64_t vector, int64_t row) const {
    return ring_ + vector * plan_.ring_vector + row % plan_.ring_rows * plan_.shape.depthwise.iw * plan_.lanes;
  }

  // visit(rows, pixels) for parts of the rows that lie side by side in the ring.
  template <class Visit>
  void for_each_part(IndexRange rows, const Visit& visit) const {
    while (rows.begin < rows.end) {
      const int64_t count = std::min(rows.size(), plan_.ring_rows - rows.begin % plan_.ring_rows);
      visit(rows.begin, count * plan_.shape.depthwise.iw);
      rows.begin += count;
    }
  }

  // Rows of the chain's input into the ring.
  void read(IndexRange vectors, IndexRange rows) const {
    for_each_part(rows, [&](int64_t row, int64_t pixels) {
      for (int64_t v = vectors.begin; v < vectors.end; ++v) {
        parts_.chain->read(src_ + v * args_.src_block + row * plan_.shape.depthwise.iw * plan_.lanes, pixels,
                           args_.inner.zero, args_.inner.is_signed, ring_row(v - vectors.begin, row));
      }
    });
  }

  // Rows of the expanded image into the ring.
  void expand(IndexRange vectors, IndexRange rows) const {
    const int64_t lanes = plan_.lanes, width = plan_.shape.depthwise.iw, count = vectors.size();
    const DotPlan& product = plan_.expand;
    const CodesChainStage& stage = args_.expand;
    alignas(64) int32_t sums[kChainPixels * kChainVectors * kMaxLanes];
    auto* codes = reinterpret_cast<uint8_t*>(sums);
    DotTile t = make_tile(stage);
    set_panel(t, stage, {vectors.begin, vectors.end}, product);
    plan_.shape.x_is_bytes ? read_blocks(t, src_ + source_.begin * width * lanes, args_.src_block, product)
                           : read_words(t, workspace_, product);
    t.dst_row = lanes;
    t.dst_vector = kChainPixels * lanes;
    const uint8_t* src = t.src;
    for_each_part(rows, [&](int64_t row, int64_t pixels) {
      const int64_t chunks = ceil_div(pixels, kChainPixels);
      for (int64_t i = 0; i < chunks; ++i) {
        const IndexRange chunk = even_part(pixels, chunks, i);
        const uint8_t* from = src + ((row - source_.begin) * width + chunk.begin) * t.step;
        for_each_dot_tile(chunk.size(), parts_.dot->max_rows[count], [&](int64_t pixel, int64_t rows) {
          t.src = from + pixel * t.step;
          t.dst = codes + pixel * lanes;
          if (!stage.table) t.sums = sums + pixel * count * lanes;
          parts_.dot->tiles[count][rows](t);
        });
        for (int64_t v = 0; v < count; ++v) {
          float* to = ring_row(v, row) + chunk.begin * lanes;
          if (!stage.table) {
            parts_.chain->numbers(sums + v * lanes, count * lanes, chunk.size(), stage.result, t.column + v * lanes,
                                  stage.hard_swish, to);
            continue;
          }
          uint8_t* of_vector = codes + v * t.dst_vector;
          look_up(stage, of_vector, chunk.size(), vectors.begin + v, product.shape.oc);
          parts_.chain->read(of_vector, chunk.size(), args_.inner.zero, args_.inner.is_signed, to);
        }
      }
    });
  }

  // Output rows of one vector of channels, which has a place in the ring.
  void depthwise(int64_t vector, int64_t place, IndexRange out) {
    const ConvShape& s = plan_.shape.depthwise;
    const int64_t lanes = plan_.lanes;
    const float* rows[kDepthwiseMaxRows];
    DepthwiseLine line;
    line.rows = rows;
    line.set_shape(s);
    line.lo = -std::numeric_limits<float>::infinity();
    line.hi = std::numeric_limits<float>::infinity();
    line.valid = lanes;
    line.weight = args_.depthwise_weight + vector * s.taps() * lanes;
    line.bias = args_.depthwise_init + vector * lanes;
    for (int64_t oh = out.begin; oh < out.end; ++oh) {
      for (int64_t i = 0; i < s.kh; ++i) {
        const int64_t ih = oh * s.stride_h - s.pad_top + i * s.dilation_h;
        rows[i] = ih < 0 || ih >= s.ih ? nullptr : ring_row(place, ih);
      }
      line.dst = sums_ + (oh - out.begin) * s.ow * lanes;
      parts_.depthwise->line(line);
    }
    const int64_t pixels = out.size() * s.ow;
    uint8_t* codes = plan_.shape.projects ? strip_ + vector * plan_.strip_vector + (out.begin - first_) * s.ow * lanes
                                          : dst_ + vector * args_.dst_block + out.begin * s.ow * lanes;
    parts_.chain->codes(sums_, pixels, args_.depthwise.result, vector * lanes, args_.depthwise.hard_swish, codes);
    look_up(args_.depthwise, codes, pixels, vector, s.oc);
  }

  static constexpr int64_t kMaxLanes = 16;

  const CodesChainPlan& plan_;
  const CodesChainParts& parts_;
  const CodesChainArgs& args_;
  const uint8_t* src_;
  const uint8_t* residual_ = nullptr;
  uint8_t* dst_;
  uint8_t* workspace_;
  uint8_t* strip_;
  float* ring_;
  float* sums_;
  int64_t first_;
  IndexRange source_{0, 0};  // rows of the expanded image that the task reads
};

}  // namespace

CodesChainPlan plan_codes_chain(const CodesChainShape& shape, const CodesChainParts& parts, int64_t wanted,
                                int64_t cache_bytes) {
  const ConvShape& s = shape.depthwise;
  CodesChainPlan plan;
  plan.shape = shape;
  plan.lanes = parts.dot->lanes;
  plan.vectors = ceil_div(s.oc, plan.lanes);
  plan.panels = ceil_div(plan.vectors, kChainVectors);
  if (shape.expands) plan.expand = plan_pointwise(shape.ic, s.ic, *parts.dot);
  if (shape.projects) plan.project = plan_pointwise(s.oc, shape.oc, *parts.dot);
  const int64_t lines = std::max<int64_t>(1, s.oh), each = ceil_div(wanted, std::max<int64_t>(1, s.n));
  if (shape.shares_strip()) {
    plan.panel_parts = std::clamp<int64_t>(wanted, 1, plan.panels);
  } else if (!shape.projects) {
    plan.panel_parts = std::clamp<int64_t>(each, 1, plan.panels);
  }
  const int64_t row_parts = shape.shares_strip() ? 1 : ceil_div(each, plan.panel_parts);
  int64_t parts_of_rows = std::clamp<int64_t>(row_parts, 1, lines);
  set_sizes(plan, ceil_div(lines, parts_of_rows));
  while (!shape.shares_strip() && plan.strip > 1 && plan.workspace_bytes > cache_bytes)
    set_sizes(plan, ceil_div(lines, ++parts_of_rows));
  plan.chunks = shape.shares_strip() ? 1 : ceil_div(s.oh, plan.strip);
  plan.tasks = s.ow == 0 ? 0 : s.n * plan.panel_parts * plan.chunks;
  return plan;
}

void run_codes_chain(const CodesChainPlan& plan, const CodesChainParts& parts, const CodesChainArgs& args,
                     int64_t task_begin, int64_t task_end, uint8_t* workspace) {
  const ConvShape& s = plan.shape.depthwise;
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t chunk = task % plan.chunks, part = task / plan.chunks % plan.panel_parts;
    const int64_t image = task / plan.chunks / plan.panel_parts;
    const IndexRange rows{chunk * plan.strip, std::min((chunk + 1) * plan.strip, s.oh)};
    CodesChainTask chain(plan, parts, args, image, workspace, workspace + plan.strip_at, rows.begin);
    chain.run(rows, even_part(plan.panels, plan.panel_parts, part));
    if (plan.shape.projects) chain.project({rows.begin * s.ow, rows.end * s.ow});
  }
}

void run_shared_codes_chain(const CodesChainPlan& plan, const CodesChainParts& parts, const CodesChainArgs& args,
                            int64_t phase, int64_t task, uint8_t* strip, uint8_t* workspace) {
  const ConvShape& s = plan.shape.depthwise;
  CodesChainTask chain(plan, parts, args, 0, workspace, strip, 0);
  if (phase == 0) {
    chain.run({0, s.oh}, even_part(plan.panels, plan.tasks, task));
  } else {
    chain.project(even_part(s.oh * s.ow, plan.tasks, task));
  }
}

}  // namespace neo
