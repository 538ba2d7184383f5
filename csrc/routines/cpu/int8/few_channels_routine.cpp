#include <algorithm>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/int8/few_channels.h"
#include "routines/cpu/int8/int8_routine.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/space.h"

namespace neo {
namespace {

constexpr int64_t kMaxWindowRows = 256;  // of words
constexpr int64_t kVectorsTogether = 4;  // of pixels, at most

const FewChannelsKernels& few_kernels_of(int64_t codes, const Target& target) {
  return NEO_PICK_TIER(target.isa, few_channels_kernels)(codes == kByteCodes);
}

struct FewChannelsPlan {
  ConvShape shape;
  int64_t codes = 0, words = 0;  // of a word; of a pixel
  int64_t plane = 0;             // words of a row
  int64_t rows = 0, chunks = 0, tasks = 0;

  int64_t buffer_rows(int64_t lines) const {
    return (lines - 1) * shape.stride_h + (shape.kh - 1) * shape.dilation_h + 1;
  }
  int64_t buffer_bytes() const { return 4 * buffer_rows(rows) * words * plane; }
  int64_t weight_words() const { return shape.taps() * words * columns(); }
  int64_t columns() const { return few_weights(shape.oc, codes == kByteCodes); }
};

FewChannelsPlan plan_few_channels(const ConvShape& s, int64_t codes, int64_t lanes) {
  // A task's rows stay in the second-level cache.
  constexpr int64_t kBufferBytes = 128 << 10, kFaster = 3;
  FewChannelsPlan plan;
  plan.shape = s;
  plan.codes = codes;
  plan.words = ceil_div(s.ic, codes);
  // Pixels behind the last one are summed, too, and padding is written in vectors.
  plan.plane = round_up(s.ow, kVectorsTogether * lanes) + (s.kw - 1) * s.dilation_w + lanes;
  const int64_t most = std::max<int64_t>(1, s.oh);
  const int64_t wanted = ceil_div(worthwhile_tasks(s.flops() / kFaster), std::max<int64_t>(1, s.n));
  plan.rows = ceil_div(most, std::clamp<int64_t>(wanted, 1, most));
  while (plan.rows > 1 && plan.buffer_bytes() > kBufferBytes) plan.rows = ceil_div(plan.rows, int64_t{2});
  plan.chunks = ceil_div(s.oh, plan.rows);
  plan.tasks = s.ow == 0 ? 0 : s.n * plan.chunks;
  return plan;
}

struct FewChannelsCall {
  FewChannelsPlan plan;
  TaskSplit split;
  DotResult result;
  ConvStrides x, y;
  const int32_t* weight = nullptr;
};

class FewChannelsStep final : public KernelStep {
 public:
  FewChannelsStep(Int8Problem problem, int64_t codes, const Target& target, PackedStore& packed)
      : problem_(std::move(problem)), codes_(codes), threads_(target.threads), kernels_(few_kernels_of(codes, target)) {
    const Int8Product& p = problem_.product;
    const FewChannelsPlan plan = plan_few_channels(problem_.constant_shape(), codes, kernels_.lanes);
    constants_ = packed.floats(packed_words(plan), {p.w, p.w_scale, p.w_zero, p.bias}, [&](float* to) {
      auto* words = reinterpret_cast<int32_t*>(to);
      problem_.pack_columns({words, plan.shape.oc, codes == kByteCodes});
      pack_weights(plan, words + PackedColumns::kArrays * plan.shape.oc);
    });
  }

