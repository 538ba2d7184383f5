#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/int8/code_table.h"
#include "routines/cpu/int8/depthwise_codes.h"
#include "routines/cpu/int8/int8_routine.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/space.h"

namespace neo {
namespace {

// As a schedule has them: whether words are of bytes, and whether the weights in them are less than they should be.
struct CodesDepthwiseWords {
  int64_t codes = kWordCodes;
  bool shifts = false;

  static CodesDepthwiseWords of(const Schedule& schedule) {
    return {value_of(schedule, "codes"), value_of(schedule, "row_sums") != 0};
  }
  Schedule schedule() const {
    Schedule schedule{{"codes", codes}};
    if (shifts) schedule["row_sums"] = 1;
    return schedule;
  }
  const CodesDepthwiseKernels& kernels(const Target& target) const {
    return NEO_PICK_TIER(target.isa, codes_depthwise_kernels)(codes == kByteCodes, shifts);
  }
};

// Why a block's words of the groups' input channels are not all found; else null, and the words.
const char* find_group_words(const ConvShape& s, int64_t block, int64_t lanes, int64_t block_bytes,
                             CodesGroupWord* words) {
  const int64_t count = ceil_div(s.group_ic(), kByteCodes), quarter = lanes / 4;
  for (int64_t k = 0; k < count; ++k) {
    CodesGroupWord word;
    std::fill_n(word.index, kByteCodes * lanes, kNoCode);
    word.is_one_block = true;
    for (int64_t q = 0; q < 4; ++q) {
      int64_t from = -1;
      for (int64_t lane = q * quarter; lane < (q + 1) * quarter; ++lane) {
        const int64_t group = (block * lanes + lane) / s.group_oc();
        for (int64_t i = 0; group < s.groups && i < std::min(kByteCodes, s.group_ic() - k * kByteCodes); ++i) {
          const int64_t channel = group * s.group_ic() + k * kByteCodes + i;
          if (from >= 0 && from != channel / lanes) return "four output channels read several blocks at once";
          from = channel / lanes;
          word.index[lane * kByteCodes + i] = static_cast<uint8_t>(channel % lanes);
        }
      }
      word.blocks[q] = from < 0 ? word.blocks[0] : from * block_bytes;
      word.is_one_block &= word.blocks[q] == word.blocks[0];
    }
    words[k] = word;
  }
  return nullptr;
}

struct CodesDepthwisePlan {
  ConvShape shape;
  int64_t group_words = 0;        // of a group's input channels; 0: it has one, and words are of columns
  int64_t blocks = 0, items = 0;  // of channels; words of a row of the window
  int64_t item_columns = 1;       // from one of them to the next
  int64_t rows = 0, chunks = 0, tasks = 0;
  // A task's output rows are taken in bands, in stripes of columns. The buffer has the rows that a band's windows read:
  // narrow images have bands of several rows, whose pixels are one run; else it is a ring from row to row.
  int64_t band = 1, columns = 0, stripes = 1;
  int64_t step = 1;  // columns from item to item of the buffer
  int64_t window_rows = 0, row_bytes = 0, pixels_bytes = 0, buffer_bytes = 0;

