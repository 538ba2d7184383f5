#include "routines/cpu/gemm/strassen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/microkernel/prefetch_plan.h"
#include "routines/cpu/microkernel/tile_cost.h"

namespace neo {
namespace {

// Pixels of a half that are worked on together. The sums of few stay in the first-level cache while weights pass by;
// more are worth it where channels are few, whose results are many beside them. Weights that come from beyond the
// private cache serve all pixels of a run; but processors with short vectors have small caches, which so many
// pixels would fill.
int64_t wanted_run(int64_t ic, int64_t weight_bytes, int64_t levels, bool is_short) {
  constexpr int64_t kMin = 12, kSums = 6144, kNear = 512 << 10, kFar = 42, kQuarters = 28;
  if (is_short) return std::max(kSums / 2 / ic, kMin / 2);
  if (weight_bytes > kNear) return kFar;
  return levels > 1 ? kQuarters : std::max(kSums / ic, kMin);
}

// Whether the last cache keeps so many bytes and gives them as fast as short runs use them.
bool is_near(double bytes, const Target& target) {
  return private_caches(target).far_gbps >= PrivateCaches::kNearGbps &&
         bytes <= static_cast<double>(target.kept_bytes) / 2;
}

// Panels that are not wider than wanted, or else not narrower than there are tiles.
int64_t panel_count(int64_t vectors, const StrassenKernels& kernels) {
  const int64_t panels = ceil_div(vectors, int64_t{kernels.panel_vectors});
  return vectors < panels * kernels.fewest_vectors ? panels - 1 : panels;
}

IndexRange panel_vectors(const StrassenPlan& plan, int64_t panel) {
  return even_part(plan.vectors, plan.panels, panel);
}

// Pixels that are worked on together: `half` left ones, and as many right ones that begin `apart` pixels after them. If
// their number is odd, the one in the middle is both, and in the end a left one.
struct StrassenRun {
  int64_t first, half, apart;

  static StrassenRun of(IndexRange pixels) {
    const int64_t half = ceil_div(pixels.size(), 2);
    return {pixels.begin, half, pixels.size() - half};
  }
};

// The left pixels of every product's matrix.
struct Sources {
  const float* at[kStrassenProducts];
  int64_t stride[kStrassenProducts];

  // The sources of `blocks` of half the channels; sums as the kernel has made them.
  static Sources of(const ConvOperands& args, int64_t lanes, int64_t blocks, const StrassenRun& run, const float* sums,
                    int64_t sums_stride) {
    const float* const first = args.src + run.first * lanes;
    const float* const second = first + blocks * args.src_channel;
    Sources s;
    std::fill_n(s.stride, kStrassenProducts, args.src_channel);
    s.at[kStrassenP1] = first;
    s.at[kStrassenP2] = second;
    s.at[kStrassenP3] = second + run.apart * lanes;
    for (int i = 0; i < kStrassenSums; ++i) {
      s.at[kStrassenP6 + i] = sums + i * blocks * sums_stride;
      s.stride[kStrassenP6 + i] = sums_stride;
    }
    return s;
  }
};

// All sums of a run, of `blocks` of half the channels.
StrassenSums sums_of(const ConvOperands& args, int64_t lanes, int64_t blocks, const StrassenRun& run, float* sums,
                     int64_t sums_stride) {
  StrassenSums s;
  s.source = args.src + run.first * lanes;
  s.right = run.apart * lanes;
  s.second = blocks * args.src_channel;
  s.stride = args.src_channel;
  s.sums = sums;
  s.sum = blocks * sums_stride;
  s.sums_stride = sums_stride;
  s.blocks = blocks;
  s.rows = run.half;
  return s;
}

// The number of tiles of the `rows` left pixels of a run.
int64_t tile_count(const StrassenKernels& kernels, int64_t vectors, int64_t rows) {
  const int64_t most = kernels.max_rows[vectors];
  return rows < fewest_strassen_rows(most) ? rows : ceil_div(rows, most);
}

// The outer level's use of an inner product, see StrassenTile.
struct OuterSums {
  const float* partial = nullptr;
  float* also = nullptr;
  int64_t stride = 0;            // from vector to vector of both
  int64_t skipped = 0;           // pixels that are not stored
  StrassenSums* next = nullptr;  // sums of pixels that it reads after this product; or null
};

int64_t runs_of(int64_t half_run, int64_t pixels) {
  return std::max<int64_t>(1, (pixels + half_run) / (2 * half_run));
}

// The most pixels of one: a rest that is not worth a run is spread over the others.
int64_t most_pixels(int64_t half_run) {
  return 3 * half_run;
}

// Blocks of weights of the inner level, with those of the rest or without.
int64_t weight_blocks(const StrassenPlan& plan, int64_t rest) {
  return kStrassenProducts * plan.blocks + kStrassenQuarters * rest;
}

// Weights of the inner level of a product of the outer one.
int64_t inner_weight_size(const StrassenPlan& plan, int product) {
  const int64_t rest = ends_quarter(product) ? plan.rest : 0;
  return weight_blocks(plan, rest) * plan.lanes * plan.vectors * plan.lanes;
}

// The left pixels of the channels that are in no part.
struct StrassenRest {
  const float* src = nullptr;
  int64_t channel = 0, blocks = 0;

