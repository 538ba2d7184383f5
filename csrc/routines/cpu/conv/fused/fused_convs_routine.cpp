#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/conv/depthwise/depthwise_cost.h"
#include "routines/cpu/conv/fused/fused_convs_problem.h"
#include "routines/cpu/epilogue.h"
#include "routines/cpu/microkernel/used_kernels.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/patterns/compile_program.h"
#include "routines/space.h"

namespace neo {
namespace {

ChainKernels chain_kernels_of(const Target& target) {
  return {&tile_kernels_of(target.isa), &NEO_PICK_TIER(target.isa, depthwise_kernels)(),
          &strassen_kernels_of(target.isa), &NEO_PICK_TIER(target.isa, row_kernels)()};
}

// The schedule:
//   tasks     as many or more, where the shape has as many parts
//   strassen  levels of Strassen's algorithm for the projection; where it is not there: directly
//   shared    1: the tasks share the depthwise rows of an image that is alone; else each makes some rows
ChainPlan plan_of(const ChainProblem& problem, const Schedule& schedule, const Dims& x, const Dims& y,
                  const ChainKernels& kernels, int64_t cache_bytes) {
  ChainShape shape = problem.shape(x, y);
  shape.strassen = value_of(schedule, "strassen");
  shape.shared = value_of(schedule, "shared") == 1 && shape.project;
  return plan_chain(shape, kernels, schedule.at("tasks"), cache_bytes);
}

// Bytes of cache for results between the convolutions. Strassen's algorithm pairs the pixels of a strip, which for the
// same bits everywhere ignores this machine's caches; two levels have many weights, which are worth long strips.
int64_t cache_bytes(const Schedule& schedule, const Target& target) {
  const int64_t levels = value_of(schedule, "strassen");
  if (levels > 1) return target.l2_bytes / 4 * 3;
  return (levels > 0 ? target.l2_bytes : private_caches(target).l2_bytes) / 2;
}

int64_t flops_of(const ChainShape& s) {
  const ConvShape& d = s.depthwise;
  const int64_t expansion = s.expands() ? 2 * d.n * d.ih * d.iw * d.ic * s.ic * s.taps() : 0;
  const int64_t projection = s.project ? 2 * d.n * d.oh * d.ow * d.ic * s.oc : 0;
  return expansion + d.flops() + projection;
}

// Tasks that share have as many workspaces: one that is late may be done by any member.
TaskSplit split_of(const ChainPlan& plan, int threads) {
  return TaskSplit::of(plan.tasks, flops_of(plan.shape), plan.workspace_size * 4,
                       plan.shape.shares_rows() ? static_cast<int>(plan.tasks) : threads);
}

int64_t shared_bytes(const ChainPlan& plan) {
  return round_up(plan.shared_size * 4, 4096);
}

// Whether it makes sense: tasks to share among, and a private cache for the part of each.
bool may_share(const ChainPlan& plan, const Target& target) {
  return plan.shape.shares_rows() && plan.tasks > 1 && plan.tasks <= TaskSplit::kMaxWorkspaces &&
         plan.shared_size * 4 / plan.tasks <= private_caches(target).l2_bytes / 2;
}

int64_t expansion_weight_size(const ChainPlan& plan) {
  return pointwise_weight_size(plan.inner, plan.shape.ic * plan.shape.taps(), plan.lanes);
}

// The operations at the peak that take as long as a pointwise convolution whose register blocks run over `run` pixels.
// The figures are direct_nchwc's, since chains compete with it.
double pointwise_work(const PanelSplit& split, int64_t ic, double pixels, double run, double gain, const Target& target,
                      const TileKernels& kernels) {
  constexpr double kMaxEfficiency = 0.98;
  const double vectors = static_cast<double>(split.vectors) / static_cast<double>(split.panels);
  const auto most = static_cast<double>(kernels.max_rows[ceil_div(split.vectors, split.panels)]);
  const double rows = run / std::ceil(run / most);
  const double panel_bytes = static_cast<double>(ic) * vectors * target.lanes() * 4;
  const double efficiency =
      gain * blocked_efficiency(rows, vectors, panel_bytes, std::min<int64_t>(target.lanes(), ic), target);
  return 2.0 * static_cast<double>(split.vectors * target.lanes() * ic) * pixels / std::min(efficiency, kMaxEfficiency);
}

// The same of a first layer, one row after the other.
double stem_work(const ChainPlan& plan, double pixels, const Target& target, const TileKernels& kernels) {
  const double vectors = static_cast<double>(plan.inner.vectors) / static_cast<double>(plan.inner.panels);
  const auto width = std::max<double>(1, static_cast<double>(plan.shape.depthwise.iw));
  const double rows = width / std::ceil(width / kernels.max_rows[ceil_div(plan.inner.vectors, plan.inner.panels)]);
  const auto weights = static_cast<double>(expansion_weight_size(plan));
  const double panel_bytes = weights / static_cast<double>(plan.inner.panels) * 4;
  return 2 * weights * pixels / (kStemEfficiency * tile_efficiency(rows, vectors, panel_bytes, target));
}

int64_t projection_weight_size(const ChainPlan& plan) {
  return plan.shape.strassen > 0 ? strassen_weight_size(plan.strassen)
                                 : pointwise_weight_size(plan.outer, plan.shape.depthwise.ic, plan.lanes);
}

double activation_work(const ChainLink& link, int64_t vectors, double pixels, const Target& target) {
  if (!link.activation) return 0;
  return activation_flops(*link.activation) * static_cast<double>(vectors * target.lanes()) * pixels;
}

// The largest part over the mean, where parts are not all of one size.
double unevenness(const ChainPlan& plan) {
  if (plan.shape.shares_rows()) {
    const int64_t most = ceil_div(plan.inner.vectors, plan.inner.shares);
    return static_cast<double>(most * plan.inner.shares) /
           static_cast<double>(std::max<int64_t>(1, plan.inner.vectors));
  }
  const int64_t lines = plan.shape.depthwise.oh;
  return lines == 0 ? 1 : static_cast<double>(plan.chunks * plan.strip) / static_cast<double>(lines);
}

// Microseconds that tasks which share depthwise rows wait for each other, and for the channels that a task projects
// and that lie in the caches of other cores: all but its own.
double sharing_us(const ChainPlan& plan) {
  constexpr double kMeetUs = 2, kGbps = 10;
  if (!plan.shape.shares_rows()) return 0;
  const auto tasks = static_cast<double>(plan.tasks);
  return kMeetUs + 4 * static_cast<double>(plan.shared_size) * (1 - 1 / tasks) / tasks / (kGbps * 1e3);
}

// The work of a projection by Strassen's algorithm: each part counts as the one that takes longest. Short strips
// make narrow tiles.
double strassen_parts_work(const ChainPlan& plan, const Target& target) {
  const ConvShape& s = plan.shape.depthwise;
  const auto of = [&](int64_t pixels) {
    const auto all = static_cast<double>(pixels);
    return pixels > 0 ? strassen_work(plan.strassen, all, all, target) : 0.0;
  };
  if (plan.shape.shares_rows()) {
    const int64_t pixels = s.oh * s.ow, least = pixels / std::max<int64_t>(1, plan.tasks);
    return least > 0 ? of(least) / static_cast<double>(least) * static_cast<double>(pixels) : of(pixels);
  }
  const double full = of(plan.strip * s.ow), last = of((s.oh - (plan.chunks - 1) * plan.strip) * s.ow);
  const auto chunks = static_cast<double>(plan.chunks);
  const double image = plan.chunks > target.threads ? (chunks - 1) * full + last : chunks * std::max(full, last);
  return static_cast<double>(s.n) * image / unevenness(plan);
}

double estimate_us(const ChainProblem& problem, const ChainPlan& plan, const TileKernels& kernels,
                   const Target& target) {
  // kOutside is the share of its speed that a separate depthwise convolution keeps if its rows are not yet in the
  // private cache; kShared is that of a projection which shares this cache with a strip, by one that has it alone.
  constexpr double kOutside = 0.85, kShared = 0.99;
  // The image of a separate convolution lies where another step left it, half of it in the cache of another core: it
  // takes this much longer than a projection from the strip or an expansion into the ring.
  // Strassen's algorithm makes sums of the image first, wherever it lies.
  constexpr double kFromStrip = 1.14, kIntoRing = 1.04;
  const double strassen_from_strip = plan.strassen.is_short ? 1.07 : 1.02;
  const ConvShape& s = plan.shape.depthwise;
  const auto lanes = static_cast<double>(target.lanes());
  const auto images = static_cast<double>(s.n);
  const double out_pixels = images * static_cast<double>(s.oh * s.ow);
  const auto run = static_cast<double>(plan.strip * s.ow);
  const double inner_bytes = 4 * lanes * out_pixels * static_cast<double>(plan.inner.vectors);
  const bool saves = plan.shape.expands() || inner_bytes > static_cast<double>(target.l2_bytes);
  const double efficiency = std::min(1.0, depthwise_efficiency(s) / (saves ? kOutside : 1));
  double work = 2.0 * static_cast<double>(plan.inner.vectors * s.taps()) * lanes * out_pixels / efficiency +
                activation_work(problem.depthwise, plan.inner.vectors, out_pixels, target);
  double bytes = 4 * lanes * static_cast<double>(s.taps() * plan.inner.vectors);
  double in_pixels = images * static_cast<double>(s.ih * s.iw);
  const ConvShape& first = plan.shape.stem;
  bytes += 4 * (plan.shape.has_stem() ? images * static_cast<double>(first.ic * first.ih * first.iw)
                                      : lanes * in_pixels * std::ceil(static_cast<double>(plan.shape.ic) / lanes));
  bytes += 4 * lanes * out_pixels * std::ceil(static_cast<double>(plan.shape.oc) / lanes) * (problem.residual ? 2 : 1);
  if (plan.shape.expands()) {
    // Rows at the seams between members' strips are expanded by both.
    const int64_t halo = std::max<int64_t>(0, (s.kh - 1) * s.dilation_h + 1 - s.stride_h);
    const int64_t members = ceil_div(target.threads, std::max<int64_t>(1, s.n * plan.panel_chunks));
    const int64_t seams = std::clamp<int64_t>(std::min(members, plan.chunks) - 1, 0, plan.chunks);
    in_pixels += images * static_cast<double>(seams * halo * s.iw);
    work += (plan.shape.has_stem()
                 ? stem_work(plan, in_pixels, target, kernels)
                 : pointwise_work(plan.inner, plan.shape.ic, in_pixels, run, kIntoRing, target, kernels)) +
            activation_work(*problem.expand, plan.inner.vectors, in_pixels, target);
    bytes += 4 * static_cast<double>(expansion_weight_size(plan));
  }
  if (plan.shape.project) {
    const double product = plan.shape.strassen > 0
                               ? strassen_parts_work(plan, target) / strassen_from_strip
                               : pointwise_work(plan.outer, s.ic, out_pixels, run, kFromStrip, target, kernels);
    work += product / (saves ? 1 : kShared) + activation_work(*problem.project, plan.outer.vectors, out_pixels, target);
    bytes += 4 * static_cast<double>(projection_weight_size(plan));
  }
  const TaskSplit split = split_of(plan, target.threads);
  if (!split.serial) work *= unevenness(plan);
  const double weights = (plan.shape.expands() ? static_cast<double>(expansion_weight_size(plan)) : 0) +
                         (plan.shape.project ? static_cast<double>(projection_weight_size(plan)) : 0);
  const double rows = static_cast<double>(s.n * s.oh) / (split.serial ? 1 : target.threads);
  const double strips = std::ceil(rows / static_cast<double>(std::max<int64_t>(plan.strip, 1)));
  // Weights from memory, where the last cache is far; tiles of Strassen's algorithm fetch a part of those behind them.
  // A near one gets them while the rows of the strip are made.
  constexpr double kWaited = 0.75;
  const double cold = far_byte_us(target) > 0 ? 4 * weights * (plan.shape.strassen > 0 ? kWaited : 1) : 0;
  return far_us(weights * 4, strips, target) + depthwise_us(work, split.serial ? 1 : plan.tasks, bytes, target, cold) +
         (split.serial ? 0 : sharing_us(plan));
}

struct ChainCall {
  ChainPlan plan;
  ChainArgs args;
  TaskSplit split;
  int64_t workspaces = 0;  // bytes of scratch before them: what tasks share
};

class ChainStep final : public KernelStep {
 public:
  ChainStep(const ChainProblem& problem, const Candidate& candidate, const Target& target, PackedStore& packed)
      : problem_(problem),
        kernels_(chain_kernels_of(target)),
        schedule_(candidate.schedule),
        cache_bytes_(cache_bytes(candidate.schedule, target)),
        threads_(target.threads) {
    x_ = argument_of(candidate, problem.x);
    residual_ = argument_of(candidate, problem.residual);
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
    const ChainPlan plan = plan_of(problem, schedule_, problem.x->shape().hint_dims(), problem.y->shape().hint_dims(),
                                   kernels_, cache_bytes_);
    const int64_t lanes = plan.lanes;
    if (problem.expand) {
      pack_pointwise(*problem.expand, plan.inner, lanes, expand_, packed);
      expand_.activation = activation_of(problem.expand->activation, target);
    }
    if (problem.project) {
      if (plan.shape.strassen > 0) {
        const ConvProblem& conv = problem.project->conv;
        project_.weight = packed.floats(projection_weight_size(plan), {conv.weight}, [&](float* to) {
          pack_strassen_weight(plan.strassen, conv.weight->constant->as<float>(), to);
        });
        project_.bias = padded_channels(conv.bias, lanes, packed);
      } else {
        pack_pointwise(*problem.project, plan.outer, lanes, project_, packed);
      }
      project_.activation = activation_of(problem.project->activation, target);
    }
    const ConvProblem& conv = problem.depthwise.conv;
    const DepthwisePlan depthwise = plan_depthwise(plan.shape.depthwise, lanes);
    depthwise_.weight = packed.floats(depthwise_weight_size(depthwise), {conv.weight}, [&](float* to) {
      pack_depthwise_weight(depthwise, conv.weight->constant->as<float>(), to);
    });
    depthwise_.bias = padded_channels(conv.bias, lanes, packed);
    depthwise_.activation = activation_of(problem.depthwise.activation, target);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg &x = args[static_cast<size_t>(x_)], &y = args[static_cast<size_t>(y_)];
    ChainCall call;
    call.plan = plan_of(problem_, schedule_, x.dims, y.dims, kernels_, cache_bytes_);
    call.split = split_of(call.plan, threads_);
    ChainArgs& a = call.args;
    const ConvStrides from = ConvStrides::of(x), to = ConvStrides::of(y);
    a.src_batch = from.batch;
    a.src_block = from.channel;
    a.dst_batch = to.batch;
    a.dst_block = to.channel;
    if (residual_ >= 0) {
      const ConvStrides residual = ConvStrides::of(args[static_cast<size_t>(residual_)]);
      a.residual_batch = residual.batch;
      a.residual_block = residual.channel;
    }
    a.depthwise = stage_of(problem_.depthwise, depthwise_);
    if (problem_.expand) a.expand = stage_of(*problem_.expand, expand_);
    if (problem_.project) {
      a.project = stage_of(*problem_.project, project_);
      a.project.lo = problem_.lo;
      a.project.hi = problem_.hi;
    }
    call.workspaces = shared_bytes(call.plan);
    return Prepared::of(call, call.workspaces + call.split.scratch_bytes());
  }