  int64_t column_items() const { return std::max<int64_t>(1, group_words); }
  int64_t weight_rows() const { return shape.kh * column_items(); }
  int64_t weight_items() const { return weight_rows() * items; }
  // Columns up to the last one that an item of these pixels begins at.
  int64_t row_columns(int64_t pixels) const { return (pixels - 1) * shape.stride_w + (items - 1) * item_columns + 1; }
  int64_t band_rows(int64_t lines) const { return (lines - 1) * shape.stride_h + window_rows; }
};

CodesDepthwisePlan plan_codes_depthwise(const ConvShape& s, const CodesDepthwiseKernels& kernels) {
  // The nearest cache has room for more than the former, and for little more than the latter.
  constexpr int64_t kRingBytes = 24 << 10, kBandBytes = 32 << 10;
  CodesDepthwisePlan plan;
  plan.shape = s;
  plan.blocks = ceil_div(s.oc, static_cast<int64_t>(kernels.lanes));
  const bool of_columns = s.ic == s.groups && s.oc == s.groups;
  if (!of_columns) plan.group_words = ceil_div(s.group_ic(), kByteCodes);
  const int64_t columns = of_columns ? kernels.columns : 1;
  plan.items = ceil_div(s.kw, columns);
  plan.item_columns = columns * s.dilation_w;
  plan.step = columns > 1 ? std::gcd(s.stride_w, plan.item_columns) : 1;
  plan.window_rows = (s.kh - 1) * s.dilation_h + 1;
  const auto row_bytes = [&](int64_t pixels) {
    return ceil_div(plan.row_columns(pixels), plan.step) * kernels.lanes * kDepthwiseItem * plan.column_items();
  };
  const int64_t wanted = std::clamp<int64_t>(
      ceil_div(worthwhile_tasks(s.flops()), std::max<int64_t>(1, s.n * plan.blocks)), 1, std::max<int64_t>(1, s.oh));
  plan.rows = std::max<int64_t>(1, ceil_div(s.oh, wanted));
  plan.chunks = ceil_div(s.oh, plan.rows);
  plan.tasks = s.ow == 0 ? 0 : s.n * plan.blocks * plan.chunks;
  plan.columns = std::max<int64_t>(1, s.ow);
  const bool is_narrow = s.ow < 2 * kDepthwiseBehind || (s.ow < 4 * kDepthwiseBehind && s.ow % kDepthwiseBehind != 0);
  if (is_narrow) {
    const int64_t rows = kBandBytes / row_bytes(plan.columns);
    plan.band = std::clamp<int64_t>((rows - plan.window_rows) / s.stride_h + 1, 1, plan.rows);
  } else {
    const int64_t wanted_stripes = ceil_div(plan.window_rows * row_bytes(plan.columns), kRingBytes);
    plan.columns = ceil_div(plan.columns, std::min(wanted_stripes, ceil_div(plan.columns, 2 * kDepthwiseBehind)));
    plan.columns = std::min(round_up(plan.columns, kDepthwiseBehind), s.ow);
    plan.stripes = ceil_div(s.ow, plan.columns);
  }
  plan.row_bytes = row_bytes(plan.columns);
  plan.pixels_bytes = round_up((plan.band * plan.columns + kDepthwiseBehind) * 8, int64_t{64});
  plan.buffer_bytes = plan.pixels_bytes + plan.band_rows(plan.band) * plan.row_bytes;
  return plan;
}

// Work of the convolution per element, as a measure of what is worth sharing among a team.
int64_t codes_depthwise_work(const ConvShape& s) {
  constexpr int64_t kOfElement = 12;
  return s.flops() + kOfElement * s.n * s.oc * s.oh * s.ow;
}

struct CodesDepthwiseCall {
  CodesDepthwisePlan plan;
  TaskSplit split;
  DotResult result;
  ConvStrides x, y, residual;
  const void* weight = nullptr;
  int64_t columns_at = 0;  // in the scratch memory: what a grid that is known only then makes of init and scale
};

class DepthwiseCodesStep final : public KernelStep {
 public:
  DepthwiseCodesStep(Int8Problem problem, const Candidate& candidate, CodesDepthwiseWords kind, const Target& target,
                     const OpRegistry& ops, PackedStore& packed)
      : problem_(std::move(problem)), threads_(target.threads), shifts_(kind.shifts), kernels_(kind.kernels(target)) {
    const Int8Product& p = problem_.product;
    x_ = argument_of(candidate, p.x);
    residual_ = argument_of(candidate, p.residual);
    grid_ = problem_.run_time_grid(candidate);
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
    const CodesDepthwisePlan plan = plan_codes_depthwise(problem_.constant_shape(), kernels_);
    const int64_t padded = plan.blocks * kernels_.lanes;
    constants_ =
        packed.floats(packed_words(plan, kernels_), {p.w, p.w_scale, p.w_zero, p.bias, p.addend}, [&](float* to) {
          auto* words = reinterpret_cast<int32_t*>(to);
          problem_.pack_columns({words, padded, from_zero()});
          pack_weights(plan, words + PackedColumns::kArrays * padded);
        });
    if (!p.function.nodes.empty()) table_.emplace(p.function, target, ops, packed);
  }