  static StrassenRest of(const StrassenPlan& plan, const ConvOperands& args, int64_t first) {
    const int64_t halves = plan.parts() * plan.blocks;
    return {args.src + halves * args.src_channel + first * plan.lanes, args.src_channel, plan.rest};
  }
};

// The tiles of one run.
class RunTiles {
 public:
  RunTiles(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args, const OuterSums& outer,
           const StrassenRest& rest, const StrassenRun& run, float* sums)
      : plan_(plan),
        kernels_(kernels),
        args_(args),
        run_(run),
        skipped_(run.first == 0 ? outer.skipped : 0),
        sums_(sums_of(args, plan.lanes, plan.blocks, run, sums, plan.sums_stride)) {
    const int64_t first = run.first * plan.lanes;
    const Sources sources = Sources::of(args, plan.lanes, plan.blocks, run, sums, plan.sums_stride);
    std::copy_n(sources.at, kStrassenProducts, tile_.source);
    std::copy_n(sources.stride, kStrassenProducts, tile_.stride);
    tile_.blocks = plan.blocks;
    if (rest.blocks > 0) {
      tile_.rest[0] = rest.src + first;
      tile_.rest[1] = tile_.rest[0] + run.apart * plan.lanes;
      tile_.rest_stride = rest.channel;
      tile_.rest_blocks = rest.blocks;
    }
    tile_.weight = args.weight;
    tile_.dst = args.dst + first;
    tile_.dst_vector = args.dst_channel;
    tile_.dst_lower = plan.vectors * args.dst_channel;
    if (args.residual) tile_.residual = args.residual + first;
    tile_.residual_vector = args.residual_channel;
    tile_.residual_lower = plan.vectors * args.residual_channel;
    if (outer.partial) tile_.partial = outer.partial + first;
    if (outer.also) tile_.also = outer.also + first;
    tile_.partial_vector = outer.stride;
    tile_.partial_lower = plan.vectors * outer.stride;
    tile_.others = outer.next;
    tile_.right = run.apart * plan.lanes;
    tile_.lo = args.lo;
    tile_.hi = args.hi;
  }

  // `next`: the pixels of args.prefetched that are fetched meanwhile. Without any the last run fetches what lies behind
  // the weights: those of the next step.
  void run(IndexRange next, bool is_last_run) {
    for (int64_t p = 0; p < plan_.panels; ++p) {
      const IndexRange vectors = panel_vectors(plan_, p);
      const bool is_last = p + 1 == plan_.panels;
      const int64_t k = weight_blocks(plan_, tile_.rest_blocks) * plan_.lanes, width = vectors.size() * plan_.lanes;
      const int64_t tiles = tile_count(kernels_, vectors.size(), run_.half);
      PrefetchPlan weights;
      if (!is_last || (is_last_run && !args_.prefetched))
        weights = PrefetchPlan::over(tile_.weight + k * width, width, k, tiles);
      for (int64_t i = 0; i < tiles; ++i) {
        const IndexRange part = even_part(run_.half, tiles, i);
        StrassenTile t = tile_;
        advance(vectors, part, t);
        if (p == 0) give_sums(part, t);
        if (weights.next) {
          fetch_weights(weights, t);
        } else {
          fetch_pixels(next.begin, even_part(next.size(), tiles, i), t);
        }
        if (args_.later.size > 0) prefetch_later(even_part(args_.later.size, plan_.panels * tiles, p * tiles + i), t);
        kernels_.tile[vectors.size()][part.size()](t);
      }
      tile_.weight += k * width;
    }
  }

