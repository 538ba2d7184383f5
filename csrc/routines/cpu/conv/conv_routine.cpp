#include "routines/cpu/conv/conv_routine.h"

#include <algorithm>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/cpu/epilogue.h"
#include "routines/families.h"

namespace neo {

std::vector<std::string_view> ConvRoutine::roots() const {
  std::vector<std::string_view> roots = ops();
  roots.insert(roots.end(), epilogue_ops().begin(), epilogue_ops().end());
  if (pools()) roots.push_back("MaxPool");
  return roots;
}

std::vector<Workload> ConvRoutine::matches(const Node& root, const Graph::Users& users, const Graph& graph) const {
  if (root.op == "MaxPool") return match_pooled_conv(root, users, graph);
  return match_epilogues(root, ops(), users, graph);
}

std::optional<std::string> ConvRoutine::rejects(const Workload& workload, const Target& target) const {
  std::string why;
  const auto problem = read_conv(workload, &why, takes_open());
  if (!problem) return why;
  if (problem->epilogue.activation) {
    if (const char* reason = rejects_activation(*problem, target)) return reason;
  }
  return rejects_problem(*problem, target);
}

const char* ConvRoutine::rejects_activation(const ConvProblem& problem, const Target& target) const {
  const bool pads = problem.geometry.oc % target.lanes() != 0;
  return pads && !keeps_zero(problem.epilogue) ? "the activation does not keep padding lanes zero" : nullptr;
}

Candidate conv_candidate(const Workload& workload, const ConvProblem& problem, int64_t x_block, int64_t y_block) {
  const auto schema = [&](int64_t block) {
    Schema s = Schema::plain(DType::Float32, problem.rank());
    if (block > 1) s.layout = Layout::channel_blocked(problem.rank(), block);
    return s;
  };
  Candidate c;
  c.inputs.resize(workload.inputs.size());
  const Value* residual = problem.epilogue.residual;
  if (residual) {
    const int index = workload.input_index(residual);
    c.inputs[static_cast<size_t>(index)] = schema(y_block);
    if (residual != problem.x) c.in_place = index;
  }
  c.inputs[static_cast<size_t>(workload.input_index(problem.x))] = schema(x_block);
  c.outputs.push_back(schema(y_block));
  return c;
}

ConvArguments ConvArguments::of(const Candidate& candidate, const ConvProblem& problem, const Target& target) {
  ConvArguments a;
  a.x = argument_of(candidate, problem.x);
  a.weight = argument_of(candidate, problem.weight);
  a.bias = argument_of(candidate, problem.bias);
  a.residual = argument_of(candidate, problem.epilogue.residual);
  a.y = 0;
  for (const auto& schema : candidate.inputs) a.y += schema.has_value();
  a.lo = problem.epilogue.lo;
  a.hi = problem.epilogue.hi;
  a.activation = activation_of(problem.epilogue, target);
  return a;
}

ConvOperands ConvArguments::bind(std::span<const Arg> args) const {
  const auto strides = [&](int i) { return ConvStrides::of(args[static_cast<size_t>(i)]); };
  ConvOperands bound;
  const ConvStrides from = strides(x), to = strides(y);
  bound.src_batch = from.batch;
  bound.src_channel = from.channel;
  bound.dst_batch = to.batch;
  bound.dst_channel = to.channel;
  if (residual >= 0) {
    const ConvStrides added = strides(residual);
    bound.residual_batch = added.batch;
    bound.residual_channel = added.channel;
  }
  bound.lo = lo;
  bound.hi = hi;
  bound.activation = activation;
  return bound;
}

ConvShape ConvStep::shape_at(std::span<const Arg> args) const {
  return geometry_.shape(args[static_cast<size_t>(arguments_.x)].dims, args[static_cast<size_t>(arguments_.y)].dims);
}

Im2colConvShape ConvStep::panel_shape_at(std::span<const Arg> args) const {
  return geometry_.panel_shape(args[static_cast<size_t>(arguments_.x)].dims,
                               args[static_cast<size_t>(arguments_.y)].dims);
}

ConvOperands ConvStep::bind(std::span<const Arg> args) const {
  ConvOperands bound = arguments_.bind(args);
  if (weight_.defined()) bound.weight = weight_.as<float>();
  if (bias_.defined()) bound.bias = bias_.as<float>();
  return bound;
}

ConvOperands ConvArguments::at(ConvOperands bound, std::byte* const* args) const {
  const auto floats = [&](int i) { return reinterpret_cast<float*>(args[i]); };
  bound.src = floats(x);
  bound.dst = floats(y);
  if (weight >= 0) bound.weight = floats(weight);
  if (bias >= 0) bound.bias = floats(bias);
  if (residual >= 0) bound.residual = floats(residual);
  return bound;
}

Tensor padded_channels(const Value* constant, int64_t lanes, PackedStore& packed) {
  if (!constant) return {};
  const int64_t count = constant->constant->size(), padded = ceil_div(count, lanes) * lanes;
  return packed.floats(padded, {constant}, [&](float* to) {
    std::copy_n(constant->constant->as<float>(), count, to);
    std::fill_n(to + count, padded - count, 0.0f);
  });
}

const float* RunTimeWeights::padded_bias(const float* from, int64_t channels, float* to) const {
  std::copy_n(from, channels, to);
  std::fill_n(to + channels, bias - channels, 0.0f);
  return to;
}

bool has_run_time_weights(const ConvProblem& problem) {
  return reject_run_time_weights(problem) != nullptr;
}

void read_run_time_weights(Candidate& candidate, const Workload& workload, const ConvProblem& problem) {
  constexpr double kPackUs = 3e-4;  // for each weight
  for (const Value* v : {problem.weight, problem.bias}) {
    if (v) candidate.inputs[static_cast<size_t>(workload.input_index(v))] = plain_schema(v->type);
  }
  candidate.cost.workspace_bytes += candidate.cost.packed_bytes;
  candidate.cost.time_us += kPackUs * static_cast<double>(candidate.cost.packed_bytes) / 4;
  candidate.cost.packed_bytes = 0;
}

ConvStrides ConvStrides::of(const Arg& arg) {
  const Dims physical = arg.layout.physical_dims(arg.dims);
  const bool is_empty = std::find(physical.begin(), physical.end(), 0) != physical.end();
  int64_t dense = 1;
  for (size_t i = physical.size(); i-- > 2;) {
    NEO_ASSERT(is_empty || physical[i] == 1 || arg.strides[i] == dense,
               "the pixels of a convolution's operand are not dense");
    dense *= physical[i];
  }
  return {arg.strides[0], arg.strides[1]};
}

}  // namespace neo
