#include <algorithm>
#include <bit>

#include "base/check.h"
#include "routines/cost/step_cost.h"
#include "routines/cpu/conv/conv_routine.h"
#include "routines/cpu/int8/code_table.h"
#include "routines/cpu/int8/codes_chain_problem.h"
#include "routines/cpu/tasks.h"
#include "routines/cpu/tier.h"
#include "routines/families.h"
#include "routines/space.h"

namespace neo {
namespace {

// The schedule:
//   codes   in a word of the pointwise convolutions, where there are some
//   tasks   as many or more, where the shape has as many parts
//   shared  1: the tasks share the depthwise codes of an image that is alone; else each makes some rows
CodesChainPlan plan_of(const CodesChainProblem& problem, const Schedule& schedule, const Dims& x, const Dims& y,
                       const CodesChainParts& parts, int64_t cache_bytes) {
  CodesChainShape shape = problem.shape(x, y, value_of(schedule, "codes"));
  shape.shared = value_of(schedule, "shared") == 1;
  return plan_codes_chain(shape, parts, schedule.at("tasks"), cache_bytes);
}

int64_t cache_bytes(const Target& target) {
  return private_caches(target).l2_bytes / 2;
}

CodesChainParts parts_of(const Schedule& schedule, const Target& target) {
  return {&NEO_PICK_TIER(target.isa, dot_kernels)(value_of(schedule, "codes") == kByteCodes),
          &NEO_PICK_TIER(target.isa, depthwise_kernels)(), &NEO_PICK_TIER(target.isa, codes_chain_kernels)()};
}

// Whether arithmetic is faster than packing codes for a table: wide vectors look up many codes at once.
bool computes_functions(const Target& target) {
  return target.lanes() <= 8;
}

int64_t operations_of(const CodesChainShape& s) {
  const ConvShape& d = s.depthwise;
  const int64_t expansion = s.expands ? 2 * d.n * d.ih * d.iw * d.ic * s.ic : 0;
  return expansion + d.flops() + (s.projects ? 2 * d.n * d.oh * d.ow * d.ic * s.oc : 0);
}

// Tasks that share have as many workspaces: one that is late may be done by any member.
TaskSplit split_of(const CodesChainPlan& plan, int threads) {
  return TaskSplit::of(plan.tasks, operations_of(plan.shape), plan.workspace_bytes,
                       plan.shape.shares_strip() ? static_cast<int>(plan.tasks) : threads);
}

int64_t shared_bytes(const CodesChainPlan& plan) {
  return round_up(plan.shared_bytes, int64_t{4096});
}

int64_t pointwise_words(const DotPlan& product) {
  return PackedColumns::kArrays * product.channels() + product.weight_words();
}

// The constants of the sums as float32 numbers behind the columns, and then the weights.
int64_t depthwise_words(const CodesChainPlan& plan) {
  return plan.vectors * plan.lanes * (PackedColumns::kArrays + 1 + plan.shape.depthwise.taps());
}

int64_t packed_words(const CodesChainPlan& plan) {
  return depthwise_words(plan) + (plan.shape.expands ? pointwise_words(plan.expand) : 0) +
         (plan.shape.projects ? pointwise_words(plan.project) : 0);
}

// Cycles, as cycles_us() counts them, of one pixel of a pointwise convolution in register blocks of `pixels` pixels
// that lie side by side, without its results.
double pointwise_cycles(const DotPlan& product, double pixels, const DotKernels& kernels, const Target& target) {
  constexpr double kTileCycles = 30;
  const double vectors = static_cast<double>(product.group_vectors) / static_cast<double>(product.panels);
  const auto most = static_cast<double>(kernels.max_rows[ceil_div(product.group_vectors, product.panels)]);
  const double rows = pixels / std::max(1.0, std::ceil(pixels / most));
  const double word = dot_word_cycles(rows, vectors, kernels.codes, target);
  return static_cast<double>(product.panels) / std::max(1.0, rows) *
         (word * static_cast<double>(product.words) + kTileCycles * core_cycles(target));
}

double estimate_us(const CodesChainProblem& problem, const CodesChainPlan& plan, const CodesChainParts& parts,
                   const Target& target) {
  // Cycles of a core, of a vector that becomes numbers, or codes, or words.
  constexpr double kNumberCycles = 4, kReadCycles = 2, kCodesCycles = 5, kFillCycles = 2, kResidualCycles = 7;
  constexpr double kSwishCycles = 1.5, kMeetUs = 2;
  const CodesChainShape& shape = plan.shape;
  const ConvShape& s = shape.depthwise;
  const double core = core_cycles(target);
  const auto images = static_cast<double>(s.n), vectors = static_cast<double>(plan.vectors);
  const double out_pixels = images * static_cast<double>(s.oh * s.ow);
  // Rows at the seams between tasks are made by both.
  const int64_t halo = std::max<int64_t>(0, (s.kh - 1) * s.dilation_h + 1 - s.stride_h);
  const double in_pixels = images * static_cast<double>((s.ih + (plan.chunks - 1) * halo) * s.iw);
  double cycles =
      vectors * out_pixels * (static_cast<double>(s.taps()) / depthwise_efficiency(s) + kCodesCycles * core);
  if (shape.expands) {
    const auto run = static_cast<double>(std::max<int64_t>(1, plan.band * s.stride_h * s.iw));
    const double fill = shape.x_is_bytes ? 0 : static_cast<double>(ceil_div(shape.ic, plan.lanes)) * kFillCycles;
    const double number = computes_functions(target) && is_hard_swish(*problem.expand) ? kNumberCycles + kSwishCycles
                          : problem.expand->table_bytes() > 0                          ? 2 * kNumberCycles + kReadCycles
                                                                                       : kNumberCycles;
    cycles += in_pixels * (pointwise_cycles(plan.expand, run, *parts.dot, target) +
                           core * (fill * static_cast<double>(plan.panel_parts) + number * vectors));
  } else {
    cycles += in_pixels * vectors * kReadCycles * core;
  }
  if (shape.projects) {
    const auto run = static_cast<double>(std::clamp<int64_t>(plan.strip * s.ow, 1, kChainPixels));
    const double result = result_cycles(target) + (problem.project->product.residual ? kResidualCycles : 0);
    const double fill = shape.strip_is_bytes ? 0 : vectors * kFillCycles;
    cycles += out_pixels * (pointwise_cycles(plan.project, run, *parts.dot, target) +
                            core * (fill + result * static_cast<double>(plan.project.group_vectors)));
  }
  if (problem.depthwise.table_bytes() > 0) cycles += out_pixels * vectors * kReadCycles * core;
  if (problem.project) cycles += problem.project->table_cycles(target) * core;
  UnfittedLoad load;
  load.arithmetic_us = cycles_us(cycles, target);
  for (const Value* v : {problem.first().product.x, problem.residual(), problem.last().product.y}) {
    if (v) load.bytes += static_cast<double>(element_count(v->shape().hint_dims()));
  }
  load.constant_bytes = 4 * static_cast<double>(packed_words(plan));
  const TaskSplit split = split_of(plan, target.threads);
  load.tasks = split.serial ? 1 : static_cast<double>(split.tasks);
  return unfitted_us(load, target) + (shape.shares_strip() && !split.serial ? kMeetUs : 0);
}

struct CodesChainCall {
  CodesChainPlan plan;
  CodesChainArgs args;
  TaskSplit split;
  int64_t workspaces = 0;  // bytes of scratch before them: what tasks share
};

class CodesChainStep final : public KernelStep {
 public:
  CodesChainStep(CodesChainProblem problem, const Candidate& candidate, const Target& target, const OpRegistry& ops,
                 PackedStore& packed)
      : problem_(std::move(problem)),
        schedule_(candidate.schedule),
        parts_(parts_of(candidate.schedule, target)),
        cache_bytes_(cache_bytes(target)),
        threads_(target.threads) {
    const Int8Product &first = problem_.first().product, &last = problem_.last().product;
    x_ = argument_of(candidate, first.x);
    residual_ = argument_of(candidate, problem_.residual());
    for (const auto& schema : candidate.inputs) y_ += schema.has_value();
    const CodesChainPlan plan =
        plan_of(problem_, schedule_, first.x->shape().hint_dims(), last.y->shape().hint_dims(), parts_, cache_bytes_);
    if (problem_.expand) pack_pointwise(*problem_.expand, plan.expand, expand_, target, ops, packed);
    pack_depthwise(plan, target, ops, packed);
    if (problem_.project) pack_pointwise(*problem_.project, plan.project, project_, target, ops, packed);
    if (!computes_functions(target)) return;
    if (expand_.table) {
      expand_.hard_swish = read_hard_swish(*problem_.expand, *expand_.table);
      const bool is_read_so = expand_.hard_swish && expand_.hard_swish->zero == problem_.depthwise.product.x_grid.zero;
      if (!is_read_so) expand_.hard_swish.reset();
    }
    if (depthwise_.table) depthwise_.hard_swish = read_hard_swish(problem_.depthwise, *depthwise_.table);
  }

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg &x = args[static_cast<size_t>(x_)], &y = args[static_cast<size_t>(y_)];
    CodesChainCall call;
    call.plan = plan_of(problem_, schedule_, x.dims, y.dims, parts_, cache_bytes_);
    call.split = split_of(call.plan, threads_);
    CodesChainArgs& a = call.args;
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
    a.x = view_of(problem_.first());
    a.inner = view_of(problem_.depthwise);
    bind_depthwise(call.plan, a);
    if (problem_.expand) a.expand = pointwise_stage(*problem_.expand, call.plan.expand, expand_);
    if (problem_.project) {
      a.strip = view_of(*problem_.project);
      a.project = pointwise_stage(*problem_.project, call.plan.project, project_);
    }
    call.workspaces = shared_bytes(call.plan);
    return Prepared::of(call, call.workspaces + call.split.scratch_bytes());
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte* scratch, Team& team) const override {
    const auto& call = *reinterpret_cast<const CodesChainCall*>(prepared);
    CodesChainArgs a = call.args;
    a.src = reinterpret_cast<const uint8_t*>(args[x_]);
    a.dst = reinterpret_cast<uint8_t*>(args[y_]);
    if (residual_ >= 0) a.residual = reinterpret_cast<const uint8_t*>(args[residual_]);
    expand_.bind_function(a.expand);
    depthwise_.bind_function(a.depthwise);
    project_.bind_function(a.project);
    if (call.plan.shape.shares_strip()) return run_shared(call, a, scratch, team);
    run_tasks_with<uint8_t>(team, call.split, scratch, [&](int64_t begin, int64_t end, uint8_t* workspace) {
      run_codes_chain(call.plan, parts_, a, begin, end, workspace);
    });
  }

