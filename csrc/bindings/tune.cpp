#include <pybind11/numpy.h>

#include <map>
#include <set>

#include "base/check.h"
#include "base/clock.h"
#include "base/topology.h"
#include "bindings/bindings.h"
#include "bindings/plan.h"
#include "bindings/problem.h"
#include "routines/cost/loop_nest.h"
#include "runtime/devices/devices.h"
#include "runtime/module.h"
#include "runtime/thread_pool.h"
#include "tune/measure.h"
#include "tune/search_space.h"

namespace neo::python {
namespace {

CacheLevel parse_cache_level(const std::string& text) {
  if (text == "private") return CacheLevel::Private;
  if (text == "shared") return CacheLevel::Shared;
  NEO_CHECK(text == "memory", Model, "tune", "a cache level must be known. Got '", text,
            "', expected private, shared or memory");
  return CacheLevel::Memory;
}

const char* text_of(CacheLevel cache_level) {
  return cache_level == CacheLevel::Private ? "private" : cache_level == CacheLevel::Shared ? "shared" : "memory";
}

// Threads of a module's team when no other call runs.
int team_size(int threads) {
  return std::min(threads, process_thread_pool().capacity());
}

BenchmarkOptions benchmark_options(std::optional<double> seconds) {
  BenchmarkOptions options;
  if (seconds) options.deadline_ns = steady_now_ns() + static_cast<int64_t>(*seconds * 1e9);
  options.poll = raise_pending_signals;
  return options;
}

// The device that times are measured on.
std::shared_ptr<Device> measuring_device(DeviceKind kind) {
  std::shared_ptr<Device> device = open_device(kind);
  NEO_CHECK(device->info().computes, Unsupported, "tune", "a device must compute to be measured. Got ", name(kind));
  return device;
}

// Nanoseconds of one execution of an item, call by call.
using ItemTimes = std::map<const Item*, std::vector<int64_t>>;

void add_call(const std::vector<TraceEvent>& events, ItemTimes& times) {
  std::map<const Item*, std::pair<int64_t, int64_t>> sums;
  for (const TraceEvent& e : events) {
    auto& [sum, count] = sums[e.item];
    sum += e.end_ns - e.start_ns;
    ++count;
  }
  for (const auto& [item, sum] : sums) times[item].push_back(sum.first / sum.second);
}

// Calls modules in turn, first once each without counting it, then for so many rounds, of which three are made though
// they take more than `enough_ns`.
std::vector<ItemTimes> time_items(const std::vector<std::shared_ptr<Module>>& modules,
                                  const std::vector<HostValue>& inputs, int rounds, int64_t enough_ns) {
  const std::function<void()> poll = raise_pending_signals;
  std::vector<ItemTimes> times(modules.size());
  const int64_t start = steady_now_ns();
  for (int round = -1; round < rounds; ++round) {
    if (round >= 3 && steady_now_ns() - start >= enough_ns) break;
    for (size_t i = 0; i < modules.size(); ++i) {
      std::vector<TraceEvent> events;
      Module::CallOptions call;
      call.poll = &poll;
      call.trace = &events;
      modules[i]->call(inputs, call);
      if (round >= 0) add_call(events, times[i]);
    }
  }
  return times;
}

// As a benchmark counts: others disturb the rest.
double lower_quartile_us(std::vector<int64_t> times) {
  const auto at = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 4);
  std::nth_element(times.begin(), at, times.end());
  return static_cast<double>(*at) * 1e-3;
}

// The times that a problem is made of, measured on a team like the one its module gets.
class Bench {
 public:
  Bench(std::shared_ptr<BoundProblem> bound, int threads)
      : bound_(std::move(bound)),
        threads_(team_size(threads)),
        target_(bound_->target),
        trials_(list_trials(*bound_->problem)),
        searches_(list_search_spaces(*bound_->problem, trials_)) {
    target_.cold_constants = bound_->problem->cold_constants;
    for (size_t i = 0; i < trials_.size(); ++i) index_[{trials_[i].workload, trials_[i].candidate_text}] = i;
  }

  int threads() const { return threads_; }

  const char* cache_level() const {
    return text_of(cache_level_of(footprint_bytes(*bound_->graph, *bound_->problem), threads_));
  }

  py::list trials() const {
    py::list list;
    for (size_t i = 0; i < trials_.size(); ++i) list.append(trial(i));
    return list;
  }

  py::dict trial(size_t index) const {
    const Trial& t = trials_.at(index);
    py::dict entry;
    entry["workload"] = t.workload;
    entry["candidate"] = t.candidate_text;
    entry["routine"] = t.routine;
    entry["unmeasurable"] = t.unmeasurable;
    entry["estimate_us"] = t.estimate_us;
    entry["weight"] = t.weight;
    entry["packed_bytes"] = t.packed_bytes;
    entry["device"] = std::string(name(device_of(t)));
    entry["made"] = origin_.count(index) > 0;
    entry["error"] = t.candidate ? t.candidate->cost.error : 0.0;
    entry["uses"] = t.uses;
    return entry;
  }