  static int64_t packed_words(const FewChannelsPlan& plan) {
    return PackedColumns::kArrays * plan.shape.oc + plan.weight_words();
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg &x = args[0], &y = args[1];
    FewChannelsCall call;
    const ConvShape shape = problem_.shape(x.dims, y.dims);
    call.plan = plan_few_channels(shape, codes_, kernels_.lanes);
    call.split = TaskSplit::of(call.plan.tasks, shape.flops(), call.plan.buffer_bytes(), threads_);
    call.x = ConvStrides::of(x);
    call.y = ConvStrides::of(y);
    const auto* packed = reinterpret_cast<const int32_t*>(constants_.as<float>());
    call.result = problem_.result(packed, shape.oc);
    call.weight = packed + PackedColumns::kArrays * shape.oc;
    return Prepared::of(call, call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const FewChannelsCall*>(prepared);
    run_tasks_with<int32_t>(team, call.split, scratch, [&](int64_t begin, int64_t end, int32_t* buffer) {
      for (int64_t task = begin; task < end; ++task) run_task(call, args, task, buffer);
    });
  }

 private:
  void pack_weights(const FewChannelsPlan& plan, int32_t* to) const {
    const ConvShape& s = plan.shape;
    const Int8Weights weights(problem_.product);
    std::fill_n(to, plan.weight_words(), 0);
    for (int64_t i = 0; i < s.kh; ++i) {
      for (int64_t word = 0; word < plan.words; ++word) {
        for (int64_t j = 0; j < s.kw; ++j) {
          for (int64_t c = 0; c < plan.columns(); ++c, ++to) {
            for (int64_t k = 0; k < plan.codes && c < s.oc && word * plan.codes + k < s.ic; ++k)
              put_dot_weight(to, plan.codes, k, weights.at(c, (word * plan.codes + k) * s.taps() + i * s.kw + j));
          }
        }
      }
    }
  }

  void run_task(const FewChannelsCall& call, std::byte* const* args, int64_t task, int32_t* buffer) const {
    const FewChannelsPlan& plan = call.plan;
    const ConvShape& s = plan.shape;
    const int64_t image = task / plan.chunks, row = task % plan.chunks * plan.rows;
    const int64_t lines = std::min(plan.rows, s.oh - row), buffer_row = plan.words * plan.plane;
    DotFill f;
    f.channels = s.ic;
    f.src_block = call.x.channel;
    f.dst_pixel = plan.plane;
    f.columns = s.ow + (s.kw - 1) * s.dilation_w;
    f.zero = problem_.product.x_grid.zero;
    f.is_signed = problem_.product.x_grid.is_signed();
    const auto* x = reinterpret_cast<const uint8_t*>(args[0]) + image * call.x.batch;
    for (int64_t i = 0; i < plan.buffer_rows(lines); ++i) {
      const int64_t ih = row * s.stride_h - s.pad_top + i;
      const bool inside = ih >= 0 && ih < s.ih;
      f.begin = inside ? std::clamp<int64_t>(s.pad_left, 0, f.columns) : f.columns;
      f.end = inside ? std::clamp(s.iw + s.pad_left, f.begin, f.columns) : f.columns;
      f.src = x + (ih * s.iw + f.begin - s.pad_left) * kernels_.lanes;
      f.dst = reinterpret_cast<uint8_t*>(buffer + i * buffer_row);
      kernels_.fill(f);
    }
    int64_t row_at[kMaxWindowRows];
    FewChannelsRun d;
    d.row_at = row_at;
    d.rows = s.kh * plan.words;
    for (int64_t i = 0; i < d.rows; ++i)
      row_at[i] = i / plan.words * s.dilation_h * buffer_row + i % plan.words * plan.plane;
    d.columns = s.kw;
    d.dilation = s.dilation_w;
    d.weight = call.weight;
    d.channels = s.oc;
    d.pixels = s.ow;
    d.result = &call.result;
    d.dst_channel = call.y.channel;
    const int64_t item = call.result.is_float || call.result.is_whole ? 4 : 1;
    for (int64_t line = 0; line < lines; ++line) {
      d.src = buffer + line * s.stride_h * buffer_row;
      d.dst = args[1] + (image * call.y.batch + (row + line) * s.ow) * item;
      kernels_.run(d);
    }
  }

  Int8Problem problem_;
  int64_t codes_;
  int threads_;
  const FewChannelsKernels& kernels_;
  Tensor constants_;
};

// Convolutions of 8-bit codes from blocks of channels to up to four planes, summed exactly (patterns/int8_product.h).
class FewChannelsRoutine final : public RoutineOf<FewChannelsRoutine, Int8Routine> {
 public:
  std::string_view name() const override { return "cpu:int8/few_channels_nchw"; }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Int8Problem problem = *Int8Problem::read(workload, nullptr);
    std::vector<Candidate> all;
    for (const int64_t codes : codes_of(problem, target)) {
      Candidate c = problem.candidate(workload, true, false, target);
      c.schedule = {{"codes", codes}};
      const FewChannelsPlan plan = plan_few_channels(problem.hint(), codes, few_kernels_of(codes, target).lanes);
      c.cost.time_us = estimate_us(problem, plan, target);
      c.cost.packed_bytes = 4 * FewChannelsStep::packed_words(plan);
      all.push_back(std::move(c));
    }
    return all;
  }

