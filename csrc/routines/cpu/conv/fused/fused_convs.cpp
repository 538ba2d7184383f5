#include "routines/cpu/conv/fused/fused_convs.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "base/int_math.h"
#include "routines/cpu/conv/output_panel.h"
#include "routines/cpu/microkernel/prefetch_plan.h"

namespace neo {
namespace {

IndexRange panel_vectors(const PanelSplit& split, int64_t panel) {
  const int64_t panels = split.panels / split.shares;
  const IndexRange share = even_part(split.vectors, split.shares, panel / panels);
  const IndexRange part = even_part(share.size(), panels, panel % panels);
  return {share.begin + part.begin, share.begin + part.end};
}

// Shares that leave register blocks narrow are given up for wider ones.
PanelSplit split_panels(int64_t channels, const TileKernels& kernels, int64_t shares) {
  const int64_t widest = kernels.panel_vectors, narrow = ceil_div(widest + 1, 2);
  PanelSplit split;
  split.vectors = ceil_div(channels, int64_t{kernels.lanes});
  split.shares = std::clamp<int64_t>(shares, 1, std::max<int64_t>(1, split.vectors / narrow));
  split.panels = split.shares * ceil_div(ceil_div(split.vectors, split.shares), widest);
  return split;
}

// The rows of the expanded image that output rows [begin, end) read.
IndexRange source_rows(const ConvShape& s, int64_t begin, int64_t end) {
  const int64_t first = begin * s.stride_h - s.pad_top;
  const int64_t last = (end - 1) * s.stride_h - s.pad_top + (s.kh - 1) * s.dilation_h + 1;
  return {std::clamp<int64_t>(first, 0, s.ih), std::clamp<int64_t>(last, 0, s.ih)};
}

// Vectors whose memory does not repeat the same cache sets.
int64_t apart(int64_t pixels, int64_t lanes) {
  return (pixels | 1) * lanes;
}

constexpr int64_t kCacheLine = 16;  // floats of a cache line

void set_sizes(ChainPlan& plan, const ChainKernels& kernels, int64_t strip) {
  const ConvShape& s = plan.shape.depthwise;
  const int64_t panel = ceil_div(plan.inner.vectors, plan.inner.panels);
  const int64_t vectors = plan.shape.projects_alone() ? plan.inner.vectors : panel;
  plan.strip = strip;
  plan.ring_rows = plan.shape.expands() ? std::min(s.ih, (strip - 1) * s.stride_h + (s.kh - 1) * s.dilation_h + 1) : 0;
  plan.ring_vector = plan.shape.expands() ? apart(plan.ring_rows * s.iw, plan.lanes) : 0;
  plan.strip_vector = plan.shape.project ? apart((plan.shape.shares_rows() ? s.oh : strip) * s.ow, plan.lanes) : 0;
  plan.shared_size = plan.shape.shares_rows() ? plan.inner.vectors * plan.strip_vector : 0;
  const int64_t pixels = plan.shape.shares_rows() ? ceil_div(s.oh * s.ow, plan.tasks) : strip * s.ow;
  if (plan.shape.strassen > 0) {
    plan.strassen = plan_strassen(s.ic, plan.shape.oc, plan.lanes, *kernels.strassen, plan.shape.strassen, pixels);
  }
  if (plan.shape.has_stem()) {
    DirectNchwSchedule schedule;
    schedule.oc_bn = plan.lanes;
    schedule.lines = std::max<int64_t>(1, plan.ring_rows);
    plan.stem = plan_direct_nchw(plan.shape.stem, schedule, *kernels.tiles);
  }
  const int64_t own_strip = plan.shape.shares_rows() ? 0 : plan.strip_vector;
  plan.workspace_size = round_up(plan.stem.workspace_size, kCacheLine) +
                        round_up(vectors * (plan.ring_vector + own_strip) + plan.strassen.workspace_size, kCacheLine);
}

// One task: a strip of rows, or several, and its parts. `shared`: the strip of all tasks, or null.
class ChainTask {
 public:
  ChainTask(const ChainPlan& plan, const ChainKernels& kernels, const ChainArgs& args, int64_t image, IndexRange panels,
            float* workspace, float* shared = nullptr)
      : plan_(plan), kernels_(kernels), args_(args), panels_(panels), image_(image) {
    src_ = args.src + image * args.src_batch;
    dst_ = args.dst + image * args.dst_batch;
    if (args.residual) residual_ = args.residual + image * args.residual_batch;
    ring_ = workspace + round_up(plan.stem.workspace_size, kCacheLine);
    first_vector_ = panel_vectors(plan.inner, panels.begin).begin;
    const int64_t vectors = panel_vectors(plan.inner, panels.end - 1).end - first_vector_;
    strip_ = shared ? shared + first_vector_ * plan.strip_vector : ring_ + vectors * plan.ring_vector;
    sums_ = shared ? ring_ : strip_ + vectors * plan.strip_vector;
    if (plan.shape.has_stem()) lines_.emplace(plan.stem, *kernels.rows, args.src_block, workspace);
  }

