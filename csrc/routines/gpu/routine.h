#pragma once

#include <memory>
#include <optional>
#include <string>

#include "routines/families.h"
#include "routines/gpu/program.h"
#include "routines/routine.h"

namespace neo::gpu {

// A routine for every kind of device: "gpu:float32/<name>". A family says what it takes and makes the program; the rest
// is the same for all. Its candidates hold their values on the target's device.
class ProgramRoutine : public Routine {
 public:
  bool serves(const Target& target) const final { return target.has_device(); }

  // The program of a candidate. Constants go through the store; Packed::index counts them in that order. A program of a
  // Candidate::Kind::DataDependent is a DataDependentProgram.
  virtual std::unique_ptr<const Program> program(const Candidate& candidate, const Target& target,
                                                 PackedStore& packed) const = 0;

  std::unique_ptr<Step> make(const Candidate& candidate, const Target& target, const OpRegistry& ops,
                             PackedStore& packed) const final;
};

// Why values of this type cannot be held on a device: no tensor of known rank, or strings.
std::optional<std::string> cannot_hold(const Type& type);
// The same of a workload's operands: every output, and every input that is there.
std::optional<std::string> cannot_hold(const Workload& workload);

// Row-major on the target's device.
Schema device_schema(const Value& value, const Target& target);
// A candidate that takes every input that is not packed, and gives every output, row-major on the device. Constants
// that `packs` names are packed.
Candidate plain_candidate(const Workload& workload, const Target& target,
                          const std::function<bool(const Value&)>& packs = {});

// Estimates from the target's figures: launches that move and compute so much.
double device_us(const Work& work, const Target& target, double efficiency, int launches = 1);

}  // namespace neo::gpu

// For a class of a family of csrc/routines/gpu and its arguments; the name goes into NEO_ROUTINES.
#define NEO_DEFINE_PROGRAM_ROUTINE(name, Class, ...)                                                                \
  std::unique_ptr<Routine> make_##name##_routine() {                                                                \
    return std::make_unique<Class>(__VA_ARGS__);                                                                    \
  }                                                                                                                 \
  std::unique_ptr<Step> make_##name##_step(const Candidate& candidate, const Target& target, const OpRegistry& ops, \
                                           PackedStore& packed) {                                                   \
    return Class(__VA_ARGS__).make(candidate, target, ops, packed);                                                 \
  }
