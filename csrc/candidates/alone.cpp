#include "candidates/alone.h"

#include "candidates/problem.h"

namespace neo {
namespace {

// The time of the fastest candidate of its routine on a target with the same schemas. Its schedule may be another.
double estimate_us(const Candidate& candidate, const Target& target, const OpRegistry& ops) {
  double least = 0;
  for (const Candidate& offered : candidate.routine->candidates(*candidate.workload, target, ops)) {
    if (offered.inputs != candidate.inputs || offered.outputs != candidate.outputs) continue;
    if (least == 0 || offered.cost.time_us < least) least = offered.cost.time_us;
  }
  return least;
}

}  // namespace

Target alone(const Target& target) {
  Target one = Target::parse(target.name, 1);
  one.cold_constants = target.cold_constants;
  one.caches = target.caches;
  return one;
}

double time_alone_us(const Candidate& candidate, const Target& target, const Target& alone, const OpRegistry& ops) {
  if (target.threads == 1 || candidate.kind != Candidate::Kind::Step || place_of(candidate) != DeviceKind::Cpu)
    return candidate.cost.time_us;
  const double together_us = estimate_us(candidate, target, ops), alone_us = estimate_us(candidate, alone, ops);
  return together_us > 0 && alone_us > 0 ? candidate.cost.time_us * alone_us / together_us : candidate.cost.time_us;
}

}  // namespace neo
