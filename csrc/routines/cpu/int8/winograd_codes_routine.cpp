#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/int8/code_table.h"
#include "routines/cpu/int8/int8_routine.h"
#include "routines/cpu/int8/winograd_codes.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/space.h"

namespace neo {
namespace {

constexpr int64_t kCodesWinogradTaps = 9;
// Room for a pair of blocks, where kernels store whole vectors.
constexpr int64_t kCodesWinogradAlign = 64;

struct CodesWinogradParts {
  const CodesWinogradKernels& transforms;
  const DotKernels& products;  // of words of int16

  static CodesWinogradParts of(const Target& target) {
    return {NEO_PICK_TIER(target.isa, codes_winograd_kernels)(), NEO_PICK_TIER(target.isa, dot_kernels)(false)};
  }
};

// A task: a block of tiles by some panels of output channels. Plain bytes.
struct CodesWinogradPlan {
  DotShape shape;
  int64_t lanes = 0, oc_vectors = 1;
  int64_t tile_columns = 0, tiles = 0;  // of a row of tiles, of all images
  int64_t words = 0;                    // of a tile's channels at one point
  int64_t vectors = 0, panels = 0;      // of output channels
  int64_t block = 1, blocks = 0, panel_chunk = 1, panel_chunks = 1, tasks = 0;
  int64_t tile_bytes = 0, point_bytes = 0;  // of transformed codes, from one to the next
  int64_t product_point = 0;                // of sums, elements from one to the next
  // A task's memory: transformed codes, sums [point][tile][columns of the panel], the codes of one tile.
  int64_t products_at = 0, window_at = 0, buffer_bytes = 0;

  int64_t channels() const { return vectors * lanes; }  // padded
  int64_t weight_words() const { return kCodesWinogradPoints * words * channels(); }
  IndexRange panel(int64_t i) const { return even_part(vectors, panels, i); }
};

CodesWinogradPlan plan_codes_winograd(const DotShape& s, int64_t oc_vectors, const DotKernels& kernels) {
  // The transformed codes and products of a block stay in the second-level cache beside a panel's weights.
  constexpr int64_t kBlockBytes = 384 << 10, kMaxBlock = 48, kFaster = 12;
  CodesWinogradPlan plan;
  plan.shape = s;
  plan.lanes = kernels.lanes;
  plan.vectors = ceil_div(s.oc, plan.lanes);
  plan.panels = ceil_div(plan.vectors, oc_vectors);
  plan.oc_vectors = ceil_div(plan.vectors, plan.panels);
  plan.words = ceil_div(s.ic, int64_t{2});
  plan.tile_columns = ceil_div(s.ow, kCodesWinogradTile);
  plan.tiles = s.n * ceil_div(s.oh, kCodesWinogradTile) * plan.tile_columns;
  plan.tile_bytes = round_up(s.ic, plan.lanes) * 2;
  const int64_t products = kCodesWinogradPoints * plan.oc_vectors * plan.lanes * 4;
  const int64_t rows = kernels.max_rows[plan.oc_vectors];
  const int64_t wanted = std::max<int64_t>(1, worthwhile_tasks(s.flops() / kFaster));
  const int64_t fits =
      std::clamp<int64_t>(kBlockBytes / (kCodesWinogradPoints * plan.tile_bytes + products), 1, kMaxBlock);
  const int64_t shared = std::max(rows, ceil_div(plan.tiles, wanted));
  plan.block = std::max<int64_t>(1, std::min(std::max(rows, fits / rows * rows), round_up(shared, rows)));
  plan.blocks = ceil_div(plan.tiles, plan.block);
  plan.block = plan.blocks == 0 ? plan.block : ceil_div(plan.tiles, plan.blocks);
  const int64_t parts = std::clamp<int64_t>(ceil_div(wanted, std::max<int64_t>(1, plan.blocks)), 1, plan.panels);
  plan.panel_chunk = ceil_div(plan.panels, parts);
  plan.panel_chunks = ceil_div(plan.panels, plan.panel_chunk);
  plan.tasks = plan.blocks * plan.panel_chunks;
  plan.point_bytes = round_up(plan.block * plan.tile_bytes, kCodesWinogradAlign) + kCodesWinogradAlign;
  plan.products_at = kCodesWinogradPoints * plan.point_bytes;
  // Points whose distance is a power of two would meet in the same few places of a cache.
  plan.product_point = plan.block * plan.oc_vectors * plan.lanes + plan.lanes;
  plan.window_at = plan.products_at + kCodesWinogradPoints * plan.product_point * 4;
  plan.buffer_bytes = plan.window_at + kCodesWinogradPoints * round_up(s.ic, plan.lanes);
  return plan;
}

// The weights' transform: of `g`, the taps of one pair of channels, at all points.
void transform_weights(const int32_t (&g)[kCodesWinogradTaps], int16_t (&to)[kCodesWinogradPoints]) {
  static constexpr int32_t kRows[kCodesWinogradWindow][3] = {{6, 0, 0}, {1, 1, 1},  {1, -1, 1},
                                                             {1, 2, 4}, {1, -2, 4}, {0, 0, 3}};
  int16_t* at = to;
  for (const auto& row : kRows) {
    for (const auto& column : kRows) {
      int32_t sum = 0;
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) sum += row[i] * column[j] * g[3 * i + j];
      *at++ = static_cast<int16_t>(sum);
    }
  }
}

struct CodesWinogradCall {
  CodesWinogradPlan plan;
  TaskSplit split;
  ConvStrides x, y, residual;
  DotResult result;
  const int32_t* weight = nullptr;
  int32_t zero = 0;
  int64_t columns_at = 0;  // in the scratch memory: what a grid that is known only then makes of init and scale
};

class WinogradCodesStep final : public KernelStep {
 public:
  WinogradCodesStep(Int8Problem problem, const Candidate& candidate, int64_t oc_vectors, const Target& target,
                    const OpRegistry& ops, PackedStore& packed)
      : problem_(std::move(problem)),
        oc_vectors_(oc_vectors),
        threads_(target.threads),
        parts_(CodesWinogradParts::of(target)) {
    const Int8Product& p = problem_.product;
    x_ = argument_of(candidate, p.x);
    residual_ = argument_of(candidate, p.residual);
    grid_ = problem_.run_time_grid(candidate);
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
    const CodesWinogradPlan plan = plan_codes_winograd(problem_.constant_shape(), oc_vectors_, parts_.products);
    constants_ = packed.floats(packed_words(plan), {p.w, p.w_scale, p.w_zero, p.bias, p.addend}, [&](float* to) {
      auto* words = reinterpret_cast<int32_t*>(to);
      problem_.pack_columns({words, plan.channels(), false});
      pack_weights(plan, words + PackedColumns::kArrays * plan.channels());
    });
    if (!p.function.nodes.empty()) table_.emplace(p.function, target, ops, packed);
  }

