#include <algorithm>

#include "base/check.h"
#include "base/int_math.h"
#include "ops/window.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/int8/codes_kernels.h"
#include "routines/cpu/int8/int8_problem.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/codes_pool.h"

namespace neo {
namespace {

// An axis before the columns: its window begins at o * stride - pad.
struct CodesPoolAxis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0, padded = 1;

  int64_t start(int64_t o) const { return o * stride - pad; }
  // The first tap inside the image, and how many are.
  int64_t first(int64_t o) const { return start(o) < 0 ? ceil_div(-start(o), dilation) : 0; }
  int64_t inside(int64_t o) const {
    if (start(o) >= in) return 0;
    return std::max<int64_t>(0, std::min(kernel, (in - 1 - start(o)) / dilation + 1) - first(o));
  }
  // Taps of an average that counts its padding.
  int64_t counted(int64_t o) const {
    const int64_t room = padded - o * stride;
    return room <= 0 ? 0 : std::min(kernel, (room - 1) / dilation + 1);
  }
};

struct CodesPoolCall {
  ConvStrides x, y;
  int64_t images = 0, channels = 0, blocks = 0, lanes = 0;
  int64_t iw = 1, ow = 1;
  CodesPoolAxis planes, rows;
  CodesPoolRow row;
  TaskSplit split;
};

class CodesPoolStep final : public KernelStep {
 public:
  CodesPoolStep(const CodesPoolProblem& p, const CodesKernels& kernels)
      : average_(p.is_average()),
        global_(p.is_global()),
        include_pad_(p.pool->int_attr("count_include_pad", 0) != 0),
        x_grid_(p.x_grid),
        y_grid_(p.y_grid),
        kernels_(kernels) {
    if (!global_) window_ = read_window(*p.pool, p.axes());
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& x = args[0];
    const Arg& y = args[1];
    CodesPoolCall c;
    c.x = ConvStrides::of(x);
    c.lanes = x.layout.block_of(1);
    c.images = x.dims[0];
    c.channels = x.dims[1];
    c.blocks = ceil_div(c.channels, c.lanes);
    CodesPoolRow& r = c.row;
    r.is_plain = !y.layout.is_blocked();
    c.y = ConvStrides{y.strides[0], r.is_plain ? c.lanes : y.strides[1]};
    const int axes = static_cast<int>(x.dims.size()) - 2;
    c.iw = x.dims.back();
    c.ow = y.dims.back();
    int64_t columns = c.iw;
    if (global_) {
      // All pixels are a row, whose codes int32 sums where there are no more than these.
      constexpr int64_t kMaxSummed = 1 << 23;
      for (int i = 0; i + 1 < axes; ++i) c.iw *= x.dims[static_cast<size_t>(i) + 2];
      columns = c.iw;
      r.is_global = columns <= kMaxSummed;
    } else {
      CodesPoolAxis* outer[] = {&c.rows, &c.planes};
      const auto last = static_cast<size_t>(axes - 1);
      columns = window_.kernel[last];
      r.stride = window_.strides[last];
      r.dilation = window_.dilations[last];
      r.pad = window_pad_begin(window_, axes - 1, columns, c.iw);
      r.padded_width = c.iw + window_pad_total(window_, axes - 1, columns, c.iw);
      for (int i = 0; i + 1 < axes; ++i) {
        CodesPoolAxis& a = *outer[axes - 2 - i];
        const auto at = static_cast<size_t>(i);
        a.in = a.padded = x.dims[at + 2];
        a.out = y.dims[at + 2];
        a.kernel = window_.kernel[at];
        a.stride = window_.strides[at];
        a.dilation = window_.dilations[at];
        a.pad = window_pad_begin(window_, i, a.kernel, a.in);
        a.padded += window_pad_total(window_, i, a.kernel, a.in);
      }
    }
    r.width = c.iw;
    r.taps = columns;
    r.pixels = c.ow;
    r.src_row = c.rows.dilation * c.iw * c.lanes;
    r.src_plane = c.planes.dilation * c.rows.in * c.iw * c.lanes;
    r.is_signed = x_grid_.is_signed();
    r.is_average = average_;
    r.scale = x_grid_.scale;
    r.y_scale = y_grid_.scale;
    r.zero = x_grid_.zero;
    r.y_zero = y_grid_.zero;
    r.y_is_signed = y_grid_.is_signed();
    const int64_t tasks = c.images * c.blocks * c.planes.out * c.rows.out;
    c.split = TaskSplit::of(tasks, tasks * c.ow * c.lanes * c.planes.kernel * c.rows.kernel * columns);
    return Prepared::of(c);
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& c = *reinterpret_cast<const CodesPoolCall*>(prepared);
    const auto* x = reinterpret_cast<const uint8_t*>(args[0]);
    auto* y = reinterpret_cast<uint8_t*>(args[1]);
    run_tasks(team, c.split, [&](int64_t begin, int64_t end, int) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t o = task % c.rows.out, plane = task / c.rows.out % c.planes.out;
        const int64_t rest = task / c.rows.out / c.planes.out, block = rest % c.blocks, image = rest / c.blocks;
        CodesPoolRow r = c.row;
        r.planes = c.planes.inside(plane);
        r.rows = c.rows.inside(o);
        if (include_pad_) r.counted_rows = c.planes.counted(plane) * c.rows.counted(o);
        const int64_t top = c.rows.start(o) + c.rows.first(o) * c.rows.dilation;
        const int64_t front = c.planes.start(plane) + c.planes.first(plane) * c.planes.dilation;
        r.src = x + image * c.x.batch + block * c.x.channel + (front * c.rows.in + top) * c.iw * c.lanes;
        r.dst = y + image * c.y.batch + block * c.y.channel + (plane * c.rows.out + o) * c.ow * c.lanes;
        r.lanes = std::min(c.lanes, c.channels - block * c.lanes);
        kernels_.pool_row(r);
      }
    });
  }

 private:
  bool average_, global_, include_pad_;
  CodeGrid x_grid_, y_grid_;
  Window window_;
  const CodesKernels& kernels_;
};