  bool prefetches_later() const override { return problem_.project && value_of(schedule_, "strassen") > 0; }
  void prefetch_later(std::byte* prepared, std::span<const float> constants) const override {
    reinterpret_cast<ChainCall*>(prepared)->args.later = {constants.data(), std::ssize(constants)};
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const ChainCall*>(prepared);
    ChainArgs a = call.args;
    a.src = reinterpret_cast<const float*>(args[x_]);
    a.dst = reinterpret_cast<float*>(args[y_]);
    if (residual_ >= 0) a.residual = reinterpret_cast<const float*>(args[residual_]);
    if (call.plan.shape.shares_rows()) return run_shared(call, a, scratch, team);
    ChainMember members[TaskSplit::kMaxWorkspaces];
    for (int64_t i = 0; i < call.split.workspaces; ++i) {
      members[i].workspace = reinterpret_cast<float*>(scratch + i * call.split.workspace_stride());
    }
    run_tasks(team, call.split, [&](int64_t begin, int64_t end, int workspace) {
      run_chain(call.plan, kernels_, a, begin, end, members[workspace]);
    });
  }

 private:
  void run_shared(const ChainCall& call, const ChainArgs& args, std::byte* scratch, Team& team) const {
    const auto run = [&](int64_t phase, int64_t begin, int64_t end, int) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t workspace = call.split.serial ? 0 : task;
        std::byte* own = scratch + call.workspaces + workspace * call.split.workspace_stride();
        run_shared_chain(call.plan, kernels_, args, phase, task, reinterpret_cast<float*>(scratch),
                         reinterpret_cast<float*>(own));
      }
    };
    if (call.split.serial)
      SerialTeam().parallel_phases(kSharedPhases, call.plan.tasks, run);
    else
      team.parallel_phases(kSharedPhases, call.plan.tasks, run);
  }