  static int64_t packed_words(const CodesWinogradPlan& plan) {
    return PackedColumns::kArrays * plan.channels() + plan.weight_words();
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(x_)];
    const Arg& y = args[static_cast<size_t>(y_)];
    CodesWinogradCall call;
    const DotShape shape = problem_.shape(x.dims, y.dims);
    call.plan = plan_codes_winograd(shape, oc_vectors_, parts_.products);
    call.split = TaskSplit::of(call.plan.tasks, shape.flops(), call.plan.buffer_bytes, threads_);
    call.x = ConvStrides::of(x);
    call.y = ConvStrides::of(y);
    if (residual_ >= 0) call.residual = ConvStrides::of(args[static_cast<size_t>(residual_)]);
    const int64_t padded = call.plan.channels();
    const auto* packed = reinterpret_cast<const int32_t*>(constants_.as<float>());
    call.result = problem_.result(packed, padded);
    call.weight = packed + PackedColumns::kArrays * padded;
    call.zero = problem_.product.x_grid.zero;
    call.columns_at = call.split.scratch_bytes();
    return Prepared::of(call, call.columns_at + (grid_.is_any() ? 2 * padded * 4 : 0));
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    CodesWinogradCall call = *reinterpret_cast<const CodesWinogradCall*>(prepared);
    if (grid_.is_any()) {
      auto* columns = reinterpret_cast<int32_t*>(scratch + call.columns_at);
      const int64_t padded = call.plan.channels();
      call.zero = problem_.bind_grid(grid_, args, padded, {0, padded}, false, columns, call.result).zero;
    }
    run_tasks_with<uint8_t>(team, call.split, scratch, [&](int64_t begin, int64_t end, uint8_t* buffer) {
      int64_t transformed = -1;
      for (int64_t task = begin; task < end; ++task) {
        // Tasks that share tiles are neighbours.
        const int64_t block = task / call.plan.panel_chunks, part = task % call.plan.panel_chunks;
        if (block != transformed) transform_block(call, args, block, buffer);
        transformed = block;
        const int64_t last = std::min((part + 1) * call.plan.panel_chunk, call.plan.panels);
        for (int64_t panel = part * call.plan.panel_chunk; panel < last; ++panel) {
          multiply(call, block, call.plan.panel(panel), buffer);
          store(call, args, block, call.plan.panel(panel), buffer);
        }
      }
    });
  }