  // With the rows that lie in the ring already, of which `done` have been expanded; returns how many have been then.
  int64_t run(IndexRange rows, int64_t done = 0) {
    const ConvShape& s = plan_.shape.depthwise;
    PrefetchPlan behind = plan_.shape.expands() ? behind_weights(rows) : PrefetchPlan();
    for (int64_t first = rows.begin; first < rows.end; first += plan_.strip) {
      const IndexRange out{first, std::min(first + plan_.strip, rows.end)};
      const IndexRange in = source_rows(s, out.begin, out.end);
      for (int64_t p = panels_.begin; p < panels_.end; ++p) {
        if (plan_.shape.expands()) expand(p, {std::max(done, in.begin), in.end}, behind);
        depthwise(p, out);
      }
      done = std::max(done, in.end);
      if (!plan_.shape.projects_alone()) continue;
      IndexRange next{done, done};
      if (out.end < s.oh) next.end = std::max(done, source_rows(s, out.end, std::min(out.end + plan_.strip, s.oh)).end);
      project({out.begin * s.ow, out.end * s.ow}, strip_, next);
    }
    return done;
  }

  // Pixels of the image, whose depthwise rows the tasks share.
  void project(IndexRange pixels) { project(pixels, strip_ + pixels.begin * plan_.lanes, {0, 0}); }

 private:
  static constexpr int64_t kMaxRows = kDepthwiseMaxRows;

  // `count` pixels of one vector of channels, of which `valid` exist; the others remain zero.
  void activate(const ChainStage& stage, float* pixels, int64_t count, int64_t valid) const {
    if (!stage.activation) return;
    stage.activation(pixels, count * plan_.lanes);
    if (valid == plan_.lanes) return;
    for (int64_t i = 0; i < count; ++i)
      std::fill(pixels + i * plan_.lanes + valid, pixels + (i + 1) * plan_.lanes, 0.0f);
  }

  // The part of a register block that is the same for all its pixels.
  Tile make_tile(const ChainStage& stage, IndexRange vectors, int64_t ic, const TileTap& tap) const {
    const int64_t lanes = plan_.lanes;
    Tile t;
    t.step = lanes;
    t.block_size = std::min(lanes, ic);
    t.blocks = ceil_div(ic, t.block_size);
    t.last_size = ic - (t.blocks - 1) * t.block_size;
    t.taps = &tap;
    t.tap_count = 1;
    t.weight = stage.weight + vectors.begin * lanes * ic;
    t.weight_step = vectors.size() * lanes;
    if (stage.bias) t.bias = stage.bias + vectors.begin * lanes;
    return t;
  }