  Space space(const Workload& workload, const Target& target) const override {
    return Space({{"codes", codes_of(*Int8Problem::read(workload, nullptr), target)}});
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<FewChannelsStep>(*Int8Problem::read(*candidate.workload, nullptr),
                                             value_of(candidate.schedule, "codes"), target, packed);
  }

 protected:
  std::optional<std::string> rejects_problem(const Int8Problem& problem, const Target&) const override {
    const Int8Product& p = problem.product;
    constexpr int64_t kMaxSum = 1 << 30;
    if (!p.is_conv() || problem.geometry.groups != 1 || problem.channels > kMaxFewChannels)
      return "not a convolution to at most four channels without groups";
    if (problem.geometry.axes > 2) return "more than two spatial axes";
    const ConvShape s = problem.constant_shape();
    if (s.stride_w != 1) return "pixels of a row are left out";
    if (s.kh * ceil_div(s.ic, kWordCodes) > kMaxWindowRows) return "the window has too many words";
    if (p.residual || p.addend || p.middle || problem.table_bytes() > 0) return "more than a product";
    if (p.x_scale || p.x_zero) return "the grid is known to the call alone";
    if (!p.w->constant->is_absent() && !sums_fit(p, kMaxSum)) return "a sum may leave int32";
    return std::nullopt;
  }

 private:
  static std::vector<int64_t> codes_of(const Int8Problem& problem, const Target& target) {
    if (!has_dot_bytes(target)) return {kWordCodes};
    std::vector<int64_t> codes;
    for (const bool bytes : may_be_bytes(problem.product)) codes.push_back(bytes ? kByteCodes : kWordCodes);
    return codes;
  }

  static double estimate_us(const Int8Problem& problem, const FewChannelsPlan& plan, const Target& target) {
    // Cycles of a product of vectors, of a vector of results, of a word that enters its plane.
    constexpr double kBytesCycles = 1.3, kPairsCycles = 2.6, kResultCycles = 14, kBytesFillCycles = 0.4,
                     kPairsFillCycles = 4, kRowCycles = 3;
    const ConvShape& s = plan.shape;
    const bool bytes = plan.codes == kByteCodes;
    const double vectors =
        static_cast<double>(s.n * s.oh * ceil_div(round_up(s.ow, 2 * target.lanes()), target.lanes()));
    const double dots = static_cast<double>(s.taps() * plan.words * plan.columns());
    const double filled = static_cast<double>(plan.tasks * plan.buffer_rows(plan.rows) * plan.words * s.ow);
    const double cycles =
        vectors * (dots * (bytes ? kBytesCycles : kPairsCycles) + static_cast<double>(s.kh * plan.words) * kRowCycles +
                   static_cast<double>(s.oc) * kResultCycles) +
        filled * (bytes ? kBytesFillCycles : kPairsFillCycles);
    UnfittedLoad load;
    load.arithmetic_us = cycles_us(core_cycles(target) * cycles, target);
    load.bytes = problem.traffic_bytes();
    const TaskSplit split = TaskSplit::of(plan.tasks, s.flops());
    load.tasks = split.serial ? 1 : static_cast<double>(split.tasks);
    return unfitted_us(load, target);
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(int8_few_channels, FewChannelsRoutine)

}  // namespace neo