  py::list spaces() const {
    py::list list;
    for (const SearchSpace& s : searches_) {
      py::dict entry;
      entry["workload"] = s.workload;
      entry["routine"] = std::string(s.like.routine->name());
      entry["device"] = std::string(name(place_of(s.like)));
      entry["trials"] = s.list;
      list.append(entry);
    }
    return list;
  }

  py::list parameters(size_t index) {
    py::list list;
    for (const Space::Parameter& p : search(index).space.parameters()) list.append(py::make_tuple(p.name, p.values));
    return list;
  }

  int64_t space_size(size_t index) { return search(index).space.size(); }

  std::optional<int64_t> find(size_t index, const std::string& candidate) {
    const SearchSpace& s = search(index);
    const auto schedule = schedule_in(candidate, *s.like.routine);
    return schedule ? s.space.find(*schedule) : std::nullopt;
  }

  // A random neighbour of each point.
  std::vector<int64_t> mutate(size_t index, const std::vector<int64_t>& points, uint64_t seed) {
    const Space& space = search(index).space;
    std::mt19937_64 random(seed);
    std::vector<int64_t> next;
    for (const int64_t point : points) next.push_back(space.mutate(checked(space, point), random));
    return next;
  }

  py::array_t<float> features(size_t index, const std::vector<int64_t>& points, const std::string& cache_level) {
    const SearchSpace& s = search(index);
    Target target = target_;
    target.cold_constants = parse_cache_level(cache_level) == CacheLevel::Memory;
    const auto width = loop_feature_names().size();
    py::array_t<float> out({points.size(), width});
    for (size_t i = 0; i < points.size(); ++i) {
      const Schedule schedule = s.space.at(checked(s.space, points[i]));
      Candidate c = s.like.routine->candidate(*s.like.workload, target, standard_ops(), schedule);
      c.workload = s.like.workload;
      const std::vector<float> row = loop_features(s.like.routine->loops(c, target), c.cost.time_us, target);
      std::copy(row.begin(), row.end(), out.mutable_data(static_cast<py::ssize_t>(i), 0));
    }
    return out;
  }

  // The values of a space's parameters at points, in their order.
  py::array_t<float> values(size_t index, const std::vector<int64_t>& points) {
    const Space& space = search(index).space;
    const auto& parameters = space.parameters();
    py::array_t<float> out({points.size(), parameters.size()});
    for (size_t i = 0; i < points.size(); ++i) {
      const Schedule schedule = space.at(checked(space, points[i]));
      for (size_t k = 0; k < parameters.size(); ++k) {
        *out.mutable_data(static_cast<py::ssize_t>(i), static_cast<py::ssize_t>(k)) =
            static_cast<float>(value_of(schedule, parameters[k].name));
      }
    }
    return out;
  }

  // The trials of points, made where there are none.
  std::vector<size_t> extend(size_t index, const std::vector<int64_t>& points) {
    const SearchSpace& s = search(index);
    std::vector<size_t> indices;
    for (const int64_t point : points) {
      Trial trial = trial_of(s, s.space.at(checked(s.space, point)), target_, standard_ops());
      const auto [it, fresh] = index_.try_emplace({trial.workload, trial.candidate_text}, trials_.size());
      if (fresh) {
        trials_.push_back(std::move(trial));
        origin_[it->second] = index;
      }
      indices.push_back(it->second);
    }
    return indices;
  }

  // The trials that a choice for each variable means, one per use.
  std::vector<size_t> chosen(const std::vector<int>& choices) const {
    std::map<std::pair<int, int>, size_t> by_use;
    for (size_t i = 0; i < trials_.size(); ++i) {
      for (const auto& use : trials_[i].uses) by_use[use] = i;
    }
    std::vector<size_t> indices;
    for (size_t v = 0; v < choices.size(); ++v) {
      const auto it = by_use.find({static_cast<int>(v), choices[v]});
      if (it != by_use.end()) indices.push_back(it->second);
    }
    return indices;
  }

  // Makes trials choices of the problem where they are none yet.
  void offer(const std::vector<size_t>& indices) {
    for (const size_t i : indices) {
      Trial& trial = trials_.at(i);
      if (trial.uses.empty() && trial.candidate) offer_trial(*bound_->problem, searches_[origin_.at(i)], trial);
    }
  }