  // While a panel's tiles run, the next panel's weights, behind its own, are fetched; beside every other tile of
  // `behind`, what that says.
  template <class F>
  void each_tile(int64_t pixels, int64_t vectors, int64_t ic, Tile& t, PrefetchPlan& behind, F&& f) const {
    const int64_t count = ceil_div(pixels, kernels_.tiles->max_rows[vectors]), others = behind.next ? count / 2 : 0;
    auto prefetched = PrefetchPlan::over(t.weight + ic * t.weight_step, t.weight_step, ic, count - others);
    for (int64_t i = 0; i < count; ++i) {
      (others > 0 && i % 2 != 0 ? behind : prefetched).give(t);
      f(even_part(pixels, count, i));
    }
  }

  // The constants of the steps behind a chain without a projection are fetched beside its expansion, for such a step
  // may do little but wait for them: the dense layers of a squeeze-and-excitation block. They lie behind the
  // chain's. Each panel of each part of the image fetches as much, in all no more than memory gives meanwhile.
  PrefetchPlan behind_weights(IndexRange rows) const {
    constexpr int64_t kMax = (2 << 20) / sizeof(float), kProductsPerFloat = 16;
    if (plan_.shape.project || lines_) return {};
    const ConvShape& s = plan_.shape.depthwise;
    const int64_t vectors = ceil_div(plan_.inner.vectors, plan_.inner.panels), ic = plan_.shape.ic;
    const int64_t floats = std::min(kMax, s.ih * s.iw * ic * s.ic / kProductsPerFloat);
    const int64_t share = floats / (plan_.inner.panels * plan_.chunks);
    const int64_t part = rows.begin / plan_.strip + panels_.begin * plan_.chunks;
    const int64_t pixels = std::min(source_rows(s, rows.begin, rows.end).size(), rows.size() * s.stride_h) * s.iw;
    const int64_t tiles = ceil_div(pixels, kernels_.tiles->max_rows[vectors]) / 2;
    if (tiles == 0) return {};
    const float* weights = args_.expand.weight + plan_.inner.vectors * plan_.lanes * ic;
    return PrefetchPlan::over(weights + share * part, ceil_div(share, ic), ic, tiles);
  }

  // Rows of the expanded image into the ring, for one panel.
  void expand(int64_t panel, IndexRange rows, PrefetchPlan& behind) {
    const IndexRange vectors = panel_vectors(plan_.inner, panel);
    TileTap tap = {};
    Tile t = make_tile(args_.expand, vectors, plan_.shape.ic * plan_.shape.taps(), tap);
    t.dst_row = plan_.lanes;
    t.lo = args_.expand.lo;
    t.hi = args_.expand.hi;
    for (int64_t v = 0; v < vectors.size(); ++v) {
      t.dst_vector[v] = (vectors.begin - first_vector_ + v) * plan_.ring_vector;
    }
    t.fetches_rows = !lines_ && vectors.begin == first_vector_;
    lines_ ? run_direct_nchw(vectors.size(), rows, t) : expand_pixels(vectors.size(), rows, t, behind);
  }

  float* ring_row(int64_t row) const { return ring_ + row % plan_.ring_rows * plan_.shape.depthwise.iw * plan_.lanes; }

  void activate_ring(const Tile& t, float* pixels, int64_t vectors, int64_t count) const {
    for (int64_t v = 0; v < vectors; ++v) activate(args_.expand, pixels + t.dst_vector[v], count, plan_.lanes);
  }

  void expand_pixels(int64_t vectors, IndexRange rows, Tile& t, PrefetchPlan& behind) {
    const ConvShape& s = plan_.shape.depthwise;
    t.block_stride = args_.src_block;
    while (rows.begin < rows.end) {
      const int64_t count = std::min(rows.end - rows.begin, plan_.ring_rows - rows.begin % plan_.ring_rows);
      const float* src = src_ + rows.begin * s.iw * plan_.lanes;
      float* dst = ring_row(rows.begin);
      each_tile(count * s.iw, vectors, plan_.shape.ic, t, behind, [&](IndexRange part) {
        t.src = src + part.begin * plan_.lanes;
        t.dst = dst + part.begin * plan_.lanes;
        kernels_.tiles->rows[vectors][part.size()](t);
      });
      activate_ring(t, dst, vectors, count * s.iw);
      rows.begin += count;
    }
  }

