#include "base/check.h"
#include "routines/gpu/movement/moved.h"
#include "routines/gpu/routine.h"
#include "routines/gpu/sort/keys.h"
#include "routines/gpu/sort/programs.h"
#include "routines/patterns/reduced_axes.h"

namespace neo::gpu {
namespace {

// The only element of a constant integer input.
std::optional<int64_t> constant_of(const Value* value) {
  if (!value || !value->constant || value->constant->size() != 1 || !is_integer(value->dtype())) return std::nullopt;
  return load_ints(*value->constant).front();
}

int axis_of(int64_t axis, const Value& value) {
  return axis_from_front(axis, value.shape().rank());
}

// The figures of a candidate on a target.
struct Figures {
  double efficiency = 0.1;
  int launches = 1;
};

std::vector<Candidate> counting(const Workload& workload, const Target& target, const OpRegistry& ops, Figures f) {
  Candidate c = plain_candidate(workload, target);
  c.kind = Candidate::Kind::DataDependent;
  c.cost.time_us = device_us(workload.work(ops), target, f.efficiency, f.launches);
  return {std::move(c)};
}

// Only the first input is needed at run time.
std::vector<Candidate> reading_first(const Workload& workload, const Target& target, const OpRegistry& ops, Figures f) {
  Candidate c = plain_candidate(workload, target);
  for (size_t i = 0; i < workload.inputs.size(); ++i) {
    if (workload.inputs[i] != workload.root().inputs[0]) c.inputs[i] = std::nullopt;
  }
  c.cost.time_us = device_us(workload.work(ops), target, f.efficiency, f.launches);
  return {std::move(c)};
}

class TopKRoutine final : public ProgramRoutine {
 public:
  std::string_view name() const override { return "gpu/top_k"; }
  std::vector<std::string_view> roots() const override { return {"TopK"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    const Node& node = workload.root();
    if (!has_key(node.inputs[0]->dtype())) return "the elements have no sort keys of 32 bits, nor are they int64";
    if (!node.symbols.empty()) return "the size of the result is only known when it runs";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return reading_first(workload, target, ops, {0.02, 8});
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore&) const override {
    const Node& node = candidate.workload->root();
    const Value& x = *node.inputs[0];
    return make_top_k({.dtype = x.dtype(),
                       .axis = axis_of(node.int_attr("axis", -1), x),
                       .largest = node.int_attr("largest", 1) != 0,
                       .values = node.output(0) != nullptr,
                       .indices = node.output(1) != nullptr});
  }
};

class CumSumRoutine final : public ProgramRoutine {
 public:
  std::string_view name() const override { return "gpu/cum_sum"; }
  std::vector<std::string_view> roots() const override { return {"CumSum"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    const Node& node = workload.root();
    const DType dtype = node.inputs[0]->dtype();
    if (dtype != DType::Float32 && dtype != DType::Int32 && dtype != DType::Int64) {
      return "the elements are not float32, int32 or int64";
    }
    if (node.inputs[0]->shape().rank() == 0) return "a number has no axis";
    if (!constant_of(node.input(1))) return "the axis is not a constant";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return reading_first(workload, target, ops, {0.1, 3});
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore&) const override {
    const Node& node = candidate.workload->root();
    const Value& x = *node.inputs[0];
    return make_cum_sum({.dtype = x.dtype(),
                         .axis = axis_of(*constant_of(node.input(1)), x),
                         .exclusive = node.int_attr("exclusive", 0) != 0,
                         .reverse = node.int_attr("reverse", 0) != 0});
  }
};

class NonZeroRoutine final : public ProgramRoutine {
 public:
  std::string_view name() const override { return "gpu/non_zero"; }
  std::vector<std::string_view> roots() const override { return {"NonZero"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    const DType dtype = workload.root().inputs[0]->dtype();
    if (dtype != DType::Float32 && dtype != DType::Bool && !is_integer(dtype)) {
      return "the elements are not float32, integers or bools";
    }
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return counting(workload, target, ops, {0.1, 4});
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore&) const override {
    const Value& x = *candidate.workload->root().inputs[0];
    return make_non_zero(x.dtype() == DType::Float32 ? DType::Float32 : moved_dtype(item_bytes(x.dtype())),
                         x.shape().rank());
  }
};

class CompressRoutine final : public ProgramRoutine {
 public:
  std::string_view name() const override { return "gpu/compress"; }
  std::vector<std::string_view> roots() const override { return {"Compress"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    if (auto reason = cannot_hold(workload)) return reason;
    const Node& node = workload.root();
    if (node.inputs[0] == node.inputs[1]) return "x is its own condition";
    if (node.inputs[0]->shape().rank() == 0) return "a number has no axis";
    if (item_bytes(node.inputs[0]->dtype()) > 8) return "the elements have more than 8 bytes";
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target,
                                    const OpRegistry& ops) const override {
    return counting(workload, target, ops, {0.1, 4});
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&, PackedStore&) const override {
    const Node& node = candidate.workload->root();
    const Value& x = *node.inputs[0];
    return make_compress(moved_dtype(item_bytes(x.dtype())),
                         node.has_attr("axis") ? axis_of(node.int_attr("axis", 0), x) : -1);
  }
};

}  // namespace
}  // namespace neo::gpu

namespace neo {

NEO_DEFINE_PROGRAM_ROUTINE(gpu_top_k, gpu::TopKRoutine)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_cum_sum, gpu::CumSumRoutine)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_non_zero, gpu::NonZeroRoutine)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_compress, gpu::CompressRoutine)

}  // namespace neo
