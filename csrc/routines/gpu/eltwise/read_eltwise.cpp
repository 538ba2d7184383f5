#include <algorithm>
#include <limits>

#include "base/check.h"
#include "routines/gpu/eltwise/eltwise.h"
#include "routines/gpu/eltwise/families.h"
#include "routines/gpu/movement/axes.h"
#include "routines/gpu/storage.h"
#include "routines/patterns/compile_program.h"

namespace neo::gpu {
namespace {

std::optional<EltwiseType> type_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return EltwiseType::F32;
    case DType::Float16:
      return EltwiseType::F16;
    case DType::BFloat16:
      return EltwiseType::BF16;
    case DType::UInt8:
      return EltwiseType::U8;
    case DType::Int8:
      return EltwiseType::I8;
    case DType::Bool:
      return EltwiseType::Bool;
    case DType::Int32:
      return EltwiseType::I32;
    case DType::Int64:
      return EltwiseType::I64;
    default:
      return std::nullopt;
  }
}

// Casts from floats, which programs of the CPU leave to a routine of their own.
std::optional<CompiledEltwise> compile_cast(const Workload& workload) {
  const Node& node = workload.root();
  if (workload.nodes.size() != 1 || node.op != "Cast") return std::nullopt;
  const Value *x = node.inputs.front(), *y = node.outputs.front();
  if (!x->type.is_tensor() || !computes_in_float32(x->dtype()) || !type_of(y->dtype())) return std::nullopt;
  CompiledEltwise c;
  c.program.steps = 1;
  c.program.inputs = 1;
  c.program.registers = 1;
  c.program.type[0] = *type_of(x->dtype());
  c.program.type[1] = *type_of(y->dtype());
  c.program.step[0] = {EltwiseOp::Copy, -1, -1};
  c.inputs = {0};
  return c;
}

// Operands in the order of the workload's inputs.
void order_operands(CompiledEltwise& compiled) {
  std::vector<int> sorted = compiled.inputs;
  std::sort(sorted.begin(), sorted.end());
  const EltwiseProgram old = compiled.program;
  std::vector<int8_t> place;
  for (const int i : compiled.inputs) {
    place.push_back(static_cast<int8_t>(std::find(sorted.begin(), sorted.end(), i) - sorted.begin()));
  }
  const auto renumber = [&](int8_t& x) {
    if (x < 0 && static_cast<size_t>(-1 - x) < place.size())
      x = static_cast<int8_t>(-1 - place[static_cast<size_t>(-1 - x)]);
  };
  for (size_t i = 0; i < place.size(); ++i) compiled.program.type[place[i]] = old.type[i];
  for (int i = 0; i < old.steps; ++i) {
    EltwiseStep& step = compiled.program.step[i];
    renumber(step.a);
    renumber(step.b);
    renumber(step.c);
  }
  compiled.inputs = sorted;
}

// The logical axes of the output that an operand has; none where a size is neither the output's nor 1.
std::optional<std::vector<bool>> axes_of(const Value* v, const Shape& out) {
  std::vector<bool> has(static_cast<size_t>(out.rank()), false);
  const int missing = out.rank() - v->shape().rank();
  if (missing < 0) return std::nullopt;
  for (int axis = missing; axis < out.rank(); ++axis) {
    const Dim& size = v->shape()[axis - missing];
    if (size == out[axis]) {
      has[static_cast<size_t>(axis)] = true;
    } else if (!size.is(1)) {
      return std::nullopt;
    }
  }
  return has;
}

}  // namespace

std::vector<std::string_view> eltwise_roots() {
  return eltwise_ops();
}

std::optional<Made> read_eltwise(const Workload& workload, const BasicOptions& options, std::string* why) {
  EltwiseProblem problem;
  bool floats = true, integers = true;
  for (const Node* node : workload.nodes) {
    floats = floats && is_eltwise(*node);
    integers = integers && is_integer_eltwise(*node);
    for (const auto* values : {&node->inputs, &node->outputs}) {
      for (const Value* v : *values) {
        if (v && !type_of(v->dtype())) return not_made(why, "an operand's dtype is none of the device's");
      }
    }
  }
  std::optional<CompiledEltwise> compiled = compile_cast(workload);
  if (!compiled) {
    if (!floats && (!integers || workload.nodes.size() > 1)) {
      return not_made(why, "an operator or its dtypes make no elementwise program");
    }
    compiled = compile_eltwise(workload, why);
    if (!compiled) return std::nullopt;
    for (int i = 0; i < compiled->program.steps; ++i) {
      const EltwiseOp op = compiled->program.step[i].op;
      if (op >= EltwiseOp::Tan && op <= EltwiseOp::Atanh) return not_made(why, "devices have no such function");
    }
    problem.whole = !floats;
  }
  order_operands(*compiled);
  problem.program = compiled->program;
  const Value* y = workload.outputs.front();
  const Shape& shape = y->shape();
  const bool blocked = options.together != 1;
  if (blocked && (shape.rank() < 3 || !shape[1].is_constant() || shape[1].value() < 2)) {
    return not_made(why, "it has no channels to block");
  }
  const int64_t block = blocked ? channels_block(options.together, shape[1].value()) : 1;
  problem.layout = channels_layout(shape.rank(), block);
  problem.pads = blocked && shape[1].value() % block != 0;
  Made made;
  made.inputs = compiled->inputs;
  bool any_blocked = !blocked;
  for (const int i : made.inputs) {
    const Value* v = workload.inputs[static_cast<size_t>(i)];
    auto has = axes_of(v, shape);
    if (!has) return not_made(why, "an operand's size may or may not be 1");
    const bool channels = blocked && (*has)[1];
    if (blocked) has->push_back(channels);
    const int rank = v->shape().rank(), axis = 1 - (shape.rank() - rank);
    made.layouts.push_back(channels ? channels_layout(rank, options.together, axis) : Layout::plain(rank));
    any_blocked = any_blocked || (channels && rank == shape.rank());
    problem.has.push_back(std::move(*has));
  }
  if (!any_blocked) return not_made(why, "no operand has blocked channels");
  made.layouts.push_back(channels_layout(shape.rank(), options.together));
  // Axes of one element are everyone's and no one's.
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!shape[axis].is(1)) continue;
    for (auto& has : problem.has) {
      const size_t a = static_cast<size_t>(axis);
      has[a] = a > 0 ? has[a - 1] : has.size() > 1 && has[1];
    }
  }
  const int lanes = problem.whole ? 1 : options.lanes;
  EltwiseSchedule schedule = default_schedule(problem, shape.hint_dims(), shape.is_static(), lanes);
  schedule.threads = std::min(schedule.threads, options.threads);
  made.program = [problem, schedule] { return make_eltwise(problem, schedule); };
  made.flops = 2 * eltwise_cycles(problem.program) * static_cast<double>(shape.element_count().hint());
  return made;
}

}  // namespace neo::gpu