  void run_direct_nchw(int64_t vectors, IndexRange rows, Tile& t) {
    while (rows.begin < rows.end) {
      const IndexRange part = {rows.begin, std::min(rows.begin + plan_.stem.rows, rows.end)};
      lines_->read(src_, part);
      for (int64_t row = part.begin; row < part.end; ++row) {
        float* dst = ring_row(row);
        lines_->each_tile(row, kernels_.tiles->max_rows[vectors], t, [&](IndexRange columns) {
          t.dst = dst + columns.begin * plan_.lanes;
          kernels_.tiles->rows[vectors][columns.size()](t);
        });
        activate_ring(t, dst, vectors, plan_.shape.depthwise.iw);
      }
      rows.begin = part.end;
    }
  }

  // Output rows of the depthwise convolution, for one panel.
  void depthwise(int64_t panel, IndexRange out) {
    const ConvShape& s = plan_.shape.depthwise;
    const int64_t lanes = plan_.lanes;
    const IndexRange vectors = panel_vectors(plan_.inner, panel);
    const float* rows[kMaxRows];
    DepthwiseLine line;
    line.rows = rows;
    line.set_shape(s);
    line.lo = args_.depthwise.lo;
    line.hi = args_.depthwise.hi;
    for (int64_t v = vectors.begin; v < vectors.end; ++v) {
      const float* ring = ring_ + (v - first_vector_) * plan_.ring_vector;
      const float* src = src_ + v * args_.src_block;
      float* dst = plan_.shape.project ? strip_ + (v - first_vector_) * plan_.strip_vector : dst_ + v * args_.dst_block;
      if (!plan_.shape.projects_alone()) dst += out.begin * s.ow * lanes;
      line.weight = args_.depthwise.weight + v * s.taps() * lanes;
      line.bias = args_.depthwise.bias ? args_.depthwise.bias + v * lanes : nullptr;
      line.valid = plan_.shape.project ? lanes : std::min(lanes, s.ic - v * lanes);
      for (int64_t oh = out.begin; oh < out.end; ++oh) {
        for (int64_t i = 0; i < s.kh; ++i) {
          const int64_t ih = oh * s.stride_h - s.pad_top + i * s.dilation_h;
          rows[i] = ih < 0 || ih >= s.ih    ? nullptr
                    : plan_.shape.expands() ? ring + ih % plan_.ring_rows * s.iw * lanes
                                            : src + ih * s.iw * lanes;
        }
        line.dst = dst + (oh - out.begin) * s.ow * lanes;
        kernels_.depthwise->line(line);
      }
      activate(args_.depthwise, dst, out.size() * s.ow, line.valid);
    }
  }

  // Output pixels of the chain, the first of which is that of the strip. Meanwhile, the source rows that the next strip
  // reads are fetched: as a depthwise convolution goes from vector to vector, no stream is long enough to be foreseen.
  void project(IndexRange out, const float* strip, IndexRange next) {
    plan_.shape.strassen > 0 ? project_by_strassen(out, strip, next) : project_directly(out, strip, next);
  }

