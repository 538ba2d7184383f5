#include "routines/cpu/conv/strassen.h"

#include <algorithm>
#include <limits>

#include "routines/cpu/gemm/fetch_ahead.h"
#include "routines/cpu/gemm/split.h"
#include "routines/cpu/gemm/tile_cost.h"
#include "routines/cpu/gemm/tile_use.h"
#include "routines/cpu/tier.h"

NEO_DECLARE_TIERS(void strassen_sums(const StrassenSums& sums))

namespace neo {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// In the order in which they are computed and their weights are packed.
enum Product { kP1, kP2, kP6, kP7, kP4, kP5, kP3 };
constexpr int kProducts = 7;
constexpr int kSums = 4;  // of pixels: the sources of kP6 ... kP5

// Pixels of a half that are worth a run: the sums of few stay near while weights pass by.
constexpr int64_t kWantedRun = 12;

// The most pixels of a half in a run: a rest that is not worth one is spread over the others.
int64_t most_pixels(const StrassenPlan& plan) {
  return plan.run + plan.run / 2;
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

// The register blocks of one run.
class RunBlocks {
 public:
  RunBlocks(const StrassenPlan& plan, const TileKernels& tiles, const ConvOperands& args, const StrassenRun& run,
            const float* sums)
      : plan_(plan), tiles_(tiles), args_(args), run_(run) {
    const int64_t first = run.first * plan.lanes, second = plan.blocks * args.src_channel;
    source_[kP1] = args.src + first;
    source_[kP2] = source_[kP1] + second;
    source_[kP3] = source_[kP2] + run.apart * plan.lanes;
    for (int i = 0; i < kSums; ++i) source_[kP6 + i] = sums + i * plan.blocks * plan.sums_stride;
    tile_.taps = &tap_;
    tile_.tap_count = 1;
    tile_.step = tile_.block_size = tile_.last_size = plan.lanes;
    tile_.blocks = plan.blocks;
    weight_ = args.weight;
  }

  // `next`: the pixels of args.ahead that are fetched meanwhile.
  void run(IndexRange next) {
    for (int64_t p = 0; p < plan_.panels; ++p) {
      vectors_ = panel_vectors(plan_, p);
      const bool is_last = p + 1 == plan_.panels;
      const int64_t k = plan_.blocks * plan_.lanes, width = vectors_.size() * plan_.lanes;
      const int64_t count = ceil_div(run_.half, tiles_.max_rows[vectors_.size()]);
      tile_.weight_step = width;
      weights_ahead_ = FetchAhead::over(weight_ + kProducts * k * width, width, k, kProducts * count);
      if (is_last) weights_ahead_ = {};
      for (int64_t i = 0; i < count; ++i) {
        rows_ = even_part(run_.half, count, i);
        const IndexRange part = even_part(next.size(), count, i);
        next_ = is_last ? IndexRange{next.begin + part.begin, next.begin + part.end} : IndexRange{0, 0};
        run_block();
      }
      weight_ += kProducts * k * width;
    }
  }

 private:
  // Sums of a register block: dense rows of the panel's vectors.
  struct alignas(64) Block {
    static constexpr int64_t kMostLanes = 16, kMost = 28;  // vectors that registers hold
    float at[kMost * kMostLanes];
  };

  void run_block() {
    Block first, lower, fifth;
    multiply(kP1, nullptr, first, nullptr);
    store(kP2, first, false, false);
    multiply(kP6, &first, first, nullptr);
    multiply(kP7, &first, lower, bias(true));
    store(kP4, lower, false, true);
    multiply(kP5, nullptr, fifth, nullptr);
    add(fifth, first, first);
    add(fifth, lower, lower);
    finish(lower, true, true);
    store(kP3, first, true, false);
  }

  const float* bias(bool is_lower) const {
    return args_.bias ? args_.bias + ((is_lower ? plan_.vectors : 0) + vectors_.begin) * plan_.lanes : nullptr;
  }

  // Offset of a quarter's first pixel and channel in dst or residual.
  int64_t quarter(int64_t channel, bool is_right, bool is_lower) const {
    return (run_.first + (is_right ? run_.apart : 0) + rows_.begin) * plan_.lanes +
           (vectors_.begin + (is_lower ? plan_.vectors : 0)) * channel;
  }

  // Right pixels that are left ones too.
  int64_t skipped(bool is_right) const { return is_right && rows_.begin == 0 ? run_.half - run_.apart : 0; }

  void call(Product product) {
    tile_.src = source_[product] + rows_.begin * plan_.lanes;
    tile_.block_stride = product >= kP6 && product <= kP5 ? plan_.sums_stride : args_.src_channel;
    tile_.weight = weight_ + product * plan_.blocks * plan_.lanes * tile_.weight_step;
    tile_.ahead = nullptr;
    tile_.ahead_step = 0;
    weights_ahead_.give(tile_);
    if (args_.ahead && product <= kP2 && next_.size() > 0) fetch_pixels(product == kP1 ? 0 : plan_.blocks);
    tiles_.rows[vectors_.size()][rows_.size()](tile_);
  }

  // The channels that the first two products sum.
  void fetch_pixels(int64_t block) {
    tile_.ahead = args_.ahead + block * args_.ahead_channel + next_.begin * plan_.lanes;
    tile_.ahead_step = next_.size();
    tile_.ahead_block = args_.ahead_channel - next_.size() * plan_.lanes;
  }

  void set_init(const Block* init) {
    tile_.init = init ? init->at : nullptr;
    tile_.init_row = vectors_.size() * plan_.lanes;
    for (int64_t v = 0; v < vectors_.size(); ++v) tile_.init_vector[v] = v * plan_.lanes;
  }

  // to = init + product + bias
  void multiply(Product product, const Block* init, Block& to, const float* bias) {
    set_init(init);
    tile_.bias = bias;
    tile_.dst = to.at;
    tile_.dst_row = vectors_.size() * plan_.lanes;
    for (int64_t v = 0; v < vectors_.size(); ++v) tile_.dst_vector[v] = v * plan_.lanes;
    tile_.lo = -kInfinity;
    tile_.hi = kInfinity;
    call(product);
  }

  // A quarter of the result: init + product, of upper channels their bias.
  void store(Product product, const Block& init, bool is_right, bool is_lower) {
    const float* added = is_lower ? nullptr : bias(false);
    if (args_.residual || skipped(is_right) > 0) {
      Block sum;
      multiply(product, &init, sum, added);
      finish(sum, is_right, is_lower);
      return;
    }
    set_init(&init);
    tile_.bias = added;
    tile_.dst = args_.dst + quarter(args_.dst_channel, is_right, is_lower);
    tile_.dst_row = plan_.lanes;
    for (int64_t v = 0; v < vectors_.size(); ++v) tile_.dst_vector[v] = v * args_.dst_channel;
    tile_.lo = args_.lo;
    tile_.hi = args_.hi;
    call(product);
  }

  TileEdge edge_of(const Block& block, int64_t first) const {
    TileEdge e;
    e.vectors = vectors_.size();
    e.columns = e.vectors * plan_.lanes;
    e.rows = rows_.size() - first;
    e.acc = block.at + first * e.columns;
    return e;
  }

  void add(const Block& a, const Block& b, Block& to) const {
    TileEdge e = edge_of(a, 0);
    e.init = b.at;
    e.dst = to.at;
    e.init_row = e.dst_row = e.columns;
    for (int64_t v = 0; v < e.vectors; ++v) e.init_vector[v] = e.dst_vector[v] = v * plan_.lanes;
    e.lo = -kInfinity;
    e.hi = kInfinity;
    tiles_.edge(e);
  }

  // A quarter of the result, which is in a block.
  void finish(const Block& block, bool is_right, bool is_lower) const {
    const int64_t first = skipped(is_right);
    TileEdge e = edge_of(block, first);
    e.dst = args_.dst + quarter(args_.dst_channel, is_right, is_lower) + first * plan_.lanes;
    if (args_.residual) {
      e.init = args_.residual + quarter(args_.residual_channel, is_right, is_lower) + first * plan_.lanes;
    }
    e.init_row = e.dst_row = plan_.lanes;
    for (int64_t v = 0; v < e.vectors; ++v) {
      e.dst_vector[v] = v * args_.dst_channel;
      e.init_vector[v] = v * args_.residual_channel;
    }
    e.lo = args_.lo;
    e.hi = args_.hi;
    tiles_.edge(e);
  }

  const StrassenPlan& plan_;
  const TileKernels& tiles_;
  const ConvOperands& args_;
  const StrassenRun& run_;
  const float* source_[kProducts];
  const float* weight_;  // of the panel
  IndexRange vectors_{}, rows_{}, next_{};
  FetchAhead weights_ahead_;
  TileTap tap_{};
  Tile tile_;
};

}  // namespace

StrassenKernels StrassenKernels::of(Isa isa) {
  return {tile_kernels_of(isa), NEO_PICK_TIER(isa, strassen_sums)};
}

const char* reject_strassen(int64_t ic, int64_t oc, int64_t lanes) {
  constexpr int64_t kFewest = 2;  // vectors of half the output channels
  if (ic % (2 * lanes) != 0 || oc % (2 * lanes) != 0) return "the channels are not an even number of vectors";
  if (oc < 2 * kFewest * lanes) return "few output channels";
  return nullptr;
}

StrassenPlan plan_strassen(int64_t ic, int64_t oc, const TileKernels& tiles) {
  StrassenPlan plan;
  plan.lanes = tiles.lanes;
  plan.blocks = ic / (2 * plan.lanes);
  plan.vectors = oc / (2 * plan.lanes);
  plan.panels = ceil_div(plan.vectors, kTileVectors);
  const int64_t rows = tiles.max_rows[ceil_div(plan.vectors, plan.panels)];
  plan.run = ceil_div(kWantedRun, rows) * rows;
  plan.sums_stride = (most_pixels(plan) | 1) * plan.lanes;
  plan.workspace_size = kSums * plan.blocks * plan.sums_stride;
  return plan;
}

int64_t strassen_weight_size(const StrassenPlan& plan) {
  return kProducts * plan.blocks * plan.lanes * plan.vectors * plan.lanes;
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
        const double sums[kProducts] = {a, b, c + d - a, a - c, -d, c + d, a + b - c - d};
        float* to = packed + i * width + o;
        for (int64_t q = 0; q < kProducts; ++q) to[q * product] = static_cast<float>(sums[q]);
      }
    }
    packed += kProducts * product;
  }
}