  static int64_t packed_words(const CodesDepthwisePlan& plan, const CodesDepthwiseKernels& kernels) {
    return plan.blocks * kernels.lanes * (PackedColumns::kArrays + plan.weight_items());
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[static_cast<size_t>(x_)];
    const Arg& y = args[static_cast<size_t>(y_)];
    CodesDepthwiseCall call;
    const ConvShape shape = problem_.shape(x.dims, y.dims);
    call.plan = plan_codes_depthwise(shape, kernels_);
    call.split = TaskSplit::of(call.plan.tasks, codes_depthwise_work(shape), call.plan.buffer_bytes, threads_);
    call.x = ConvStrides::of(x);
    call.y = ConvStrides::of(y);
    if (residual_ >= 0) call.residual = ConvStrides::of(args[static_cast<size_t>(residual_)]);
    const int64_t padded = call.plan.blocks * kernels_.lanes;
    const auto* packed = reinterpret_cast<const int32_t*>(constants_.as<float>());
    call.result = problem_.result(packed, padded);
    call.weight = packed + PackedColumns::kArrays * padded;
    call.columns_at = call.split.scratch_bytes();
    return Prepared::of(call, call.columns_at + (grid_.is_any() ? 2 * padded * 4 : 0));
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const CodesDepthwiseCall*>(prepared);
    DotResult result = call.result;
    int32_t zero = problem_.product.x_grid.zero;
    if (grid_.is_any()) {
      auto* columns = reinterpret_cast<int32_t*>(scratch + call.columns_at);
      const int64_t padded = call.plan.blocks * kernels_.lanes;
      zero = problem_.bind_grid(grid_, args, padded, {0, padded}, from_zero(), columns, result).zero;
    }
    run_tasks_with<uint8_t>(team, call.split, scratch, [&](int64_t begin, int64_t end, uint8_t* buffer) {
      place_pixels(call.plan, reinterpret_cast<int64_t*>(buffer));
      GroupWords words;
      for (int64_t task = begin; task < end; ++task) run_task(call, result, zero, args, task, words, buffer);
    });
  }

 private:
  // Words have codes from 0 on, numbers those from the zero point on.
  bool from_zero() const { return kernels_.columns > 1; }

  // The words of a block of output channels, whose tasks follow each other.
  struct GroupWords {
    int64_t block = -1;
    CodesGroupWord words[kMaxGroupWords];
  };

  void pack_weights(const CodesDepthwisePlan& plan, int32_t* to) const {
    const ConvShape& s = plan.shape;
    const Int8Weights weights(problem_.product);
    // The weight of a word's byte: of the next column, or of the next input channel.
    const bool of_columns = plan.group_words == 0;
    const int64_t next = of_columns ? 1 : s.taps();
    for (int64_t block = 0; block < plan.blocks; ++block) {
      for (int64_t row = 0; row < plan.weight_rows(); ++row) {
        const int64_t i = row / plan.column_items(), first = row % plan.column_items() * kByteCodes;
        for (int64_t j = 0; j < s.kw; j += of_columns ? kernels_.columns : 1) {
          const int64_t codes = std::min<int64_t>(kernels_.columns, of_columns ? s.kw - j : s.group_ic() - first);
          const int64_t at = first * s.taps() + i * s.kw + j;
          for (int64_t lane = 0; lane < kernels_.lanes; ++lane, ++to) {
            const int64_t c = block * kernels_.lanes + lane;
            *to = 0;
            if (c >= s.oc) continue;
            const int32_t shift = shifts_ ? weights.shift(c) : 0;
            if (!from_zero()) {
              *to = std::bit_cast<int32_t>(static_cast<float>(weights.at(c, at)));
              continue;
            }
            for (int64_t k = 0; k < codes; ++k)
              put_dot_weight(to, kernels_.columns, k, weights.at(c, at + k * next) - shift);
          }
        }
      }
    }
  }