 private:
  // To the tile of some rows and vectors.
  void advance(IndexRange vectors, IndexRange rows, StrassenTile& t) const {
    const int64_t pixel = rows.begin * plan_.lanes;
    for (const float*& source : t.source) source += pixel;
    for (const float*& rest : t.rest) rest = rest ? rest + pixel : nullptr;
    t.dst += pixel + vectors.begin * t.dst_vector;
    if (t.residual) t.residual += pixel + vectors.begin * t.residual_vector;
    if (t.partial) t.partial += pixel + vectors.begin * t.partial_vector;
    if (t.also) t.also += pixel + vectors.begin * t.partial_vector;
    if (rows.begin == 0) {
      t.skipped[0] = skipped_;
      // Right pixels that are left ones too.
      t.skipped[1] = run_.half - run_.apart;
    }
    if (!args_.bias) return;
    t.bias[0] = args_.bias + vectors.begin * plan_.lanes;
    t.bias[1] = t.bias[0] + plan_.vectors * plan_.lanes;
  }

  // The first panel's tiles make them, each its own rows.
  void give_sums(IndexRange rows, StrassenTile& t) const {
    t.own = sums_;
    t.own.source += rows.begin * plan_.lanes;
    t.own.sums += rows.begin * plan_.lanes;
    t.own.rows = rows.size();
    t.own.step = ceil_div(rows.size(), int64_t{kStrassenPlain} * kernels_.steps);
  }

  void fetch_weights(PrefetchPlan& weights, StrassenTile& t) const {
    t.prefetched = weights.next;
    t.prefetched_step = weights.step;
    t.prefetched_blocks = weight_blocks(plan_, t.rest_blocks);
    weights.next += weights.tile;
  }

  // Beside the first two products and the rest behind them, which have as many blocks as the pixels.
  void fetch_pixels(int64_t first, IndexRange pixels, StrassenTile& t) const {
    if (!args_.prefetched || pixels.size() == 0) return;
    t.prefetched = args_.prefetched + (first + pixels.begin) * plan_.lanes;
    t.prefetched_step = pixels.size();
    t.prefetched_block = args_.prefetched_channel - pixels.size() * plan_.lanes;
    t.prefetched_blocks = 2 * plan_.blocks + t.rest_blocks;
  }

  // Beside what is left of the blocks, or half of them: then what comes first is fetched beside the other half.
  void prefetch_later(IndexRange floats, StrassenTile& t) const {
    const int64_t blocks = weight_blocks(plan_, t.rest_blocks);
    if (!t.prefetched) t.prefetched_blocks = 0;
    if (2 * t.prefetched_blocks > blocks) {
      t.prefetched_step *= 2;
      t.prefetched_blocks = ceil_div(t.prefetched_blocks, 2);
    }
    t.later = args_.later.data + floats.begin;
    t.later_step = ceil_div(floats.size(), std::max<int64_t>(1, (blocks - t.prefetched_blocks) * plan_.lanes));
  }

