#include "routines/cpu/conv/strassen.h"

#include <algorithm>

#include "routines/cpu/gemm/fetch_ahead.h"
#include "routines/cpu/gemm/split.h"
#include "routines/cpu/gemm/tile_cost.h"
#include "routines/step_cost.h"

namespace neo {
namespace {

// Pixels of a half that are worked on together. Of few the sums stay in the first-level cache while weights pass by;
// more are worth it where channels are few, whose results are many beside them. Where weights come from beyond the
// private cache, they do for all pixels of a run; but processors with short vectors have small caches, which so many
// pixels would fill.
int64_t wanted_run(int64_t ic, int64_t weight_bytes, bool is_short) {
  constexpr int64_t kFewest = 12, kSums = 6144, kNear = 512 << 10, kFar = 42;
  if (is_short) return std::max(kSums / 2 / ic, kFewest / 2);
  return weight_bytes > kNear ? kFar : std::max(kSums / ic, kFewest);
}

// Panels that are not wider than wanted, or else not narrower than there are tiles.
int64_t panel_count(int64_t vectors, const StrassenKernels& kernels) {
  const int64_t panels = ceil_div(vectors, int64_t{kernels.panel_vectors});
  return vectors < panels * kernels.fewest_vectors ? panels - 1 : panels;
}

IndexRange panel_vectors(const StrassenPlan& plan, int64_t panel) {
  return even_part(plan.vectors, plan.panels, panel);
}

// Pixels that are worked on together: `half` left ones, and as many right ones that begin `apart` pixels after them. Of
// an odd number the one in the middle is both, and in the end a left one.
struct StrassenRun {
  int64_t first, half, apart;

  static StrassenRun of(IndexRange pixels) {
    const int64_t half = ceil_div(pixels.size(), 2);
    return {pixels.begin, half, pixels.size() - half};
  }
};

// The tiles of one run.
class RunTiles {
 public:
  RunTiles(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args, const StrassenRun& run,
           const float* sums)
      : plan_(plan), kernels_(kernels), args_(args), run_(run) {
    const int64_t first = run.first * plan.lanes, second = plan.blocks * args.src_channel;
    std::fill_n(tile_.stride, kStrassenProducts, args.src_channel);
    tile_.source[kStrassenP1] = args.src + first;
    tile_.source[kStrassenP2] = args.src + first + second;
    tile_.source[kStrassenP3] = args.src + first + second + run.apart * plan.lanes;
    for (int i = 0; i < kStrassenSums; ++i) {
      tile_.source[kStrassenP6 + i] = sums + i * plan.blocks * plan.sums_stride;
      tile_.stride[kStrassenP6 + i] = plan.sums_stride;
    }
    tile_.blocks = plan.blocks;
    tile_.weight = args.weight;
    tile_.dst = args.dst + first;
    tile_.dst_vector = args.dst_channel;
    tile_.dst_lower = plan.vectors * args.dst_channel;
    if (args.residual) tile_.residual = args.residual + first;
    tile_.residual_vector = args.residual_channel;
    tile_.residual_lower = plan.vectors * args.residual_channel;
    tile_.right = run.apart * plan.lanes;
    tile_.lo = args.lo;
    tile_.hi = args.hi;
  }

  // `next`: the pixels of args.ahead that are fetched meanwhile. Without any the last run fetches what lies behind the
  // weights: those of the next step.
  void run(IndexRange next, bool is_last_run) {
    for (int64_t p = 0; p < plan_.panels; ++p) {
      const IndexRange vectors = panel_vectors(plan_, p);
      const bool is_last = p + 1 == plan_.panels;
      const int64_t k = kStrassenProducts * plan_.blocks * plan_.lanes, width = vectors.size() * plan_.lanes;
      const int64_t tiles = tile_count(vectors.size());
      FetchAhead weights;
      if (!is_last || (is_last_run && !args_.ahead))
        weights = FetchAhead::over(tile_.weight + k * width, width, k, tiles);
      for (int64_t i = 0; i < tiles; ++i) {
        const IndexRange part = even_part(run_.half, tiles, i);
        StrassenTile t = tile_;
        advance(vectors, part, t);
        if (weights.next) {
          fetch_weights(weights, t);
        } else {
          fetch_pixels(next.begin, even_part(next.size(), tiles, i), t);
        }
        kernels_.tile[vectors.size()][part.size()](t);
      }
      tile_.weight += k * width;
    }
  }