  // Notes where the pixels of a band begin in its rows.
  void place_pixels(const CodesDepthwisePlan& plan, int64_t* at) const {
    const int64_t pixel = plan.shape.stride_w / plan.step * plan.column_items() * kernels_.lanes * kDepthwiseItem;
    for (int64_t i = 0; i < plan.band; ++i) {
      for (int64_t j = 0; j < plan.columns; ++j) *at++ = i * plan.shape.stride_h * plan.row_bytes + j * pixel;
    }
    std::fill_n(at, kDepthwiseBehind, at[-1]);
  }

  void run_task(const CodesDepthwiseCall& call, const DotResult& result, int32_t zero, std::byte* const* args,
                int64_t task, GroupWords& found, uint8_t* buffer) const {
    const CodesDepthwisePlan& plan = call.plan;
    const ConvShape& s = plan.shape;
    const int64_t lanes = kernels_.lanes, item = lanes * kDepthwiseItem, words = plan.column_items();
    const int64_t chunk = task % plan.chunks, block = task / plan.chunks % plan.blocks,
                  image = task / plan.chunks / plan.blocks;
    const int64_t row = chunk * plan.rows, end = std::min(row + plan.rows, s.oh);
    const auto* x = reinterpret_cast<const uint8_t*>(args[x_]) + image * call.x.batch;
    if (plan.group_words == 0) {
      x += block * call.x.channel;
    } else if (found.block != block) {
      find_group_words(s, block, lanes, call.x.channel, found.words);
      found.block = block;
    }
    uint8_t* rows = buffer + plan.pixels_bytes;
    int64_t tap_rows[kMaxDepthwiseTaps];
    CodesDepthwiseRun d;
    d.src = rows;
    d.pixel_at = reinterpret_cast<const int64_t*>(buffer);
    d.tap_rows = tap_rows;
    d.rows = plan.weight_rows();
    d.items = plan.items;
    d.item = plan.item_columns / plan.step * words * item;
    d.weight = static_cast<const int32_t*>(call.weight) + block * plan.weight_items() * lanes;
    const int64_t beyond = plan.group_words > 0 ? 0 : plan.items * kernels_.columns - s.kw;
    d.last_ones = static_cast<int32_t>(0x01010101u >> (8 * beyond % 32));
    d.result = &result;
    d.column = block * lanes;
    d.dst_pixel = lanes;
    const int64_t result_item = result.is_float || result.is_whole ? 4 : 1;
    const int64_t ring = plan.band > 1 ? plan.band_rows(plan.band) : plan.window_rows;
    for (int64_t column = 0; column < s.ow; column += plan.columns) {
      const int64_t columns = std::min(plan.columns, s.ow - column);
      int64_t next = 0;             // the first row of the image that is not in the buffer yet, and its place there
      int64_t slot = 0, first = 0;  // the latter: the place of the band's first row
      for (int64_t line = row; line < end; line += plan.band) {
        const int64_t lines = std::min(plan.band, end - line), top = line * s.stride_h;
        if (line == row || plan.band > 1 || next < top) {
          next = top;
          slot = first = 0;
        } else {
          first = (first + s.stride_h) % ring;
        }
        for (; next < top + plan.band_rows(lines); ++next) {
          fill_row(call, x, found.words, zero, next - s.pad_top, column, columns, rows + slot * plan.row_bytes);
          slot = slot + 1 == ring ? 0 : slot + 1;
        }
        int64_t at = first;
        for (int64_t i = 0; i < s.kh; ++i) {
          for (int64_t k = 0; k < words; ++k) tap_rows[i * words + k] = at * plan.row_bytes + k * item;
          at += s.dilation_h;
          if (at >= ring) at -= ring;
        }
        d.pixels = lines * columns;
        const int64_t pixel = block * call.y.channel + (line * s.ow + column) * lanes;
        d.dst = args[y_] + (image * call.y.batch + pixel) * result_item;
        if (residual_ >= 0) {
          d.residual = reinterpret_cast<const uint8_t*>(args[residual_]) + image * call.residual.batch +
                       block * call.residual.channel + (line * s.ow + column) * lanes;
        }
        kernels_.run(d);
        if (table_) table_->apply(static_cast<uint8_t*>(d.dst), d.pixels, lanes, s.oc - d.column);
      }
    }
  }