void run_strassen(const StrassenPlan& plan, const StrassenKernels& kernels, const ConvOperands& args, int64_t pixels,
                  float* workspace) {
  if (pixels == 0) return;
  const int64_t runs = std::max<int64_t>(1, (pixels + plan.run) / (2 * plan.run));
  for (int64_t i = 0; i < runs; ++i) {
    const IndexRange part = even_part(pixels, runs, i);
    const StrassenRun run = StrassenRun::of(part);
    StrassenSums sums;
    sums.left = args.src + run.first * plan.lanes;
    sums.right = sums.left + run.apart * plan.lanes;
    sums.stride = args.src_channel;
    sums.second = plan.blocks * args.src_channel;
    sums.blocks = plan.blocks;
    sums.pixels = run.half;
    sums.dst = workspace;
    sums.dst_stride = plan.sums_stride;
    kernels.sums(sums);
    RunBlocks(plan, kernels.tiles, args, run, workspace).run(even_part(args.ahead_pixels, runs, i));
    for (int64_t v = 0; v < 2 * plan.vectors && args.activation; ++v) {
      args.activation(args.dst + v * args.dst_channel + part.begin * plan.lanes, part.size() * plan.lanes);
    }
  }
}

double strassen_work(const StrassenPlan& plan, double pixels, const TileKernels& tiles, const Target& target) {
  // Cycles of a vector of each sum of pixels, and of a vector of each quarter.
  constexpr double kSumCycles = 18, kQuarterCycles = 30;
  const double vectors = static_cast<double>(plan.vectors) / static_cast<double>(plan.panels);
  const auto rows = static_cast<double>(tiles.max_rows[ceil_div(plan.vectors, plan.panels)]);
  const auto lanes = static_cast<double>(plan.lanes);
  const double ic = static_cast<double>(plan.blocks) * lanes, panel_bytes = kProducts * ic * vectors * lanes * 4;
  const double efficiency = blocked_efficiency(rows, vectors, panel_bytes, plan.lanes, target);
  const double products = kProducts * ic * static_cast<double>(plan.vectors) / efficiency;
  const double sums =
      kSumCycles * static_cast<double>(plan.blocks) + kQuarterCycles * static_cast<double>(plan.vectors);
  return (products + sums) * pixels / 2 * 2 * lanes;
}

}  // namespace neo