 private:
  struct Place {
    int64_t image, row, column;  // of a tile's first result
  };
  static Place place_of(const CodesWinogradPlan& plan, int64_t tile) {
    const int64_t rows = ceil_div(plan.shape.oh, kCodesWinogradTile), line = tile / plan.tile_columns;
    return {line / rows, line % rows * kCodesWinogradTile, tile % plan.tile_columns * kCodesWinogradTile};
  }

  // [panel][point][word][column of the panel].
  void pack_weights(const CodesWinogradPlan& plan, int32_t* to) const {
    const Int8Weights weights(problem_.product);
    std::fill_n(to, plan.weight_words(), 0);
    for (int64_t i = 0; i < plan.panels; ++i) {
      const IndexRange panel = plan.panel(i);
      const int64_t first = panel.begin * plan.lanes, columns = panel.size() * plan.lanes;
      int32_t* base = to + first * kCodesWinogradPoints * plan.words;
      for (int64_t c = first; c < std::min(first + columns, plan.shape.oc); ++c) {
        for (int64_t ic = 0; ic < plan.shape.ic; ++ic) {
          int32_t taps[kCodesWinogradTaps];
          int16_t points[kCodesWinogradPoints];
          for (int64_t tap = 0; tap < kCodesWinogradTaps; ++tap)
            taps[tap] = weights.at(c, ic * kCodesWinogradTaps + tap);
          transform_weights(taps, points);
          const int64_t vector = (c - first) / plan.lanes * plan.lanes;
          const int64_t at = dot_weight_at(plan.lanes, 2, c % plan.lanes, ic % 2);
          for (int64_t point = 0; point < kCodesWinogradPoints; ++point)
            put_dot_weight(base + (point * plan.words + ic / 2) * columns + vector, 2, at, points[point]);
        }
      }
    }
  }