// Pools of codes between the two linear operators: a maximum is that of the codes, an average that of their numbers.
class CodesPoolRoutine final : public RoutineOf<CodesPoolRoutine> {
 public:
  std::string_view name() const override { return "cpu:int8/pool_nchwc"; }
  std::vector<std::string_view> roots() const override { return {"QuantizeLinear"}; }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_codes_pool(root, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    return CodesPoolProblem::read(workload, &why) ? std::nullopt : std::optional(why);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const CodesPoolProblem p = *CodesPoolProblem::read(workload, nullptr);
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    const int rank = p.x->shape().rank();
    const auto x = static_cast<size_t>(workload.input_index(p.x));
    c.inputs[x] = plain_schema(p.x->type);
    c.inputs[x]->layout = Layout::channel_blocked(rank, target.lanes());
    c.outputs.push_back(plain_schema(p.y->type));
    price(c, workload, load_of(p, target), target);
    std::vector<Candidate> all;
    if (p.is_global()) all.push_back(c);
    c.outputs.front().layout = c.inputs[x]->layout;
    all.push_back(std::move(c));
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore&) {
    return std::make_unique<CodesPoolStep>(*CodesPoolProblem::read(*candidate.workload, nullptr),
                                           NEO_PICK_TIER(target.isa, codes_kernels)());
  }

 private:
  static StepLoad load_of(const CodesPoolProblem& p, const Target& target) {
    // Cycles of a vector: of a pixel or a column that is summed, of a column whose largest code is found, of a result.
    constexpr double kPixelCycles = 0.8, kMaxCycles = 0.25, kMeanCycles = 10, kCopyCycles = 2;
    const Dims x = p.x->shape().hint_dims(), y = p.y->shape().hint_dims();
    const auto vectors = [&](const Dims& dims) {
      return static_cast<double>(element_count(dims)) / static_cast<double>(target.lanes());
    };
    if (p.is_global()) return {StepFamily::CodesPool, vectors(x) * kPixelCycles + vectors(y) * kMeanCycles, 1};
    const Window window = read_window(*p.pool, p.axes());
    double rows = 1;
    for (size_t i = 0; i + 1 < window.kernel.size(); ++i) rows *= static_cast<double>(window.kernel[i]);
    const auto taps = static_cast<double>(window.kernel.back()), columns = static_cast<double>(window.strides.back());
    const double cycles = p.is_average() ? (rows * columns + taps) * kPixelCycles + kMeanCycles
                                         : (rows + taps) * columns * kMaxCycles + kCopyCycles;
    return {StepFamily::CodesPool, vectors(y) * cycles, 1};
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(int8_pool, CodesPoolRoutine)

}  // namespace neo
