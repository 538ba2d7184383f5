#include "base/budget.h"
#include "base/isa.h"
#include "base/knobs.h"
#include "base/poison.h"
#include "base/topology.h"
#include "bindings/bindings.h"
#include "routines/cost/target.h"
#include "routines/peak_rates.h"
#include "runtime/thread_pool.h"

namespace neo::python {
namespace {

// A budget as a context of Python's, on the thread that enters it.
class BudgetContext {
 public:
  BudgetContext(std::optional<double> seconds, std::optional<int64_t> bytes) : quota_{bytes, seconds} {}
  void enter() {
    auto budget = std::make_shared<Budget>(quota_);
    budget->start(0, nullptr, &poll_);
    scope_ = std::make_unique<BudgetScope>(std::move(budget));
  }
  void exit() { scope_.reset(); }

 private:
  Quota quota_;
  std::function<void()> poll_ = raise_pending_signals;
  std::unique_ptr<BudgetScope> scope_;
};

}  // namespace

void bind_info(py::module_& m) {
  py::class_<BudgetContext>(m, "Budget",
                            "What this thread may take inside a with statement, the time from its start on.")
      .def(py::init<std::optional<double>, std::optional<int64_t>>(), py::arg("seconds") = py::none(),
           py::arg("memory") = py::none())
      .def("__enter__", &BudgetContext::enter)
      .def("__exit__", [](BudgetContext& budget, const py::args&) { budget.exit(); });
  m.def("checkpoint", &checkpoint, "Raises TimeLimitError once the time of this thread's budget is up.");
  m.def("default_threads", &default_threads);
  m.def("host_isa", [] { return std::string(isa_name(host_isa())); });
  m.def("host_tiers", [] {
    std::vector<std::string> names;
    for (const IsaTier& tier : host_isa_tiers()) names.emplace_back(tier.name);
    return names;
  });
  m.def(
      "check_target", [](const std::string& name) { Target::parse(name, 1); }, py::arg("name"));
  m.def(
      "measure_peak_rates",
      [](const std::string& target, int threads) {
        const Isa isa = Target::parse(target, threads).isa;
        const py::gil_scoped_release release;
        const auto team = process_thread_pool().lease(threads, Oversubscribe::No);
        const PeakRates rates = measure_peak_rates(isa, *team);
        return std::make_pair(rates.gflops, rates.gbps);
      },
      py::arg("target"), py::arg("threads"), "(10^9 float32 operations per second, 10^9 bytes per second) at most");
  m.def("targets", [] {
    py::list targets;
    for (const IsaTier& tier : all_isa_tiers()) {
      py::dict entry;
      entry["name"] = std::string("cpu:") + tier.name;
      entry["architecture"] = tier.architecture;
      entry["runs_here"] = tier.isa.is_subset_of(host_isa());
      targets.append(entry);
    }
    return targets;
  });
  m.def("device_targets", [] {
    py::list targets;
    for (const DeviceTarget& t : device_targets()) {
      py::dict entry;
      entry["name"] = t.name;
      entry["summary"] = t.summary;
      entry["device"] = std::string(name(t.device));
      targets.append(entry);
    }
    return targets;
  });
  m.def("knobs", [] {
    py::list knobs;
    for (const KnobInfo& info : all_knobs()) {
      py::dict entry;
      entry["name"] = info.name;
      entry["type"] = knob_type_text(info);
      entry["default"] = info.default_value;
      entry["value"] = knob_text(info.knob);
      entry["summary"] = info.summary;
      knobs.append(entry);
    }
    return knobs;
  });
  m.def("poison_new_memory", poison_new_memory, py::arg("on"),
        "Fill memory with NaN before its first use from now on, or do not; for tests.");
  m.def(
      "knob_bool",
      [](const std::string& name) {
        for (const KnobInfo& info : all_knobs()) {
          if (info.name == name) return knob_bool(info.knob);
        }
        return false;
      },
      py::arg("name"));
}

}  // namespace neo::python