  void transform_block(const CodesWinogradCall& call, std::byte* const* args, int64_t block, uint8_t* buffer) const {
    const CodesWinogradPlan& plan = call.plan;
    const DotShape& s = plan.shape;
    const int64_t lanes = plan.lanes, line = s.iw * lanes;
    const IndexRange tiles = even_part(plan.tiles, plan.blocks, block);
    CodesWinogradInput in;
    in.blocks = ceil_div(s.ic, lanes);
    in.zero = call.zero;
    in.is_signed = problem_.product.x_grid.is_signed();
    in.dst_point = plan.point_bytes / 2;
    for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
      const Place at = place_of(plan, tile);
      const int64_t top = at.row - s.pad_top, left = at.column - s.pad_left;
      const int64_t first = std::max<int64_t>(0, -left), last = std::min(kCodesWinogradWindow, s.iw - left);
      in.src = reinterpret_cast<const uint8_t*>(args[x_]) + at.image * call.x.batch + top * line + left * lanes;
      in.src_row = line;
      in.src_block = call.x.channel;
      const bool is_inside =
          top >= 0 && top + kCodesWinogradWindow <= s.ih && first == 0 && last == kCodesWinogradWindow;
      if (!is_inside) {
        uint8_t* to = buffer + plan.window_at;
        std::memset(to, static_cast<uint8_t>(call.zero), static_cast<size_t>(in.blocks * kCodesWinogradPoints * lanes));
        for (int64_t b = 0; b < in.blocks; ++b) {
          for (int64_t i = 0; i < kCodesWinogradWindow; ++i, to += kCodesWinogradWindow * lanes) {
            if (top + i < 0 || top + i >= s.ih || last <= first) continue;
            std::memcpy(to + first * lanes, in.src + b * in.src_block + i * line + first * lanes,
                        static_cast<size_t>((last - first) * lanes));
          }
        }
        in.src = buffer + plan.window_at;
        in.src_row = kCodesWinogradWindow * lanes;
        in.src_block = kCodesWinogradPoints * lanes;
      }
      in.dst = reinterpret_cast<int16_t*>(buffer + (tile - tiles.begin) * plan.tile_bytes);
      parts_.transforms.input(in);
    }
  }

  void multiply(const CodesWinogradCall& call, int64_t block, IndexRange panel, uint8_t* buffer) const {
    static constexpr int64_t kTap = 0;
    const CodesWinogradPlan& plan = call.plan;
    const int64_t count = even_part(plan.tiles, plan.blocks, block).size(), columns = panel.size() * plan.lanes;
    const int64_t parts = ceil_div(count, int64_t{parts_.products.max_rows[panel.size()]});
    DotTile t;
    t.step = plan.tile_bytes;
    t.taps = &kTap;
    t.tap_count = 1;
    t.block_words = t.last_words = plan.words;
    t.weight = call.weight + panel.begin * plan.lanes * kCodesWinogradPoints * plan.words;
    t.result = &whole_sums();
    auto* products = reinterpret_cast<int32_t*>(buffer + plan.products_at);
    for (int64_t point = 0; point < kCodesWinogradPoints; ++point, t.weight += plan.words * columns) {
      for (int64_t i = 0; i < parts; ++i) {
        const IndexRange rows = even_part(count, parts, i);
        t.src = buffer + point * plan.point_bytes + rows.begin * plan.tile_bytes;
        t.sums = products + point * plan.product_point + rows.begin * columns;
        parts_.products.tiles[panel.size()][rows.size()](t);
      }
    }
  }

  void store(const CodesWinogradCall& call, std::byte* const* args, int64_t block, IndexRange panel,
             uint8_t* buffer) const {
    const CodesWinogradPlan& plan = call.plan;
    const DotShape& s = plan.shape;
    const IndexRange tiles = even_part(plan.tiles, plan.blocks, block);
    const int64_t item = call.result.is_float || call.result.is_whole ? 4 : 1;
    CodesWinogradOutput out;
    out.result = &call.result;
    out.dst_row = s.ow * plan.lanes;
    out.src_point = plan.product_point;
    for (int64_t vector = panel.begin; vector < panel.end; ++vector) {
      out.column = vector * plan.lanes;
      const auto* products =
          reinterpret_cast<const int32_t*>(buffer + plan.products_at) + (vector - panel.begin) * plan.lanes;
      for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, products += panel.size() * plan.lanes) {
        const Place at = place_of(plan, tile);
        const int64_t pixel = (at.row * s.ow + at.column) * plan.lanes;
        out.src = products;
        out.rows = std::min(kCodesWinogradTile, s.oh - at.row);
        out.columns = std::min(kCodesWinogradTile, s.ow - at.column);
        out.dst = args[y_] + (at.image * call.y.batch + vector * call.y.channel + pixel) * item;
        if (residual_ >= 0) {
          out.residual = reinterpret_cast<const uint8_t*>(args[residual_]) + at.image * call.residual.batch +
                         vector * call.residual.channel + pixel;
        }
        parts_.transforms.output(out);
        for (int64_t i = 0; table_ && i < out.rows; ++i)
          table_->apply(static_cast<uint8_t*>(out.dst) + i * out.dst_row, out.columns, plan.lanes, s.oc - out.column);
      }
    }
  }

  Int8Problem problem_;
  int64_t oc_vectors_;
  int threads_;
  CodesWinogradParts parts_;
  Int8Problem::RunTimeGrid grid_;
  int x_ = -1, residual_ = -1, y_ = 0;
  Tensor constants_;
  std::optional<CodeTable> table_;
};