  struct Packed {
    Tensor weight, bias;
    Activation activation;
  };

  static void pack_pointwise(const ChainLink& link, const PanelSplit& split, int64_t lanes, Packed& to,
                             PackedStore& packed) {
    const ConvGeometry& g = link.conv.geometry;
    const int64_t ic = g.ic * g.taps();
    to.weight = packed.floats(pointwise_weight_size(split, ic, lanes), {link.conv.weight}, [&](float* weight) {
      pack_pointwise_weight(split, g.oc, ic, lanes, link.conv.weight->constant->as<float>(), weight);
    });
    to.bias = padded_channels(link.conv.bias, lanes, packed);
  }

  static ChainStage stage_of(const ChainLink& link, const Packed& packed) {
    ChainStage stage;
    stage.weight = packed.weight.as<float>();
    if (packed.bias.defined()) stage.bias = packed.bias.as<float>();
    stage.lo = link.conv.epilogue.lo;
    stage.hi = link.conv.epilogue.hi;
    stage.activation = packed.activation;
    return stage;
  }

  ChainProblem problem_;
  ChainKernels kernels_;
  Schedule schedule_;
  int64_t cache_bytes_;
  int threads_;
  int x_ = -1, y_ = 0, residual_ = -1;
  Packed expand_, depthwise_, project_;
};