  py::list measure(const std::vector<size_t>& indices, const std::string& cache_level, std::optional<double> seconds,
                   int rounds) {
    std::vector<const Trial*> chosen;
    for (const size_t i : indices) chosen.push_back(&trials_.at(i));
    const CacheLevel where = parse_cache_level(cache_level);
    std::vector<MeasureResult> results;
    BenchmarkOptions options = benchmark_options(seconds);
    if (rounds > 0) options.rounds = rounds;
    {
      const py::gil_scoped_release release;
      const Target& target = bound_->target;
      if (!measurer_) measurer_.emplace(target.has_device() ? measuring_device(target.device) : nullptr);
      // The team has the size that the module's calls will have, though other calls run now.
      const auto team = process_thread_pool().lease(threads_, Oversubscribe::Yes);
      results = measurer_->measure(*bound_->problem, chosen, where, standard_ops(), bound_->target, *team, options);
    }
    py::list out;
    for (const MeasureResult& r : results) out.append(py::make_tuple(r.time_us, r.rounds, r.failure, r.spread_us));
    return out;
  }

  // By trial, what one execution takes while the whole module runs, in microseconds: the lower quartile over calls, in
  // the mean over the steps that are this trial.
  py::list profile(const std::vector<std::shared_ptr<Module>>& modules, const py::list& inputs, int rounds,
                   double seconds) const {
    std::vector<HostValue> values = to_hosts(inputs, modules.at(0)->plan());
    std::vector<ItemTimes> times;
    {
      const py::gil_scoped_release release;
      times = time_items(modules, values, rounds, static_cast<int64_t>(seconds * 1e9));
      values.clear();
    }
    py::list out;
    for (size_t i = 0; i < modules.size(); ++i) {
      const auto blocks = blocks_of(modules[i]->plan());
      struct Sum {
        double us = 0;
        int steps = 0;
        size_t calls = 0;
      };
      std::map<size_t, Sum> sums;
      for (const auto& [item, place] : places_of(modules[i]->plan())) {
        const auto found = times[i].find(item);
        const auto name = trial_name(*item, *blocks[static_cast<size_t>(place.block)]);
        const auto trial = name ? index_.find(*name) : index_.end();
        if (found == times[i].end() || trial == index_.end()) continue;
        Sum& sum = sums[trial->second];
        sum.us += lower_quartile_us(found->second);
        ++sum.steps;
        sum.calls = found->second.size();
      }
      py::dict means;
      for (const auto& [trial, sum] : sums) means[py::int_(trial)] = py::make_tuple(sum.us / sum.steps, sum.calls);
      out.append(means);
    }
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
    // Measured times of two machines compare; what is left of estimates was scaled by them.
    if (is_measured(measured, true) && is_measured(measured, false)) bound_->target.cpu_penalty_us = 0;
    price_problem(problem, bound_->target);
  }

 private:
  SearchSpace& search(size_t index) {
    SearchSpace& s = searches_.at(index);
    if (is_made_.insert(index).second) s.space = s.like.routine->space(*s.like.workload, target_);
    return s;
  }

  // The device that runs a trial; copies run on the device's side.
  DeviceKind device_of(const Trial& trial) const {
    if (trial.candidate) return place_of(*trial.candidate);
    const auto& c = bound_->problem->conversions[static_cast<size_t>(trial.conversion)];
    return c.from.device == DeviceKind::Cpu ? c.to.device : c.from.device;
  }

  bool is_measured(const std::vector<bool>& measured, bool on_cpu) const {
    for (size_t i = 0; i < trials_.size(); ++i) {
      if (measured[i] && trials_[i].candidate && (device_of(trials_[i]) == DeviceKind::Cpu) == on_cpu) return true;
    }
    return false;
  }

  static int64_t checked(const Space& space, int64_t point) {
    NEO_CHECK(point >= 0 && point < space.size(), Model, "tune", "a point must be of its space. Got ", point,
              ", expected 0 ... ", space.size() - 1);
    return point;
  }