 private:
  struct Packed {
    Tensor constants;
    std::optional<CodeTable> table;
    std::optional<CodesHardSwish> hard_swish;

    void bind_function(CodesChainStage& stage) const {
      stage.hard_swish = hard_swish ? &*hard_swish : nullptr;
      stage.table = table && !hard_swish ? &*table : nullptr;
    }
    const int32_t* words() const { return reinterpret_cast<const int32_t*>(constants.as<float>()); }
  };

  void run_shared(const CodesChainCall& call, const CodesChainArgs& args, std::byte* scratch, Team& team) const {
    const auto run = [&](int64_t phase, int64_t begin, int64_t end, int) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t workspace = call.split.serial ? 0 : task;
        std::byte* own = scratch + call.workspaces + workspace * call.split.workspace_stride();
        run_shared_codes_chain(call.plan, parts_, args, phase, task, reinterpret_cast<uint8_t*>(scratch),
                               reinterpret_cast<uint8_t*>(own));
      }
    };
    if (call.split.serial)
      SerialTeam().parallel_phases(kCodesChainPhases, call.plan.tasks, run);
    else
      team.parallel_phases(kCodesChainPhases, call.plan.tasks, run);
  }

  static CodesView view_of(const Int8Problem& problem) {
    return {problem.product.x_grid.zero, problem.product.x_grid.is_signed()};
  }

  static void make_table(const Int8Problem& problem, const Target& target, const OpRegistry& ops, PackedStore& packed,
                         Packed& to) {
    if (!problem.product.function.nodes.empty()) to.table.emplace(problem.product.function, target, ops, packed);
  }

  void pack_pointwise(const Int8Problem& problem, const DotPlan& product, Packed& to, const Target& target,
                      const OpRegistry& ops, PackedStore& packed) const {
    const Int8Product& p = problem.product;
    to.constants =
        packed.floats(pointwise_words(product), {p.w, p.w_scale, p.w_zero, p.bias, p.addend}, [&](float* floats) {
          auto* words = reinterpret_cast<int32_t*>(floats);
          problem.pack_columns({words, product.channels(), product.codes == kByteCodes});
          const Int8Weights weights(p);
          pack_dot_weight(
              product,
              [&](int64_t channel, int64_t count, int64_t ic, int64_t, int32_t* to) {
                weights.read(channel, ic, count, to);
              },
              words + PackedColumns::kArrays * product.channels());
        });
    make_table(problem, target, ops, packed, to);
  }

  void pack_depthwise(const CodesChainPlan& plan, const Target& target, const OpRegistry& ops, PackedStore& packed) {
    const Int8Product& p = problem_.depthwise.product;
    depthwise_.constants = packed.floats(depthwise_words(plan), {p.w, p.w_scale, p.w_zero, p.bias}, [&](float* floats) {
      auto* words = reinterpret_cast<int32_t*>(floats);
      const int64_t padded = plan.vectors * plan.lanes, taps = plan.shape.depthwise.taps();
      problem_.depthwise.pack_columns({words, padded, false});
      float* init = floats + PackedColumns::kArrays * padded;
      for (int64_t c = 0; c < padded; ++c) init[c] = static_cast<float>(words[c]);
      const Int8Weights weights(p);
      std::vector<float> numbers(static_cast<size_t>(problem_.depthwise.channels * taps));
      for (int64_t i = 0; i < std::ssize(numbers); ++i)
        numbers[static_cast<size_t>(i)] = static_cast<float>(weights.at(i / taps, i % taps));
      pack_depthwise_weight(plan_depthwise(plan.shape.depthwise, plan.lanes), numbers.data(), init + padded);
    });
    make_table(problem_.depthwise, target, ops, packed, depthwise_);
  }

  static CodesChainStage pointwise_stage(const Int8Problem& problem, const DotPlan& product, const Packed& packed) {
    CodesChainStage stage;
    stage.result = problem.result(packed.words(), product.channels());
    stage.weight = packed.words() + PackedColumns::kArrays * product.channels();
    return stage;
  }

  void bind_depthwise(const CodesChainPlan& plan, CodesChainArgs& a) const {
    const int64_t padded = plan.vectors * plan.lanes;
    DotResult& result = a.depthwise.result;
    result = problem_.depthwise.result(depthwise_.words(), padded);
    if (problem_.flips_strip(value_of(schedule_, "codes"))) {
      result.is_signed = false;
      result.zero += 128;
    }
    a.depthwise_init = depthwise_.constants.as<float>() + PackedColumns::kArrays * padded;
    a.depthwise_weight = a.depthwise_init + padded;
  }

  CodesChainProblem problem_;
  Schedule schedule_;
  CodesChainParts parts_;
  int64_t cache_bytes_;
  int threads_;
  int x_ = -1, residual_ = -1, y_ = 0;
  Packed expand_, depthwise_, project_;
};