  void project_directly(IndexRange out, const float* strip, IndexRange next) {
    const ConvShape& s = plan_.shape.depthwise;
    const int64_t lanes = plan_.lanes;
    BlockedOutput output;
    output.dst = dst_;
    output.dst_block = args_.dst_block;
    output.residual = residual_;
    output.residual_block = args_.residual_block;
    output.oc_bn = lanes;
    output.lo = args_.project.lo;
    output.hi = args_.project.hi;
    for (int64_t p = 0; p < plan_.outer.panels; ++p) {
      const IndexRange vectors = panel_vectors(plan_.outer, p);
      const int64_t oc = vectors.begin * lanes;
      const OutputPanel panel =
          make_output_panel(output, oc, vectors.size(), lanes, std::min(vectors.size() * lanes, plan_.shape.oc - oc));
      TileTap tap = {};
      Tile t = make_tile(args_.project, vectors, s.ic, tap);
      t.block_stride = plan_.strip_vector;
      t.fetches_rows = plan_.shape.shares_rows() && p == 0;
      const bool fetches = p + 1 == plan_.outer.panels && !plan_.shape.expands();
      PrefetchPlan behind;
      each_tile(out.size(), vectors.size(), s.ic, t, behind, [&](IndexRange part) {
        t.src = strip + part.begin * lanes;
        if (fetches) fetch_source(next, part, out.size(), t);
        run_output_tile(kernels_.tiles->rows[vectors.size()][part.size()], *kernels_.tiles, t, panel,
                        out.begin + part.begin, part.size());
      });
      for (int64_t v = vectors.begin; v < vectors.end; ++v) {
        activate(args_.project, dst_ + v * args_.dst_block + out.begin * lanes, out.size(),
                 std::min(lanes, plan_.shape.oc - v * lanes));
      }
    }
  }

  void project_by_strassen(IndexRange out, const float* strip, IndexRange next) {
    const ConvShape& s = plan_.shape.depthwise;
    const int64_t first = out.begin * plan_.lanes;
    ConvOperands a;
    a.src = strip;
    a.src_channel = plan_.strip_vector;
    a.weight = args_.project.weight;
    a.bias = args_.project.bias;
    if (residual_) a.residual = residual_ + first;
    a.residual_channel = args_.residual_block;
    a.dst = dst_ + first;
    a.dst_channel = args_.dst_block;
    a.lo = args_.project.lo;
    a.hi = args_.project.hi;
    a.activation = args_.project.activation;
    if (!plan_.shape.expands() && next.size() > 0) a.prefetched = src_ + next.begin * s.iw * plan_.lanes;
    a.prefetched_channel = args_.src_block;
    a.prefetched_pixels = next.size() * s.iw;
    const int64_t image = s.oh * s.ow, pixels = std::max<int64_t>(1, s.n * image), before = image_ * image;
    const int64_t floats = args_.later.size;
    a.later = {args_.later.data + floats * (before + out.begin) / pixels, floats * out.size() / pixels};
    run_strassen(plan_.strassen, *kernels_.strassen, a, out.size(), sums_);
  }

  // A tile of `part` of all `pixels` of a projection fetches its share of some source rows: of each vector beside the
  // products with the same vector of the strip.
  void fetch_source(IndexRange rows, IndexRange part, int64_t pixels, Tile& t) const {
    const int64_t row = plan_.shape.depthwise.iw, count = rows.size() * row;
    const int64_t begin = count * part.begin / pixels, end = count * part.end / pixels;
    t.prefetched = begin < end ? src_ + (rows.begin * row + begin) * plan_.lanes : nullptr;
    t.prefetched_step = end - begin;
    t.prefetched_block = args_.src_block - t.prefetched_step * t.block_size;
  }

