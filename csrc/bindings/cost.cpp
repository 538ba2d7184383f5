#include "base/check.h"
#include "bindings/bindings.h"
#include "bindings/problem.h"
#include "routines/cost/product_start.h"
#include "routines/cost/step_cost.h"
#include "routines/peak_rates.h"
#include "runtime/thread_pool.h"

namespace neo::python {
namespace {

// Family, cycles, runs, tasks, bytes that are read and written.
using LoadFields = std::tuple<int, double, double, double, double, double>;

LoadFields fields_of(const StepLoad& load) {
  return {static_cast<int>(load.family), load.cycles, load.runs, load.tasks, load.reads, load.writes};
}

StepLoad load_of(const LoadFields& fields) {
  const auto& [family, cycles, runs, tasks, reads, writes] = fields;
  NEO_CHECK(family >= 0 && family < kStepFamilies, Internal, "estimate", "a family must be known. Got ", family);
  return {static_cast<StepFamily>(family), cycles, runs, tasks, reads, writes};
}

}  // namespace

void bind_cost(py::module_& m) {
  m.def(
      "step_families",
      [] {
        py::list families;
        for (int i = 0; i < kStepFamilies; ++i) {
          const auto family = static_cast<StepFamily>(i);
          const StepRow& row = step_row(family);
          families.append(py::make_tuple(std::string(name(family)),
                                         py::make_tuple(row.cycles, row.run_cycles, row.traffic, row.fixed_us)));
        }
        return families;
      },
      "(name, (cycles, run_cycles, traffic, fixed_us)) of each, in order");
  m.def(
      "step_times",
      [](const std::vector<LoadFields>& loads, const std::string& target, int threads,
         const std::tuple<double, double, double, double>& row) {
        const Target machine = machine_of(target, threads);
        const auto& [cycles, run_cycles, traffic, fixed_us] = row;
        std::vector<double> times;
        for (const LoadFields& fields : loads)
          times.push_back(step_us(load_of(fields), machine, {cycles, run_cycles, traffic, fixed_us}));
        return times;
      },
      py::arg("loads"), py::arg("target"), py::arg("threads"), py::arg("row"),
      "microseconds of steps with the constants of a row");
  m.def(
      "load_of_choice",
      [](const BoundProblem& p, size_t variable, size_t choice) -> std::optional<LoadFields> {
        const auto& candidate = p.problem->nodes.at(variable).choices.at(choice).candidate;
        if (!candidate || candidate->cost.load.family == StepFamily::Product) return std::nullopt;
        return fields_of(candidate->cost.load);
      },
      py::arg("problem"), py::arg("variable"), py::arg("choice"));
  m.def(
      "loads_of_conversions",
      [](const BoundProblem& p) {
        py::list loads;
        for (const auto& c : p.problem->conversions) {
          if (c.from.device != DeviceKind::Cpu || c.to.device != DeviceKind::Cpu) continue;
          loads.append(py::make_tuple(adapt_name(c.from, c.to), sizes_text(c.value->type),
                                      fields_of(adapt_load(c.value->type, c.from, c.to))));
        }
        return loads;
      },
      py::arg("problem"), "(routine, sizes, load) of every conversion of the problem");
  m.def(
      "product_start_us", [](const std::string& routine) { return start_us(routine); }, py::arg("routine"));
  m.def(
      "machine_text", [](const std::string& target) { return Target::parse(target, 1).machine.to_text(); },
      py::arg("target"), "The figures that estimates for a target use.");
  m.def(
      "measure_machine",
      [](const std::string& target, int threads) {
        const Isa isa = Target::parse(target, threads).isa;
        const py::gil_scoped_release release;
        const auto team = process_thread_pool().lease(threads, Oversubscribe::No);
        return measure_machine(isa, *team).to_text();
      },
      py::arg("target"), py::arg("threads"), "The same, measured here in about a second.");
}

}  // namespace neo::python