class ChainRoutine final : public RoutineOf<ChainRoutine> {
 public:
  ChainRoutine(std::string_view name, ChainForm form) : name_(name), form_(form) {}

  std::string_view name() const override { return name_; }

  std::vector<std::string_view> roots() const override {
    std::vector<std::string_view> roots = eltwise_ops();
    roots.push_back("Conv");
    return roots;
  }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_chains(root, form_, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    if (!read_chain(workload, &why)) return why;
    if (workload.is_exact()) return kRejectExact;
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const ChainProblem problem = *read_chain(workload, nullptr);
    const ChainKernels kernels = chain_kernels_of(target);
    const Dims x = problem.x->shape().hint_dims(), y = problem.y->shape().hint_dims();
    const int64_t inner = problem.depthwise.conv.geometry.ic;
    std::vector<Schedule> schedules;
    const auto offer = [&](const Schedule& schedule) {
      schedules.push_back(schedule);
      for (int64_t levels = 1; problem.project && levels <= kStrassenLevels; ++levels) {
        if (reject_strassen(inner, problem.oc(), target.lanes(), *kernels.strassen, levels)) break;
        schedules.push_back(schedule);
        schedules.back()["strassen"] = levels;
      }
    };
    for (int64_t factor : {1, 4}) offer({{"tasks", factor * target.threads}});
    if (target.threads > 1 && problem.project) offer({{"tasks", target.threads}, {"shared", 1}});
    std::vector<Candidate> all;
    for (const Schedule& schedule : schedules) {
      const ChainPlan plan = plan_of(problem, schedule, x, y, kernels, cache_bytes(schedule, target));
      if (value_of(schedule, "shared") == 1 && !may_share(plan, target)) continue;
      Candidate c = conv_schemas(workload, problem, target);
      c.schedule = schedule;
      if (plan.shape.strassen > 0) c.cost.error = strassen_error(plan.shape.strassen);
      c.cost.time_us = estimate_us(problem, plan, *kernels.tiles, target);
      c.cost.packed_bytes = packed_bytes(problem, plan);
      c.cost.workspace_bytes = shared_bytes(plan) + split_of(plan, target.threads).scratch_bytes();
      all.push_back(std::move(c));
    }
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry&,
                                         PackedStore& packed) {
    return std::make_unique<ChainStep>(*read_chain(*candidate.workload, nullptr), candidate, target, packed);
  }