// Chains of convolutions of 8-bit codes, exact (codes_chain.h). Without pointwise ones it is a depthwise convolution.
class CodesChainRoutine final : public RoutineOf<CodesChainRoutine> {
 public:
  CodesChainRoutine(std::string_view name, CodesChainForm form) : name_(name), form_(form) {}

  std::string_view name() const override { return name_; }
  std::vector<std::string_view> roots() const override { return {"QuantizeLinear"}; }

  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const override {
    return match_codes_chains(root, form_, users, graph);
  }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    std::string why;
    return CodesChainProblem::read(workload, &why) ? std::nullopt : std::optional(why);
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const CodesChainProblem problem = *CodesChainProblem::read(workload, nullptr);
    const Dims x = problem.first().product.x->shape().hint_dims(), y = problem.last().product.y->shape().hint_dims();
    std::vector<Candidate> all;
    for (const Schedule& words : words_of(problem, target)) {
      std::vector<Schedule> schedules;
      for (const int64_t factor : {1, 4}) {
        if (factor > 1 && target.threads == 1) break;
        schedules.push_back(words);
        schedules.back()["tasks"] = factor * target.threads;
      }
      if (target.threads > 1 && problem.project) {
        schedules.push_back(schedules.front());
        schedules.back()["shared"] = 1;
      }
      for (const Schedule& schedule : schedules) {
        const CodesChainParts parts = parts_of(schedule, target);
        const CodesChainPlan plan = plan_of(problem, schedule, x, y, parts, cache_bytes(target));
        if (value_of(schedule, "shared") == 1 && !may_share(plan, target)) continue;
        Candidate c = schemas(workload, problem, target);
        c.schedule = schedule;
        c.cost.time_us = estimate_us(problem, plan, parts, target);
        c.cost.packed_bytes = 4 * packed_words(plan) + table_bytes(problem);
        c.cost.workspace_bytes = shared_bytes(plan) + split_of(plan, target.threads).scratch_bytes();
        all.push_back(std::move(c));
      }
    }
    return all;
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                                         PackedStore& packed) {
    return std::make_unique<CodesChainStep>(*CodesChainProblem::read(*candidate.workload, nullptr), candidate, target,
                                            ops, packed);
  }

 private:
  // Words of the pointwise convolutions: of bytes where all of their weights are some.
  static std::vector<Schedule> words_of(const CodesChainProblem& problem, const Target& target) {
    if (!problem.expand && !problem.project) return {{}};
    const Schedule pairs{{"codes", kWordCodes}}, fours{{"codes", kByteCodes}};
    if (!has_dot_bytes(target)) return {pairs};
    bool may_be = true, must_be = true;
    for (const auto* pointwise : {&problem.expand, &problem.project}) {
      if (!*pointwise) continue;
      const std::vector<bool> bytes = may_be_bytes((*pointwise)->product);
      may_be = may_be && std::find(bytes.begin(), bytes.end(), true) != bytes.end();
      must_be = must_be && std::find(bytes.begin(), bytes.end(), false) == bytes.end();
    }
    if (!may_be) return {pairs};
    return must_be ? std::vector{fours} : std::vector{fours, pairs};
  }

  // Whether it makes sense: tasks to share among, and a private cache for the part of each.
  static bool may_share(const CodesChainPlan& plan, const Target& target) {
    return plan.shape.shares_strip() && plan.tasks > 1 && plan.tasks <= TaskSplit::kMaxWorkspaces &&
           plan.workspace_bytes + plan.shared_bytes / plan.tasks <= cache_bytes(target);
  }

  static Candidate schemas(const Workload& workload, const CodesChainProblem& problem, const Target& target) {
    const auto blocked = [&](const Value* value) {
      Schema schema = plain_schema(value->type);
      schema.layout = Layout::channel_blocked(value->shape().rank(), target.lanes());
      return schema;
    };
    const Value *x = problem.first().product.x, *residual = problem.residual();
    Candidate c;
    c.inputs.resize(workload.inputs.size());
    if (residual) {
      const int index = workload.input_index(residual);
      c.inputs[static_cast<size_t>(index)] = blocked(residual);
      if (residual != x) c.in_place = index;
    }
    c.inputs[static_cast<size_t>(workload.input_index(x))] = blocked(x);
    c.outputs.push_back(blocked(problem.last().product.y));
    return c;
  }

  static int64_t table_bytes(const CodesChainProblem& problem) {
    return problem.depthwise.table_bytes() + (problem.expand ? problem.expand->table_bytes() : 0) +
           (problem.project ? problem.project->table_bytes() : 0);
  }

  std::string_view name_;
  CodesChainForm form_;
};

}  // namespace

std::unique_ptr<Routine> make_int8_depthwise_float32_routine() {
  return std::make_unique<CodesChainRoutine>("cpu:int8/depthwise_float32", CodesChainForm{false, false});
}
NEO_DEFINE_STEP(int8_depthwise_float32, CodesChainRoutine)

std::unique_ptr<Routine> make_int8_depthwise_pointwise_routine() {
  return std::make_unique<CodesChainRoutine>("cpu:int8/depthwise_pointwise", CodesChainForm{false, true});
}
NEO_DEFINE_STEP(int8_depthwise_pointwise, CodesChainRoutine)

std::unique_ptr<Routine> make_int8_pointwise_depthwise_routine() {
  return std::make_unique<CodesChainRoutine>("cpu:int8/pointwise_depthwise", CodesChainForm{true, false});
}
NEO_DEFINE_STEP(int8_pointwise_depthwise, CodesChainRoutine)

std::unique_ptr<Routine> make_int8_inverted_residual_routine() {
  return std::make_unique<CodesChainRoutine>("cpu:int8/inverted_residual", CodesChainForm{true, true});
}
NEO_DEFINE_STEP(int8_inverted_residual, CodesChainRoutine)

}  // namespace neo