  const StrassenPlan& plan_;
  const StrassenKernels& kernels_;
  const ConvOperands& args_;
  const StrassenRun& run_;
  const int64_t skipped_;
  const StrassenSums sums_;
  StrassenTile tile_;
};

// All runs of the inner level. With kStrassenSums sums of blocks in the workspace.
void run_inner(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args,
               const OuterSums& outer, const StrassenRest& rest, int64_t pixels, float* workspace) {
  const int64_t runs = runs_of(plan.run, pixels);
  for (int64_t i = 0; i < runs; ++i) {
    const StrassenRun run = StrassenRun::of(even_part(pixels, runs, i));
    RunTiles(plan, kernels, with_later(args, runs, i), outer, rest, run, workspace)
        .run(even_part(args.prefetched_pixels, runs, i), i + 1 == runs);
  }
}

// The use of each product of the outer level: two sums of products, which several quarters share, are kept in
// places.
struct OuterStep {
  int also = -1, partial = -1;  // places
  int place = -1;               // where it goes; -1: to a quarter
  int right = 0, lower = 0;
};
constexpr int kOuterPlaces = 2;
constexpr OuterStep kOuterSteps[kStrassenProducts] = {
    {.place = 0},                                       // p1
    {.partial = 0, .right = 0, .lower = 0},             // p1 + p2
    {.partial = 0, .place = 0},                         // p1 + p6
    {.partial = 0, .place = 1},                         // p1 + p6 + p7
    {.partial = 1, .right = 0, .lower = 1},             // p1 + p6 + p7 + p4
    {.also = 0, .partial = 1, .right = 1, .lower = 1},  // p1 + p6 + p7 + p5, and p1 + p6 + p5
    {.partial = 0, .right = 1, .lower = 0},             // p1 + p6 + p5 + p3
};

// Rows of the outer level's sums to be made at each step of inner products, such that the products before those that
// read them make them all.
int64_t outer_sums_step(const StrassenPlan& plan, const StrassenKernels& kernels, int64_t half) {
  int64_t tiles = 0;
  const int64_t runs = runs_of(plan.run, half);
  for (int64_t i = 0; i < runs; ++i) {
    const StrassenRun run = StrassenRun::of(even_part(half, runs, i));
    for (int64_t p = 0; p < plan.panels; ++p) tiles += tile_count(kernels, panel_vectors(plan, p).size(), run.half);
  }
  // A block's rows are of twice as many blocks as a product has.
  constexpr int64_t kInner = kStrassenProducts - kStrassenPlain;
  return ceil_div(half, kStrassenPlain * kInner * tiles * kernels.steps / 2);
}

// One run of the outer level: seven products by the inner one.
void run_outer(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args, IndexRange part,
               IndexRange next, float* workspace) {
  const int64_t blocks = 2 * plan.blocks, vectors = 2 * plan.vectors, stride = plan.outer_stride;
  const StrassenRun run = StrassenRun::of(part);
  float* const places = workspace + kStrassenSums * blocks * stride;
  float* const inner = places + kOuterPlaces * vectors * stride;
  StrassenSums sums = sums_of(args, plan.lanes, blocks, run, workspace, stride);
  sums.step = outer_sums_step(plan, kernels, run.half);
  const Sources sources = Sources::of(args, plan.lanes, blocks, run, workspace, stride);
  const auto place = [&](int i) { return places + i * vectors * stride; };
  const float* weight = args.weight;
  for (int product = 0; product < kStrassenProducts; ++product) {
    const OuterStep& step = kOuterSteps[product];
    ConvOperands a;
    a.src = sources.at[product];
    a.src_channel = sources.stride[product];
    a.weight = weight;
    weight += inner_weight_size(plan, product);
    a.later = args.later;
    a = with_later(a, kStrassenProducts, product);
    StrassenRest rest;
    OuterSums outer;
    outer.stride = stride;
    if (product < kStrassenPlain) outer.next = &sums;
    if (step.partial >= 0) outer.partial = place(step.partial);
    if (step.also >= 0) outer.also = place(step.also);
    if (step.place >= 0) {
      a.dst = place(step.place);
      a.dst_channel = stride;
      a.lo = -std::numeric_limits<float>::infinity();
      a.hi = std::numeric_limits<float>::infinity();
    } else {
      const int64_t pixel = (run.first + step.right * run.apart) * plan.lanes, vector = step.lower * vectors;
      a.dst = args.dst + pixel + vector * args.dst_channel;
      a.dst_channel = args.dst_channel;
      if (args.residual) a.residual = args.residual + pixel + vector * args.residual_channel;
      a.residual_channel = args.residual_channel;
      if (args.bias) a.bias = args.bias + vector * plan.lanes;
      a.lo = args.lo;
      a.hi = args.hi;
      if (plan.rest > 0) rest = StrassenRest::of(plan, args, run.first + step.right * run.apart);
      outer.skipped = step.right ? run.half - run.apart : 0;
    }
    // The pixels of half the channels beside each of two products.
    if (args.prefetched && product < 2) {
      a.prefetched = args.prefetched + product * blocks * args.prefetched_channel + next.begin * plan.lanes;
      a.prefetched_channel = args.prefetched_channel;
      a.prefetched_pixels = next.size();
    }
    run_inner(plan, kernels, a, outer, rest, run.half, inner);
  }
}

// Sums of the quarters a, b, c and d of a matrix, in the order of the products.
template <class T>
void combine_quarters(T a, T b, T c, T d, double (&sums)[kStrassenProducts]) {
  sums[kStrassenP1] = a;
  sums[kStrassenP2] = b;
  sums[kStrassenP6] = double{c} + d - a;
  sums[kStrassenP7] = double{a} - c;
  sums[kStrassenP4] = -double{d};
  sums[kStrassenP5] = double{c} + d;
  sums[kStrassenP3] = double{a} + b - c - d;
}

// Weights of so many channels, with `stride` from row to row.
struct RestWeights {
  const float* at = nullptr;
  int64_t stride = 0, channels = 0;
};

// The inner level of a matrix [oc][ic], and of what its columns have of the rest.
template <class T>
void pack_inner(const StrassenPlan& plan, const T* weight, int64_t stride, const RestWeights& rest, float* packed) {
  const int64_t half = plan.blocks * plan.lanes, lower = plan.vectors * plan.lanes;
  for (int64_t p = 0; p < plan.panels; ++p) {
    const IndexRange vectors = panel_vectors(plan, p);
    const int64_t width = vectors.size() * plan.lanes, product = half * width;
    for (int64_t o = 0; o < width; ++o) {
      const int64_t column = vectors.begin * plan.lanes + o;
      float* to[kStrassenProducts];
      float* next = packed + o;
      for (int q = 0; q < kStrassenProducts; ++q) {
        to[q] = next;
        next += product;
        if (!ends_quarter(q)) continue;
        const float* row = rest.at + (column + kOuterSteps[q].lower * lower) * rest.stride;
        for (int64_t i = 0; i < rest.channels; ++i, next += width) *next = row[i];
      }
      const T *upper = weight + column * stride, *under = upper + lower * stride;
      for (int64_t i = 0; i < half; ++i) {
        double sums[kStrassenProducts];
        combine_quarters(upper[i], upper[half + i], under[i], under[half + i], sums);
        for (int q = 0; q < kStrassenProducts; ++q) to[q][i * width] = static_cast<float>(sums[q]);
      }
    }
    packed += weight_blocks(plan, rest.channels / plan.lanes) * plan.lanes * width;
  }
}

}  // namespace

const char* reject_strassen(int64_t ic, int64_t oc, int64_t lanes, const StrassenKernels& kernels, int64_t levels) {
  const int64_t part = lanes << levels;
  if (ic % lanes != 0 || ic < part) return "the input channels are no vectors, or fewer than there are parts";
  if (oc % part != 0) {
    return levels > 1 ? "the output channels are not four times a number of vectors"
                      : "the output channels are not an even number of vectors";
  }
  const int64_t vectors = oc / part, panels = panel_count(vectors, kernels);
  if (panels == 0 || ceil_div(vectors, panels) > kTileVectors || !kernels.tile[ceil_div(vectors, panels)][1]) {
    return levels > 1 ? "a quarter of the output channels makes narrow tiles"
                      : "half the output channels make narrow tiles";
  }
  return nullptr;
}

StrassenPlan plan_strassen(int64_t ic, int64_t oc, int64_t lanes, const StrassenKernels& kernels, int64_t levels,
                           int64_t pixels) {
  StrassenPlan plan;
  plan.lanes = lanes;
  plan.levels = levels;
  plan.blocks = ic / (plan.parts() * plan.lanes);
  plan.rest = ic / plan.lanes - plan.parts() * plan.blocks;
  plan.vectors = oc / (plan.parts() * plan.lanes);
  plan.panels = panel_count(plan.vectors, kernels);
  plan.is_short = kernels.has_few_registers;
  plan.max_rows = kernels.max_rows[ceil_div(plan.vectors, plan.panels)];
  const int64_t wanted = wanted_run(2 * plan.blocks * lanes, strassen_weight_size(plan) * 4, levels, plan.is_short);
  plan.run = ceil_div(wanted, plan.max_rows) * plan.max_rows;
  // Floats between blocks of half so many pixels as a run has, or as there are: an odd number of vectors.
  const auto stride = [&](int64_t half_run, int64_t most) {
    return (std::min((most_pixels(half_run) + plan.parts()) / 2, most / 2 + 1) | 1) * lanes;
  };
  if (levels > 1) {
    plan.outer_run = 2 * plan.run;
    plan.outer_stride = stride(plan.outer_run, pixels);
    pixels = plan.outer_stride / lanes;
    plan.workspace_size = 2 * (kStrassenSums * plan.blocks + kOuterPlaces * plan.vectors) * plan.outer_stride;
  }
  plan.sums_stride = stride(plan.run, pixels);
  plan.workspace_size += kStrassenSums * plan.blocks * plan.sums_stride;
  return plan;
}

double strassen_error(int64_t levels) {
  return levels > 1 ? 5.9 : 3.1;
}

int64_t strassen_runs(const StrassenPlan& plan, int64_t pixels) {
  return runs_of(plan.half_run(), pixels);
}

IndexRange strassen_run(const StrassenPlan& plan, int64_t pixels, int64_t runs, int64_t i) {
  const int64_t unit = plan.parts();
  const IndexRange units = even_part(ceil_div(pixels, unit), runs, i);
  return {std::min(units.begin * unit, pixels), std::min(units.end * unit, pixels)};
}

int64_t strassen_run_pixels(const StrassenPlan& plan) {
  return most_pixels(plan.half_run()) + plan.parts();
}

int64_t strassen_weight_size(const StrassenPlan& plan) {
  if (plan.levels == 1) return inner_weight_size(plan, kStrassenP2);
  int64_t size = 0;
  for (int product = 0; product < kStrassenProducts; ++product) size += inner_weight_size(plan, product);
  return size;
}

void pack_strassen_weight(const StrassenPlan& plan, const float* weight, float* packed) {
  const int64_t ic = plan.input_blocks() * plan.lanes, rest = plan.rest * plan.lanes;
  const RestWeights direct = {weight + ic - rest, ic, rest};
  if (plan.levels == 1) return pack_inner(plan, weight, ic, direct, packed);
  const int64_t half = 2 * plan.blocks * plan.lanes, rows = 2 * plan.vectors * plan.lanes;
  const auto matrix = static_cast<size_t>(rows * half);
  std::vector<double> products(kStrassenProducts * matrix);
  for (int64_t o = 0; o < rows; ++o) {
    const float *upper = weight + o * ic, *lower = upper + rows * ic;
    double* to = &products[static_cast<size_t>(o * half)];
    for (int64_t i = 0; i < half; ++i) {
      double sums[kStrassenProducts];
      combine_quarters(upper[i], upper[half + i], lower[i], lower[half + i], sums);
      for (size_t q = 0; q < kStrassenProducts; ++q) to[q * matrix + static_cast<size_t>(i)] = sums[q];
    }
  }
  for (int q = 0; q < kStrassenProducts; ++q) {
    RestWeights of_quarter;
    if (ends_quarter(q)) of_quarter = {direct.at + kOuterSteps[q].lower * rows * ic, ic, rest};
    pack_inner(plan, &products[static_cast<size_t>(q) * matrix], half, of_quarter, packed);
    packed += inner_weight_size(plan, q);
  }
}

int64_t fewest_strassen_pixels(const StrassenPlan& plan) {
  return plan.parts() * fewest_strassen_rows(plan.max_rows);
}

void run_strassen(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args, int64_t pixels,
                  float* workspace) {
  const int64_t runs = pixels > 0 ? strassen_runs(plan, pixels) : 0;
  for (int64_t i = 0; i < runs; ++i) run_strassen_run(plan, kernels, args, pixels, runs, i, workspace);
}

void run_strassen_run(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args,
                      int64_t pixels, int64_t runs, int64_t i, float* workspace) {
  const IndexRange part = strassen_run(plan, pixels, runs, i), next = even_part(args.prefetched_pixels, runs, i);
  if (part.size() == 0) return;
  const ConvOperands a = with_later(args, runs, i);
  if (plan.levels > 1) {
    run_outer(plan, kernels, a, part, next, workspace);
  } else {
    const StrassenRun run = StrassenRun::of(part);
    RunTiles(plan, kernels, a, {}, StrassenRest::of(plan, a, 0), run, workspace).run(next, i + 1 == runs);
  }
  const int64_t vectors = plan.parts() * plan.vectors;
  for (int64_t v = 0; v < vectors && args.activation; ++v) {
    args.activation(args.dst + v * args.dst_channel + part.begin * plan.lanes, part.size() * plan.lanes);
  }
}

double strassen_work(const StrassenPlan& plan, double pixels, double part, const Target& target) {
  // Cycles of a vector of each sum of pixels, and of a vector of each quarter; at each level.
  constexpr double kQuarterCycles = 12;
  const double sum_cycles = plan.is_short ? 18 : 8, outer_quarter_cycles = plan.is_short ? 24 : 40;
  // Fixed cycles of a product of a tile; one level of short vectors has them in its sums.
  const double product_cycles = !plan.is_short ? 35 : plan.levels > 1 ? 60 : 0;
  const double vectors = static_cast<double>(plan.vectors) / static_cast<double>(plan.panels);
  const auto lanes = static_cast<double>(plan.lanes), all_vectors = static_cast<double>(plan.vectors);
  const auto blocks = static_cast<double>(plan.blocks), parts = static_cast<double>(plan.parts());
  const double ic = blocks * lanes;
  const double panel_bytes = kStrassenProducts * ic * vectors * lanes * 4;
  // Pixels of an inner half, and of a tile.
  const double half_run = static_cast<double>(plan.half_run());
  const double half = std::max(1.0, part / std::max(1.0, std::floor((part + half_run) / (2 * half_run))) / parts);
  const auto most = static_cast<double>(plan.max_rows);
  const bool is_narrow = half < static_cast<double>(fewest_strassen_rows(plan.max_rows));
  const double rows = is_narrow ? 1 : half / std::ceil(half / most);
  double efficiency = blocked_efficiency(is_narrow ? rows : most, vectors, panel_bytes, plan.lanes, target);
  // Tiles of two vectors and many rows are no worse here than wide ones: they read the weights less often. Two FMAs per
  // cycle leave less time for all reads.
  if (!plan.is_short && !has_wide_fmas(target)) efficiency *= plan.levels > 1 ? 1.13 : 1.08;
  const double products =
      kStrassenProducts * (ic * all_vectors / efficiency + product_cycles * static_cast<double>(plan.panels) / rows);
  const double rest = kStrassenQuarters * static_cast<double>(plan.rest) * lanes * all_vectors / efficiency;
  // Cycles of as many pixels as the inner level's halves have.
  double cycles = products + sum_cycles * blocks + kQuarterCycles * all_vectors;
  if (plan.levels > 1)
    cycles = kStrassenProducts * cycles + 4 * (sum_cycles * blocks + outer_quarter_cycles * all_vectors);
  cycles += (plan.levels > 1 ? kStrassenQuarters : 1) * rest;
  double work = cycles * pixels / parts * 2 * lanes;
  // Runs of short vectors all wait for weights from beyond the private cache, which each of them reads.
  const double weight_bytes = 4 * static_cast<double>(strassen_weight_size(plan));
  if (plan.is_short && !is_cache_resident(weight_bytes, target) && !is_near(weight_bytes, target)) {
    work += stream_us(weight_bytes * pixels / (2 * half_run)) * target.gflops_per_thread * 1e3;
  }
  return work;
}

}  // namespace neo