  std::shared_ptr<BoundProblem> bound_;
  int threads_;
  Target target_;
  std::vector<Trial> trials_;
  std::vector<SearchSpace> searches_;
  std::set<size_t> is_made_;
  std::map<std::pair<std::string, std::string>, size_t> index_;
  std::map<size_t, size_t> origin_;  // of trials that were made, their space
  std::optional<Measurer> measurer_;
};

// Calls a module and returns the nanoseconds that it took.
int64_t call_time_ns(Module& module, const std::vector<HostValue>& values, const std::function<void()>& poll) {
  Module::CallOptions call;
  call.poll = &poll;
  const int64_t start = steady_now_ns();
  module.call(values, call);
  return steady_now_ns() - start;
}

// Calls modules in turn on the same inputs; microseconds and rounds of each.
py::list benchmark_modules(const std::vector<std::shared_ptr<Module>>& modules, const py::list& inputs, int rounds,
                           double seconds) {
  std::vector<HostValue> values = to_hosts(inputs, modules.at(0)->plan());
  std::vector<BenchmarkTime> times;
  {
    const py::gil_scoped_release release;
    BenchmarkOptions options = benchmark_options(std::nullopt);
    options.rounds = rounds;
    options.enough_ns = static_cast<int64_t>(seconds * 1e9);
    const std::function<void()> poll = raise_pending_signals;
    const auto time_ns = [&](size_t i) { return call_time_ns(*modules[i], values, poll); };
    times = benchmark(modules.size(), time_ns, steady_now_ns, options);
    values.clear();
  }
  py::list out;
  for (const BenchmarkTime& t : times) out.append(py::make_tuple(t.time_us, t.rounds));
  return out;
}

// Calls two modules alternately on the same inputs, which of them first changes from pair to pair; for each pair of
// calls the second module's time over the first one's. After nine pairs and `seconds` no more are begun.
std::vector<double> paired_ratios(Module& first, Module& second, const py::list& inputs, int pairs, double seconds) {
  constexpr int kFewPairs = 9;
  std::vector<HostValue> values = to_hosts(inputs, first.plan());
  std::vector<double> ratios;
  const py::gil_scoped_release release;
  const std::function<void()> poll = raise_pending_signals;
  const int64_t start = steady_now_ns();
  for (int i = 0; i < pairs; ++i) {
    if (i >= kFewPairs && static_cast<double>(steady_now_ns() - start) > seconds * 1e9) break;
    const bool swapped = i % 2 != 0;
    const auto earlier = static_cast<double>(call_time_ns(swapped ? second : first, values, poll));
    const auto later = static_cast<double>(call_time_ns(swapped ? first : second, values, poll));
    ratios.push_back(swapped ? earlier / later : later / earlier);
  }
  values.clear();
  return ratios;
}

}  // namespace

void bind_tune(py::module_& m) {
  py::class_<Bench>(m, "Bench", "Measures the times that a selection problem is made of, and puts them there.")
      .def_property_readonly("threads", &Bench::threads)
      .def_property_readonly("cache_level", &Bench::cache_level)
      .def_property_readonly("trials", &Bench::trials)
      .def("measure", &Bench::measure, py::arg("indices"), py::arg("cache_level"), py::arg("seconds") = py::none(),
           py::arg("rounds") = 0,
           "(microseconds or None, rounds, why there is no time, spread in microseconds) of trials of one workload; "
           "rounds: at most, 0: as many as a time that is kept takes")
      .def("trial", &Bench::trial, py::arg("index"))
      .def_property_readonly("spaces", &Bench::spaces)
      .def("parameters", &Bench::parameters, py::arg("space"), "the names of a space's parameters, with their values")
      .def("space_size", &Bench::space_size, py::arg("space"))
      .def("find", &Bench::find, py::arg("space"), py::arg("candidate"), "the point that a candidate's text means")
      .def("mutate", &Bench::mutate, py::arg("space"), py::arg("points"), py::arg("seed"))
      .def("features", &Bench::features, py::arg("space"), py::arg("points"), py::arg("cache_level"))
      .def("values", &Bench::values, py::arg("space"), py::arg("points"), "of the space's parameters")
      .def("extend", &Bench::extend, py::arg("space"), py::arg("points"), "the trials of points")
      .def("chosen", &Bench::chosen, py::arg("choices"), "the trials that choices mean, one per use")
      .def("offer", &Bench::offer, py::arg("indices"), "makes trials choices of the problem")
      .def("profile", &Bench::profile, py::arg("modules"), py::arg("inputs"), py::arg("rounds"), py::arg("seconds"),
           "{trial: (microseconds of one execution in the running module, calls)} of each module, called in turn")
      .def("price", &Bench::price, py::arg("times_us"), py::arg("measured"));

  m.def(
      "make_bench",
      [](std::shared_ptr<BoundProblem> problem, int threads) {
        return std::make_unique<Bench>(std::move(problem), threads);
      },
      py::arg("problem"), py::arg("threads"));
  m.def(
      "device_fingerprint",
      [](const std::string& target) {
        const py::gil_scoped_release release;
        const DeviceInfo info = measuring_device(Target::parse(target, 1).device)->info();
        return str(name(info.kind), " ", info.name, ", ", info.platform, ", driver ", info.driver, ", ",
                   info.compute_units, " units");
      },
      py::arg("target"), "Names the device of a target: times measured on it hold where this agrees.");
  m.def("loop_feature_names", [] {
    std::vector<std::string> names;
    for (const std::string_view name : loop_feature_names()) names.emplace_back(name);
    return names;
  });
  m.def("benchmark_modules", &benchmark_modules, py::arg("modules"), py::arg("inputs"), py::arg("rounds"),
        py::arg("seconds"));
  m.def("paired_ratios", &paired_ratios, py::arg("first"), py::arg("second"), py::arg("inputs"), py::arg("pairs"),
        py::arg("seconds"), "times of the second module over the first one's, for pairs of calls");
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