 private:
  int64_t tile_count(int64_t vectors) const {
    const int64_t most = kernels_.max_rows[vectors];
    return run_.half < fewest_strassen_rows(most) ? run_.half : ceil_div(run_.half, most);
  }

  // To the tile of some rows and vectors.
  void advance(IndexRange vectors, IndexRange rows, StrassenTile& t) const {
    const int64_t pixel = rows.begin * plan_.lanes;
    for (const float*& source : t.source) source += pixel;
    t.dst += pixel + vectors.begin * t.dst_vector;
    if (t.residual) t.residual += pixel + vectors.begin * t.residual_vector;
    // Right pixels that are left ones too.
    t.skipped = rows.begin == 0 ? run_.half - run_.apart : 0;
    if (!args_.bias) return;
    t.bias[0] = args_.bias + vectors.begin * plan_.lanes;
    t.bias[1] = t.bias[0] + plan_.vectors * plan_.lanes;
  }

  void fetch_weights(FetchAhead& weights, StrassenTile& t) const {
    t.ahead = weights.next;
    t.ahead_step = weights.step;
    t.ahead_blocks = kStrassenProducts * plan_.blocks;
    weights.next += weights.tile;
  }

  // Beside the first two products, which have as many blocks as the pixels.
  void fetch_pixels(int64_t first, IndexRange pixels, StrassenTile& t) const {
    if (!args_.ahead || pixels.size() == 0) return;
    t.ahead = args_.ahead + (first + pixels.begin) * plan_.lanes;
    t.ahead_step = pixels.size();
    t.ahead_block = args_.ahead_channel - pixels.size() * plan_.lanes;
    t.ahead_blocks = 2 * plan_.blocks;
  }