// Convolutions of 8-bit codes by Winograd's algorithm, exact (winograd_codes.h).
class WinogradCodesRoutine final : public RoutineOf<WinogradCodesRoutine, Int8Routine> {
 public:
  std::string_view name() const override { return "cpu:int8/winograd_nchwc"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Int8Problem problem = *Int8Problem::read(workload, nullptr);
    std::vector<Candidate> all;
    for (const int64_t vectors : vectors_of(problem, target)) {
      const CodesWinogradPlan plan =
          plan_codes_winograd(problem.hint(), vectors, CodesWinogradParts::of(target).products);
      Candidate c = problem.candidate(workload, true, true, target);
      c.schedule = {{"oc_bn", vectors * target.lanes()}};
      c.cost.time_us = estimate_us(problem, plan, target);
      c.cost.packed_bytes = 4 * WinogradCodesStep::packed_words(plan) + problem.table_bytes();
      all.push_back(std::move(c));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.cost.time_us < b.cost.time_us; });
    return all;
  }

  Space space(const Workload& workload, const Target& target) const override {
    Space::Parameter oc_bn{"oc_bn", {}};
    for (const int64_t vectors : vectors_of(*Int8Problem::read(workload, nullptr), target))
      oc_bn.values.push_back(vectors * target.lanes());
    return Space({oc_bn});
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore& packed) {
    return std::make_unique<WinogradCodesStep>(*Int8Problem::read(*candidate.workload, nullptr), candidate,
                                               value_of(candidate.schedule, "oc_bn") / target.lanes(), target, ops,
                                               packed);
  }

 protected:
  std::optional<std::string> rejects_problem(const Int8Problem& problem, const Target&) const override {
    const Int8Product& p = problem.product;
    if (!p.is_conv() || problem.geometry.axes != 2) return "not a convolution of two axes";
    const DotShape s = problem.constant_shape();
    if (s.groups != 1) return "the convolution has groups";
    if (s.kh != 3 || s.kw != 3 || s.stride_h != 1 || s.stride_w != 1 || s.dilation_h != 1 || s.dilation_w != 1)
      return "the kernel is not 3x3 with a stride of 1";
    if (!p.w->constant->is_absent() && !sums_fit(p, kMaxWinogradSum)) return "a sum may reach 2^25";
    return std::nullopt;
  }

 private:
  static std::vector<int64_t> vectors_of(const Int8Problem& problem, const Target& target) {
    std::vector<int64_t> all;
    for (const int64_t vectors : {4, 2, 3, 1})
      if (vectors <= ceil_div(problem.channels, target.lanes())) all.push_back(vectors);
    return all;
  }

  static double estimate_us(const Int8Problem& problem, const CodesWinogradPlan& plan, const Target& target) {
    // Cycles of the transforms of a vector of channels of a tile, and of the start of a tile of products.
    constexpr double kInputCycles = 60, kOutputCycles = 160, kResidualCycles = 7, kTileCycles = 25;
    // Wide vectors wait for caches besides, which threads may share: most where the processor takes them in halves.
    const bool is_wide = target.lanes() > 8, is_shared = target.threads > 1;
    const double waits = !is_wide ? 1 : (core_cycles(target) < 2 ? (is_shared ? 6 : 3.5) : (is_shared ? 4 : 2));
    const DotKernels& kernels = CodesWinogradParts::of(target).products;
    const DotShape& s = plan.shape;
    const auto tiles = static_cast<double>(plan.tiles), vectors = static_cast<double>(plan.vectors);
    const double width = vectors / static_cast<double>(plan.panels);
    const auto block = static_cast<double>(plan.block);
    const double parts = std::ceil(block / static_cast<double>(kernels.max_rows[plan.oc_vectors]));
    const double products = tiles / block * parts * static_cast<double>(kCodesWinogradPoints * plan.panels);
    const double word = dot_word_cycles(block / parts, width, kernels.codes, target);
    const auto results = static_cast<double>(kCodesWinogradTile * kCodesWinogradTile);
    const double result =
        result_cycles(target) + (problem.product.residual || problem.product.addend ? kResidualCycles : 0);
    const double beside = tiles * static_cast<double>(ceil_div(s.ic, plan.lanes)) * kInputCycles * waits +
                          tiles * vectors * (kOutputCycles * waits + results * result) +
                          products * (kTileCycles + 2 * width * block / parts);
    UnfittedLoad load;
    load.arithmetic_us = cycles_us(products * word * static_cast<double>(plan.words) +
                                       (beside + problem.table_cycles(target)) * core_cycles(target),
                                   target);
    const double weights = 4 * static_cast<double>(plan.weight_words());
    if (!is_cache_resident(weights, target)) load.arithmetic_us += stream_us(weights * tiles / block);
    load.bytes = problem.traffic_bytes();
    load.constant_bytes = 4 * static_cast<double>(WinogradCodesStep::packed_words(plan));
    const TaskSplit split = TaskSplit::of(plan.tasks, s.flops());
    load.tasks = split.serial ? 1 : static_cast<double>(split.tasks);
    return unfitted_us(load, target);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(int8_winograd, WinogradCodesRoutine)

}  // namespace neo
