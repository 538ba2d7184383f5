#include "base/check.h"
#include "base/topology.h"
#include "bindings/bindings.h"
#include "bindings/problem.h"
#include "lower/measure.h"
#include "runtime/module.h"
#include "runtime/thread_pool.h"

namespace neo::python {
namespace {

Residence parse_residence(const std::string& text) {
  if (text == "private") return Residence::Private;
  if (text == "shared") return Residence::Shared;
  NEO_CHECK(text == "memory", Model, "tune", "a residence must be known. Got '", text,
            "', expected private, shared or memory");
  return Residence::Memory;
}

const char* text_of(Residence residence) {
  return residence == Residence::Private ? "private" : residence == Residence::Shared ? "shared" : "memory";
}

// Threads of a module's team when no other call runs.
int team_size(int threads) {
  return std::min(threads, process_thread_pool().capacity());
}

RaceOptions race_options(std::optional<double> seconds) {
  RaceOptions options;
  if (seconds) options.deadline_ns = steady_now_ns() + static_cast<int64_t>(*seconds * 1e9);
  options.poll = raise_pending_signals;
  return options;
}

// The times that a problem is made of, measured on a team like the one its module gets.
class Bench {
 public:
  Bench(std::shared_ptr<BoundProblem> bound, int threads)
      : bound_(std::move(bound)), threads_(team_size(threads)), trials_(list_trials(*bound_->problem)) {}

  int threads() const { return threads_; }

  const char* residence() const { return text_of(residence_of(footprint_bytes(*bound_->graph), threads_)); }

  py::list trials() const {
    py::list list;
    for (const Trial& t : trials_) {
      py::dict entry;
      entry["workload"] = t.workload;
      entry["candidate"] = t.candidate;
      entry["routine"] = t.routine;
      entry["unmeasurable"] = t.unmeasurable;
      entry["estimate_us"] = t.estimate_us;
      entry["weight"] = t.weight;
      entry["packed_bytes"] = t.packed_bytes;
      list.append(entry);
    }
    return list;
  }

  py::list measure(const std::vector<size_t>& indices, const std::string& residence, std::optional<double> seconds) {
    std::vector<const Trial*> chosen;
    for (const size_t i : indices) chosen.push_back(&trials_.at(i));
    const Residence where = parse_residence(residence);
    std::vector<MeasureResult> results;
    {
      const py::gil_scoped_release release;
      // Of the size that the module's calls will have, though other calls run now.
      const auto team = process_thread_pool().lease(threads_, Oversubscribe::Yes);
      results = measurer_.measure(*bound_->problem, chosen, where, standard_ops(), bound_->target, *team,
                                  race_options(seconds));
    }
    py::list out;
    for (const MeasureResult& r : results) out.append(py::make_tuple(r.time_us, r.rounds, r.failure));
    return out;
  }

  // Times of all trials; those not measured are estimates, made comparable by whoever calls.
  void price(const std::vector<double>& times_us, const std::vector<bool>& measured) {
    NEO_CHECK(times_us.size() == trials_.size() && measured.size() == trials_.size(), Model, "tune",
              "every trial must have a time. Got ", times_us.size(), ", expected ", trials_.size());
    SelectionProblem& problem = *bound_->problem;
    for (size_t i = 0; i < trials_.size(); ++i) {
      for (const auto& [variable, choice] : trials_[i].uses) {
        auto& c = problem.nodes[static_cast<size_t>(variable)].choices[static_cast<size_t>(choice)];
        c.candidate->cost.time_us = times_us[i];
        c.measured = measured[i];
      }
      if (trials_[i].conversion >= 0) {
        auto& c = problem.conversions[static_cast<size_t>(trials_[i].conversion)];
        c.time_us = times_us[i];
        c.measured = measured[i];
      }
    }
    price_problem(*bound_->graph, problem, standard_ops(), standard_routines(), bound_->target);
  }

 private:
  std::shared_ptr<BoundProblem> bound_;
  int threads_;
  std::vector<Trial> trials_;
  Measurer measurer_;
};

// Calls modules in turn on the same inputs; microseconds and rounds of each.
py::list race_modules(const std::vector<std::shared_ptr<Module>>& modules, const py::list& inputs, int rounds,
                      double seconds) {
  std::vector<HostValue> values;
  for (const py::handle x : inputs) values.push_back(to_host(x));
  std::vector<RaceTime> times;
  {
    const py::gil_scoped_release release;
    RaceOptions options = race_options(std::nullopt);
    options.rounds = rounds;
    options.enough_ns = static_cast<int64_t>(seconds * 1e9);
    const std::function<void()> poll = raise_pending_signals;
    const auto time_ns = [&](size_t i) {
      Module::CallOptions call;
      call.poll = &poll;
      const int64_t start = steady_now_ns();
      modules[i]->call(values, call);
      return steady_now_ns() - start;
    };
    times = race(modules.size(), time_ns, steady_now_ns, options);
    values.clear();
  }
  py::list out;
  for (const RaceTime& t : times) out.append(py::make_tuple(t.time_us, t.rounds));
  return out;
}

}  // namespace

void bind_tune(py::module_& m) {
  py::class_<Bench>(m, "Bench", "Measures the times that a selection problem is made of, and puts them there.")
      .def_property_readonly("threads", &Bench::threads)
      .def_property_readonly("residence", &Bench::residence)
      .def_property_readonly("trials", &Bench::trials)
      .def("measure", &Bench::measure, py::arg("indices"), py::arg("residence"), py::arg("seconds") = py::none(),
           "(microseconds or None, rounds, why there is no time) of trials of one workload")
      .def("price", &Bench::price, py::arg("times_us"), py::arg("measured"));

  m.def(
      "make_bench",
      [](std::shared_ptr<BoundProblem> problem, int threads) {
        return std::make_unique<Bench>(std::move(problem), threads);
      },
      py::arg("problem"), py::arg("threads"));
  m.def("race_modules", &race_modules, py::arg("modules"), py::arg("inputs"), py::arg("rounds"), py::arg("seconds"));
  m.def("machine", [] {
    const Topology& host = host_topology();
    py::dict entry;
    entry["cpus"] = host.online_cpus;
    entry["usable_cpus"] = host.usable_cpus();
    entry["l1d_bytes"] = host.l1d_bytes;
    entry["l2_bytes"] = host.l2_bytes;
    entry["l3_bytes"] = host.l3_bytes;
    return entry;
  });
}

}  // namespace neo::python