 private:
  static Candidate conv_schemas(const Workload& workload, const ChainProblem& problem, const Target& target) {
    Schema schema = Schema::plain(DType::Float32, problem.rank());
    schema.layout = Layout::channel_blocked(problem.rank(), target.lanes());
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    const bool is_plain = problem.expansion == Expansion::Stem;
    c.inputs[static_cast<size_t>(workload.input_index(problem.x))] =
        is_plain ? Schema::plain(DType::Float32, problem.rank()) : schema;
    if (problem.residual) {
      const int index = workload.input_index(problem.residual);
      c.inputs[static_cast<size_t>(index)] = schema;
      if (problem.residual != problem.x) c.in_place = index;
    }
    c.outputs.push_back(schema);
    return c;
  }

  static int64_t packed_bytes(const ChainProblem& problem, const ChainPlan& plan) {
    const ChainShape& s = plan.shape;
    int64_t floats = plan.inner.vectors * plan.lanes * (s.depthwise.taps() + (problem.depthwise.conv.bias ? 1 : 0));
    if (s.expands()) {
      floats += expansion_weight_size(plan) + (problem.expand->conv.bias ? plan.inner.vectors * plan.lanes : 0);
    }
    if (s.project) {
      floats += projection_weight_size(plan) + (problem.project->conv.bias ? plan.outer.vectors * plan.lanes : 0);
    }
    return floats * 4;
  }

