#pragma once

#include <memory>

#include "routines/cpu/conv/conv_operands.h"
#include "routines/cpu/tasks.h"
#include "routines/families.h"
#include "routines/patterns/conv_problem.h"

namespace neo {

// The routines of convolution, one per file.

// The workloads that they share: groups that begin with a convolution and end in a residual and a clamp, or a pool.
class ConvRoutine : public Routine {
 public:
  std::vector<std::string_view> roots() const final;
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const final;
  std::optional<std::string> rejects(const Workload& workload, const Target& target) const final;

 protected:
  virtual std::vector<std::string_view> ops() const { return {"Conv"}; }
  // Whether it takes the MaxPool of every 2x2 of a convolution's results too.
  virtual bool pools() const { return false; }
  // Whether it takes weights whose sizes only a call tells (read_conv).
  virtual bool takes_open() const { return false; }
  // Why not the epilogue's activation. The default is what a blocked output permits.
  virtual const char* rejects_activation(const ConvProblem& problem, const Target& target) const;
  // rejects() once the problem is read and the target is a CPU.
  virtual std::optional<std::string> rejects_problem(const ConvProblem& problem, const Target& target) const = 0;
};

// The schemas of a candidate: every operand left out but input and residual. An x_block or y_block of 1 is plain.
Candidate conv_candidate(const Workload& workload, const ConvProblem& problem, int64_t x_block, int64_t y_block);

// A constant value per channel (a bias, a scale) padded with zeros to whole vectors; undefined where there is none.
Tensor padded_channels(const Value* constant, int64_t lanes, PackedStore& packed);

// Where a step finds its operands, and the epilogue.
struct ConvArguments {
  int x = -1, weight = -1, bias = -1, residual = -1, y = -1;
  float lo = 0, hi = 0;
  Activation activation;

  static ConvArguments of(const Candidate& candidate, const ConvProblem& problem, const Target& target);
  // The geometry of one binding, whose weights may have sizes of their own.
  ConvGeometry geometry(const ConvGeometry& known, std::span<const Arg> args) const {
    return weight < 0 ? known : known.of_weight(args[static_cast<size_t>(weight)].dims);
  }
  // Strides and epilogue, for the sizes of one binding.
  ConvOperands bind(std::span<const Arg> args) const;
  // The same with the addresses of one run; packed weights and bias stay.
  ConvOperands at(ConvOperands bound, std::byte* const* args) const;
};

// The base of steps of convolutions: packed weights and bias, undefined where they come at run time or there are
// none, and where the other operands are.
class ConvStep : public KernelStep {
 protected:
  ConvStep(const ConvProblem& problem, const ConvArguments& arguments)
      : geometry_(problem.geometry), arguments_(arguments) {}

  // The convolution at the sizes of one binding.
  ConvShape shape_at(std::span<const Arg> args) const;
  Im2colConvShape panel_shape_at(std::span<const Arg> args) const;
  // Strides, epilogue and packed operands.
  ConvOperands bind(std::span<const Arg> args) const;

  const ConvGeometry geometry_;
  const ConvArguments arguments_;
  Tensor weight_, bias_;
};

// Weights and a bias that are not constants: each run packs them into its scratch memory.
struct RunTimeWeights {
  int64_t weight = 0, bias = 0;  // floats of the packed ones; 0: none

  int64_t bytes() const { return (weight + bias) * 4; }
  // pack(weights, packed) packs the former; `channels` are those of the bias. The operands then are the packed ones.
  template <class Pack>
  void pack(ConvOperands& operands, int64_t channels, std::byte* scratch, Pack&& pack) const {
    if (weight == 0) return;
    auto* to = reinterpret_cast<float*>(scratch);
    pack(operands.weight, to);
    operands.weight = to;
    if (bias > 0) operands.bias = padded_bias(operands.bias, channels, to + weight);
  }

 private:
  const float* padded_bias(const float* from, int64_t channels, float* to) const;
};

// Whether each run packs the weights and the bias, which a candidate then reads as they are.
bool has_run_time_weights(const ConvProblem& problem);
void read_run_time_weights(Candidate& candidate, const Workload& workload, const ConvProblem& problem);

// Strides of the batch and of the channels, or of their blocks.
struct ConvStrides {
  int64_t batch = 0;
  int64_t channel = 0;

  static ConvStrides of(const Arg& arg);  // asserts that pixels are dense
};

}  // namespace neo
