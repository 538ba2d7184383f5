#include "routines/target.h"

#include "base/check.h"
#include "base/topology.h"

namespace neo {
namespace {

// Figures of a middling core of each tier; estimates need their ratios, not their values.
struct Figures {
  Isa isa;
  int lanes;
  double gflops;
  double l2_gbps;
};
constexpr Figures kFigures[] = {
    {kIsaScalar, 4, 12, 20},
    {kIsaNeon, 4, 30, 30},
    {kIsaAvx2, 8, 90, 60},
    {kIsaAvx512, 16, 120, 80},
};

const Figures& figures_of(Isa isa) {
  const Figures* best = &kFigures[0];
  for (const Figures& f : kFigures) {
    if (f.isa.is_subset_of(isa) && f.gflops > best->gflops) best = &f;
  }
  return *best;
}

}  // namespace

int Target::lanes() const {
  return figures_of(isa).lanes;
}

Target Target::parse(std::string_view name, int threads) {
  Target target;
  target.name = name;
  target.threads = threads;
  NEO_CHECK(name == "cpu" || name.substr(0, 4) == "cpu:", Model, "compile", "target must be known. Got \"", name,
            "\", expected \"cpu\" or \"cpu:<instruction set>\" (neo targets lists them)");
  target.isa = name == "cpu" ? host_isa() : parse_isa(name.substr(4), "compile");
  const Figures& figures = figures_of(target.isa);
  target.gflops_per_thread = figures.gflops;
  target.l2_gbps = figures.l2_gbps;
  target.memory_gbps = 35;
  return target;
}

}  // namespace neo