  // Row `ih` of the image, as the pixels from `column` on read it.
  void fill_row(const CodesDepthwiseCall& call, const uint8_t* x, const CodesGroupWord* words, int32_t zero, int64_t ih,
                int64_t column, int64_t pixels, uint8_t* to) const {
    const CodesDepthwisePlan& plan = call.plan;
    const ConvShape& s = plan.shape;
    const int64_t left = column * s.stride_w - s.pad_left;
    DotFill f;
    f.columns = plan.row_columns(pixels);
    f.zero = zero;
    f.is_signed = problem_.product.x_grid.is_signed();
    const bool inside = ih >= 0 && ih < s.ih;
    // A word's columns may lie behind the last one that a word begins at.
    f.begin = inside ? std::max<int64_t>(-left, 0) : 0;
    f.end = inside ? std::max(s.iw - left, f.begin) : 0;
    f.src = x + (ih * s.iw + left + f.begin) * kernels_.lanes;
    f.dst = to;
    plan.group_words > 0 ? kernels_.fill_groups(f, words, plan.group_words) : kernels_.fill(f, plan.step, s.dilation_w);
  }

  Int8Problem problem_;
  int threads_;
  bool shifts_;
  const CodesDepthwiseKernels& kernels_;
  Int8Problem::RunTimeGrid grid_;
  int x_ = -1, residual_ = -1, y_ = 0;
  Tensor constants_;
  std::optional<CodeTable> table_;
};

// Depthwise convolution of 8-bit codes, or one of groups that fill no vectors, summed exactly
// (patterns/int8_product.h).
class DepthwiseCodesRoutine final : public RoutineOf<DepthwiseCodesRoutine, Int8Routine> {
 public:
  std::string_view name() const override { return "cpu:int8/depthwise_nchwc"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Int8Problem problem = *Int8Problem::read(workload, nullptr);
    std::vector<Candidate> all;
    for (const CodesDepthwiseWords& kind : kinds_of(problem, target)) {
      const CodesDepthwiseKernels& kernels = kind.kernels(target);
      Candidate c = problem.candidate(workload, true, true, target);
      c.schedule = kind.schedule();
      const CodesDepthwisePlan plan = plan_codes_depthwise(problem.hint(), kernels);
      c.cost.time_us = estimate_us(problem, plan, kind.shifts, target);
      c.cost.packed_bytes = 4 * DepthwiseCodesStep::packed_words(plan, kernels) + problem.table_bytes();
      all.push_back(std::move(c));
    }
    return all;
  }

  Space space(const Workload& workload, const Target& target) const override {
    Space::Parameter codes{"codes", {}}, row_sums{"row_sums", {}};
    for (const CodesDepthwiseWords& kind : kinds_of(*Int8Problem::read(workload, nullptr), target)) {
      codes.values = {kind.codes};
      row_sums.values.push_back(kind.shifts ? 1 : 0);
    }
    return Space({codes, row_sums});
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore& packed) {
    return std::make_unique<DepthwiseCodesStep>(*Int8Problem::read(*candidate.workload, nullptr), candidate,
                                                CodesDepthwiseWords::of(candidate.schedule), target, ops, packed);
  }

 protected:
  std::optional<std::string> rejects_problem(const Int8Problem& problem, const Target& target) const override {
    if (!problem.product.is_conv() || problem.geometry.groups == 1) return "not one input channel per group";
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    if (problem.geometry.taps() > kMaxDepthwiseTaps) return "the kernel has more than 256 taps";
    const char* reason = problem.geometry.is_depthwise() ? nullptr : reject_groups(problem, target);
    return reason ? std::optional<std::string>(reason) : std::nullopt;
  }

