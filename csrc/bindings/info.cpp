#include "base/isa.h"
#include "base/knobs.h"
#include "base/quota.h"
#include "base/topology.h"
#include "bindings/bindings.h"
#include "routines/limits.h"
#include "routines/target.h"
#include "runtime/thread_pool.h"

namespace neo::python {
namespace {

// A quota as a context of Python's, on the thread that enters it.
class QuotaContext {
 public:
  QuotaContext(double seconds, int64_t bytes) : seconds_(seconds), bytes_(bytes) {}
  void enter() { scope_ = std::make_unique<QuotaScope>(std::make_shared<Quota>(seconds_, bytes_)); }
  void exit() { scope_.reset(); }

 private:
  double seconds_;
  int64_t bytes_;
  std::unique_ptr<QuotaScope> scope_;
};

}  // namespace

void bind_info(py::module_& m) {
  py::class_<QuotaContext>(m, "Quota", "What this thread may take inside a with statement, the time from its start on.")
      .def(py::init<double, int64_t>(), py::arg("seconds"), py::arg("bytes"))
      .def("__enter__", &QuotaContext::enter)
      .def("__exit__", [](QuotaContext& quota, const py::args&) { quota.exit(); });
  m.def(
      "check_time", [](const std::string& where) { check_time(where); }, py::arg("where"),
      "Raises TimeLimitError once the time of this thread's quota is up.");
  m.def("machine_bytes", &machine_bytes);
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
      "measure_limits",
      [](const std::string& target, int threads) {
        const Isa isa = Target::parse(target, threads).isa;
        const py::gil_scoped_release release;
        const auto team = process_thread_pool().lease(threads, Oversubscribe::No);
        const Limits limits = measure_limits(isa, *team);
        return std::make_pair(limits.gflops, limits.gbps);
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