  std::string_view name_;
  ChainForm form_;
};

}  // namespace

std::unique_ptr<Routine> make_depthwise_pointwise_routine() {
  return std::make_unique<ChainRoutine>("cpu:float32/depthwise_pointwise", ChainForm{Expansion::None, true});
}
NEO_DEFINE_STEP(depthwise_pointwise, ChainRoutine)

std::unique_ptr<Routine> make_pointwise_depthwise_routine() {
  return std::make_unique<ChainRoutine>("cpu:float32/pointwise_depthwise", ChainForm{Expansion::Pointwise, false});
}
NEO_DEFINE_STEP(pointwise_depthwise, ChainRoutine)

std::unique_ptr<Routine> make_inverted_residual_routine() {
  return std::make_unique<ChainRoutine>("cpu:float32/inverted_residual", ChainForm{Expansion::Pointwise, true});
}
NEO_DEFINE_STEP(inverted_residual, ChainRoutine)

std::unique_ptr<Routine> make_stem_depthwise_routine() {
  return std::make_unique<ChainRoutine>("cpu:float32/stem_depthwise", ChainForm{Expansion::Stem, false});
}
NEO_DEFINE_STEP(stem_depthwise, ChainRoutine)

std::unique_ptr<Routine> make_stem_depthwise_pointwise_routine() {
  return std::make_unique<ChainRoutine>("cpu:float32/stem_depthwise_pointwise", ChainForm{Expansion::Stem, true});
}
NEO_DEFINE_STEP(stem_depthwise_pointwise, ChainRoutine)

}  // namespace neo