 private:
  static const char* reject_groups(const Int8Problem& problem, const Target& target) {
    constexpr int64_t kMaxSum = 1 << 30;
    const ConvShape s = problem.constant_shape();
    const int64_t lanes = target.lanes(), words = ceil_div(s.group_ic(), kByteCodes);
    if (!has_dot_bytes(target)) return "not one input channel per group, and no sums of four products";
    if (s.group_ic() % lanes == 0 && s.group_oc() % lanes == 0) return "the groups fill vectors";
    if (words > kMaxGroupWords || words * s.kh > kMaxDepthwiseTaps) return "a group has too many input channels";
    CodesGroupWord found[kMaxGroupWords];
    for (int64_t block = 0; block < ceil_div(s.oc, lanes); ++block) {
      if (const char* reason = find_group_words(s, block, lanes, 0, found)) return reason;
    }
    if (!problem.product.w->constant->is_absent() && !sums_fit(problem.product, kMaxSum))
      return "a sum may leave int32";
    return nullptr;
  }

  // Words of bytes are of neighbouring columns, or of a group's channels.
  static std::vector<CodesDepthwiseWords> kinds_of(const Int8Problem& problem, const Target& target) {
    const bool is_dense = !problem.geometry.is_depthwise() || problem.geometry.window.dilations.back() == 1;
    if (!has_dot_bytes(target) || !is_dense) return {CodesDepthwiseWords{}};
    std::vector<CodesDepthwiseWords> kinds;
    for (const bool bytes : may_be_bytes(problem.product)) kinds.push_back({kByteCodes, !bytes});
    return kinds;
  }

  // Whether the groups of a vector's lanes share a block of input channels.
  static bool reads_single_blocks(const ConvShape& s, int64_t lanes) {
    return lanes % (ceil_div(lanes, s.group_oc()) * s.group_ic()) == 0;
  }

  static double estimate_us(const Int8Problem& problem, const CodesDepthwisePlan& plan, bool shifts,
                            const Target& target) {
    // Cycles of a vector, which is brought into the buffer, multiplied and stored.
    constexpr double kResidualCycles = 7, kShiftCycles = 1, kGroupFillCycles = 2.5, kBlocksFillCycles = 8;
    const bool is_narrow = target.lanes() == 8;
    const double product = 1.1, beside = is_narrow ? 4.5 : 3;
    const ConvShape& s = plan.shape;
    const double vectors = static_cast<double>(s.n * plan.blocks * s.oh * s.ow);
    const int64_t bands = ceil_div(plan.rows, plan.band),
                  filled_rows = plan.band > 1 ? bands * plan.band_rows(plan.band) : plan.band_rows(plan.rows);
    const double filled = static_cast<double>(plan.tasks * plan.stripes * filled_rows *
                                              ceil_div(plan.row_columns(plan.columns), plan.step)) *
                          static_cast<double>(plan.column_items());
    const double result =
        result_cycles(target) + beside + (problem.product.residual || problem.product.addend ? kResidualCycles : 0);
    const double word = product + (shifts ? kShiftCycles : 0);
    const double items = static_cast<double>(plan.weight_items()) * word;
    UnfittedLoad load;
    double fill = is_narrow ? 3 : 4;
    if (plan.group_words > 0) fill = reads_single_blocks(s, target.lanes()) ? kGroupFillCycles : kBlocksFillCycles;
    load.arithmetic_us = cycles_us(
        core_cycles(target) * (filled * fill + vectors * (items + result) + problem.table_cycles(target)), target);
    load.bytes = problem.traffic_bytes();
    const TaskSplit split = TaskSplit::of(plan.tasks, codes_depthwise_work(s));
    load.tasks = split.serial ? 1 : static_cast<double>(split.tasks);
    return unfitted_us(load, target);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(int8_depthwise, DepthwiseCodesRoutine)

}  // namespace neo
