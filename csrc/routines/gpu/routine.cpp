#include "routines/gpu/routine.h"

#include <algorithm>

#include "base/check.h"
#include "routines/gpu/step.h"

namespace neo::gpu {

std::unique_ptr<Step> ProgramRoutine::make(const Candidate& candidate, const Target& target, const OpRegistry&,
                                           PackedStore& packed) const {
  std::unique_ptr<const Program> made = program(candidate, target, packed);
  const bool counts = dynamic_cast<const DataDependentProgram*>(made.get()) != nullptr;
  NEO_ASSERT(counts == (candidate.kind == Candidate::Kind::DataDependent), name(),
             " makes a counting program for counted candidates only");
  return make_step(std::move(made), packed.blobs());
}

std::optional<std::string> cannot_hold(const Type& type) {
  if (!type.is_tensor()) return "a device holds tensors only";
  if (!type.shape.has_rank()) return "the rank of an operand is not known";
  if (type.dtype == DType::String) return "a device holds no strings";
  return std::nullopt;
}

std::optional<std::string> cannot_hold(const Workload& workload) {
  for (const auto* values : {&workload.inputs, &workload.outputs}) {
    for (const Value* v : *values) {
      if (auto reason = cannot_hold(v->type)) return reason;
    }
  }
  return std::nullopt;
}

Schema device_schema(const Value& value, const Target& target) {
  return plain_schema(value.type).on(target.device);
}

Candidate plain_candidate(const Workload& workload, const Target& target,
                          const std::function<bool(const Value&)>& packs) {
  Candidate c;
  for (const Value* v : workload.inputs) {
    const bool is_packed = v->constant && packs && packs(*v);
    c.inputs.push_back(is_packed ? std::nullopt : std::optional(device_schema(*v, target)));
  }
  for (const Value* v : workload.outputs) c.outputs.push_back(device_schema(*v, target));
  return c;
}

double device_us(const Work& work, const Target& target, double efficiency, int launches) {
  const DeviceFigures& f = target.figures;
  const double arithmetic_us = static_cast<double>(work.flops.hint()) / (f.gflops * efficiency * 1e3);
  const double data_us = static_cast<double>(work.bytes.hint()) / (f.gbps * 1e3);
  return launches * f.launch_us + std::max(arithmetic_us, data_us);
}

}  // namespace neo::gpu