  const StrassenPlan& plan_;
  const StrassenKernels& kernels_;
  const ConvOperands& args_;
  const StrassenRun& run_;
  StrassenTile tile_;
};

}  // namespace

const char* reject_strassen(int64_t ic, int64_t oc, int64_t lanes, const StrassenKernels& kernels) {
  if (ic % (2 * lanes) != 0 || oc % (2 * lanes) != 0) return "the channels are not an even number of vectors";
  const int64_t vectors = oc / (2 * lanes), panels = panel_count(vectors, kernels);
  if (panels == 0 || ceil_div(vectors, panels) > kTileVectors || !kernels.tile[ceil_div(vectors, panels)][1])
    return "half the output channels make narrow tiles";
  return nullptr;
}

StrassenPlan plan_strassen(int64_t ic, int64_t oc, int64_t lanes, const StrassenKernels& kernels, int64_t pixels) {
  StrassenPlan plan;
  plan.lanes = lanes;
  plan.blocks = ic / (2 * plan.lanes);
  plan.vectors = oc / (2 * plan.lanes);
  plan.panels = panel_count(plan.vectors, kernels);
  plan.is_short = kernels.has_few_registers;
  plan.max_rows = kernels.max_rows[ceil_div(plan.vectors, plan.panels)];
  plan.run = ceil_div(wanted_run(ic, strassen_weight_size(plan) * 4, plan.is_short), plan.max_rows) * plan.max_rows;
  plan.sums_stride = (std::min(strassen_run_pixels(plan) / 2, pixels / 2 + 1) | 1) * plan.lanes;
  plan.workspace_size = kStrassenSums * plan.blocks * plan.sums_stride;
  return plan;
}

int64_t strassen_runs(const StrassenPlan& plan, int64_t pixels) {
  return std::max<int64_t>(1, (pixels + plan.run) / (2 * plan.run));
}

// A rest that is not worth a run is spread over the others.
int64_t strassen_run_pixels(const StrassenPlan& plan) {
  return 3 * plan.run;
}

int64_t strassen_weight_size(const StrassenPlan& plan) {
  return kStrassenProducts * plan.blocks * plan.lanes * plan.vectors * plan.lanes;
}

void pack_strassen_weight(const StrassenPlan& plan, const float* weight, float* packed) {
  const int64_t half = plan.blocks * plan.lanes, ic = 2 * half, lower = plan.vectors * plan.lanes * ic;
  for (int64_t p = 0; p < plan.panels; ++p) {
    const IndexRange vectors = panel_vectors(plan, p);
    const int64_t width = vectors.size() * plan.lanes, product = half * width;
    for (int64_t o = 0; o < width; ++o) {
      const float* row = weight + (vectors.begin * plan.lanes + o) * ic;
      for (int64_t i = 0; i < half; ++i) {
        const double a = row[i], b = row[half + i], c = row[lower + i], d = row[lower + half + i];
        const double sums[kStrassenProducts] = {a, b, c + d - a, a - c, -d, c + d, a + b - c - d};
        float* to = packed + i * width + o;
        for (int64_t q = 0; q < kStrassenProducts; ++q) to[q * product] = static_cast<float>(sums[q]);
      }
    }
    packed += kStrassenProducts * product;
  }
}

void run_strassen(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args, int64_t pixels,
                  float* workspace) {
  if (pixels == 0) return;
  const int64_t runs = strassen_runs(plan, pixels);
  for (int64_t i = 0; i < runs; ++i) {
    const IndexRange part = even_part(pixels, runs, i);
    const StrassenRun run = StrassenRun::of(part);
    StrassenSource source;
    source.left = args.src + run.first * plan.lanes;
    source.right = source.left + run.apart * plan.lanes;
    source.stride = args.src_channel;
    source.second = plan.blocks * args.src_channel;
    source.blocks = plan.blocks;
    source.rows = run.half;
    source.sums = workspace;
    source.sums_stride = plan.sums_stride;
    kernels.sums(source);
    RunTiles(plan, kernels, args, run, workspace).run(even_part(args.ahead_pixels, runs, i), i + 1 == runs);
    for (int64_t v = 0; v < 2 * plan.vectors && args.activation; ++v) {
      args.activation(args.dst + v * args.dst_channel + part.begin * plan.lanes, part.size() * plan.lanes);
    }
  }
}

double strassen_work(const StrassenPlan& plan, double pixels, const Target& target) {
  // Cycles of a vector of each sum of pixels, and of a vector of each quarter.
  constexpr double kSumCycles = 18, kQuarterCycles = 12;
  const double vectors = static_cast<double>(plan.vectors) / static_cast<double>(plan.panels);
  const auto lanes = static_cast<double>(plan.lanes);
  const double ic = static_cast<double>(plan.blocks) * lanes;
  const double panel_bytes = kStrassenProducts * ic * vectors * lanes * 4;
  double efficiency = blocked_efficiency(static_cast<double>(plan.max_rows), vectors, panel_bytes, plan.lanes, target);
  // Tiles of two vectors and many rows are no worse here than wide ones: they read the weights less often.
  if (!plan.is_short) efficiency *= 1.02;
  const double products = kStrassenProducts * ic * static_cast<double>(plan.vectors) / efficiency;
  const double sums =
      kSumCycles * static_cast<double>(plan.blocks) + kQuarterCycles * static_cast<double>(plan.vectors);
  double work = (products + sums) * pixels / 2 * 2 * lanes;
  // What short runs wait for weights from beyond the private cache, which all of them read.
  const double weight_bytes = 4 * static_cast<double>(strassen_weight_size(plan));
  if (plan.is_short && !is_kept(weight_bytes, target)) {
    const double runs = pixels / (2 * static_cast<double>(plan.run));
    work += stream_us(weight_bytes * runs) * target.gflops_per_thread * 1e3;
  }
  return work;
}

}  // namespace neo