  const ChainPlan& plan_;
  const ChainKernels& kernels_;
  const ChainArgs& args_;
  IndexRange panels_;
  int64_t image_;
  const float* src_;
  const float* residual_ = nullptr;
  float* dst_;
  float* ring_;
  float* strip_;
  float* sums_;
  int64_t first_vector_;
  std::optional<DirectNchwLines> lines_;  // of an expansion that is one
};

}  // namespace

ChainPlan plan_chain(const ChainShape& shape, const ChainKernels& kernels, int64_t wanted, int64_t cache_bytes) {
  constexpr int64_t kPixels = 224;
  const ConvShape& s = shape.depthwise;
  ChainPlan plan;
  plan.shape = shape;
  plan.lanes = kernels.tiles->lanes;
  // As the weights are packed, whatever the number of images.
  plan.inner = split_panels(s.ic, *kernels.tiles, shape.project && !shape.shared ? 1 : wanted);
  plan.outer = split_panels(shape.project ? shape.oc : 0, *kernels.tiles, 1);

  const int64_t images = std::max<int64_t>(1, s.n), lines = std::max<int64_t>(1, s.oh);
  const int64_t parts = ceil_div(wanted, images);
  plan.panel_chunks = shape.projects_alone() ? 1 : shape.shares_rows() ? plan.inner.shares : plan.inner.panels;
  plan.panel_chunk = plan.inner.panels / plan.panel_chunks;
  if (shape.shares_rows()) plan.tasks = plan.inner.shares;

  // Strips long enough to use each panel of weights for several register blocks, while they stay in the cache.
  const int64_t row_parts = shape.shares_rows() ? 1 : ceil_div(parts, plan.panel_chunks);
  const int64_t rows = ceil_div(lines, std::clamp<int64_t>(row_parts, 1, lines));
  const int64_t longest = std::clamp<int64_t>(ceil_div(kPixels, std::max<int64_t>(1, s.ow)), 1, rows);
  int64_t strips = ceil_div(rows, longest);
  for (set_sizes(plan, kernels, ceil_div(rows, strips)); plan.strip > 1 && plan.workspace_size * 4 > cache_bytes;) {
    set_sizes(plan, kernels, ceil_div(rows, ++strips));
  }
  plan.chunks = shape.shares_rows() ? 1 : ceil_div(s.oh, plan.strip);
  if (!shape.shares_rows()) plan.tasks = s.n * plan.panel_chunks * plan.chunks;
  return plan;
}

int64_t pointwise_weight_size(const PanelSplit& split, int64_t ic, int64_t lanes) {
  return split.vectors * lanes * ic;
}

void pack_pointwise_weight(const PanelSplit& split, int64_t oc, int64_t ic, int64_t lanes, const float* weight,
                           float* packed) {
  for (int64_t p = 0; p < split.panels; ++p) {
    const IndexRange vectors = panel_vectors(split, p);
    for (int64_t i = 0; i < ic; ++i) {
      for (int64_t c = vectors.begin * lanes; c < vectors.end * lanes; ++c) {
        *packed++ = c < oc ? weight[c * ic + i] : 0.0f;
      }
    }
  }
}

void run_chain(const ChainPlan& plan, const ChainKernels& kernels, const ChainArgs& args, int64_t task_begin,
               int64_t task_end, ChainMember& member) {
  for (int64_t task = task_begin; task < task_end; ++task) {
    const int64_t chunk = task % plan.chunks;
    const int64_t part = task / plan.chunks % plan.panel_chunks;
    const int64_t image = task / (plan.chunks * plan.panel_chunks);
    const IndexRange panels{part * plan.panel_chunk, (part + 1) * plan.panel_chunk};
    const IndexRange rows{chunk * plan.strip, std::min((chunk + 1) * plan.strip, plan.shape.depthwise.oh)};
    const int64_t expanded = chunk > 0 && member.task + 1 == task ? member.expanded : 0;
    member.expanded = ChainTask(plan, kernels, args, image, panels, member.workspace).run(rows, expanded);
    member.task = task;
  }
}

void run_shared_chain(const ChainPlan& plan, const ChainKernels& kernels, const ChainArgs& args, int64_t phase,
                      int64_t task, float* shared, float* workspace) {
  const ConvShape& s = plan.shape.depthwise;
  if (phase == 1) {
    ChainTask chain(plan, kernels, args, 0, {0, plan.inner.panels}, workspace, shared);
    return chain.project(even_part(s.oh * s.ow, plan.tasks, task));
  }
  for (int64_t p = task * plan.panel_chunk; p < (task + 1) * plan.panel_chunk; ++p) {
    ChainTask(plan, kernels, args, 0, {p, p + 1}, workspace, shared).run({0, s.oh});
  }
}

}  // namespace neo
