#include "runtime/module.h"

#include "base/check.h"
#include "bindings/bindings.h"
#include "bindings/plan.h"
#include "lower/simulate.h"
#include "routines/cost/target.h"

namespace neo::python {

void raise_pending_signals() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

namespace {

// One call that can be cancelled from another thread.
class CancelToken {
 public:
  void arm(std::function<void()> cancel) {
    std::lock_guard lock(mutex_);
    cancel_ = std::move(cancel);
    if (cancelled_) cancel_();
  }
  void cancel() {
    std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (cancel_) cancel_();
  }
  bool is_cancelled() const {
    std::lock_guard lock(mutex_);
    return cancelled_;
  }

 private:
  mutable std::mutex mutex_;
  std::function<void()> cancel_;
  bool cancelled_ = false;
};

// The work of one execution; what its region did not know is taken at the hint.
int64_t at_values(const Dim& work, const Binding& binding) {
  return work
      .substitute([&](const Symbol& symbol) -> std::optional<Dim> {
        const auto it = binding.symbols.find(symbol.name);
        return it == binding.symbols.end() ? std::nullopt : std::optional<Dim>(it->second);
      })
      .hint();
}

struct Record {
  std::vector<TraceEvent> events;
  std::vector<TeamSpan> spans;
};

// The caller's memory for each output; None where there is none.
std::vector<Tensor> to_outputs(const py::list& arrays, const Plan& plan) {
  NEO_ASSERT(py::len(arrays) == plan.output_names.size(), "got ", py::len(arrays), " outputs");
  std::vector<Tensor> outputs;
  for (const py::handle array : arrays) outputs.push_back(array.is_none() ? Tensor() : to_tensor(array));
  return outputs;
}

py::list call(Module& module, const py::list& inputs, CancelToken* token, Record* record,
              const ValueObserver* observer = nullptr, const py::object& into = py::none(),
              std::optional<uint64_t> shuffle = {}) {
  std::vector<HostValue> values = to_hosts(inputs, module.plan());
  Module::CallOptions options;
  std::vector<Tensor> outputs;
  if (!into.is_none()) outputs = to_outputs(py::reinterpret_borrow<py::list>(into), module.plan());
  options.outputs = outputs;
  if (record) {
    options.trace = &record->events;
    options.spans = &record->spans;
  }
  options.observer = observer;
  options.shuffle = shuffle;
  const std::function<void()> poll = raise_pending_signals;
  options.poll = &poll;
  if (token) options.started = [token](std::function<void()> cancel) { token->arm(std::move(cancel)); };
  std::vector<HostValue> results;
  {
    const py::gil_scoped_release release;
    results = module.call(values, options);
  }
  py::list out;
  for (const HostValue& v : results) out.append(to_python(v));
  return out;
}

// A device as the target's figures have it, for what is printed without one.
DeviceInfo device_of(const Target& target) {
  DeviceInfo info;
  info.kind = target.device;
  info.name = target.name;
  info.language = target.figures.language;
  info.has_subgroups = target.figures.has_subgroups;
  info.has_block_reads = target.figures.has_block_reads;
  info.has_matrices = target.figures.has_matrices;
  info.has_dots = target.figures.has_dots;
  return info;
}

void add_kernels(const Item& item, int number, const Target& target, py::list& out) {
  const auto* call = std::get_if<StepItem>(&item.what);
  if (!call || call->step->kind() != Step::Kind::Device) return;
  const auto& step = static_cast<const DeviceStep&>(*call->step);
  const DeviceInfo device = device_of(target);
  for (int i = 0; i < step.kernel_count(); ++i) {
    const KernelSource kernel = step.kernel(i, device);
    py::dict entry = describe_item(item);
    entry["item"] = number;
    entry["kernel"] = kernel.name;
    entry["language"] = device.language;
    entry["text"] = kernel.program.text;
    out.append(entry);
  }
}

void list_steps(const Block& block, int depth, py::list& out) {
  for (const Region& region : block.regions) {
    for (const Item& item : region.items) {
      py::dict entry = describe_item(item);
      entry["depth"] = depth;
      out.append(entry);
      if (const auto* branch = std::get_if<IfItem>(&item.what)) {
        list_steps(*branch->then_block, depth + 1, out);
        list_steps(*branch->else_block, depth + 1, out);
      } else if (const auto* loop = std::get_if<LoopItem>(&item.what)) {
        list_steps(*loop->body, depth + 1, out);
      }
    }
  }
}

}  // namespace

void bind_module(py::module_& m) {
  py::class_<CancelToken, std::shared_ptr<CancelToken>>(m, "CancelToken")
      .def(py::init<>())
      .def("cancel", &CancelToken::cancel)
      .def_property_readonly("cancelled", &CancelToken::is_cancelled);

  py::class_<Module, std::shared_ptr<Module>>(m, "Module",
                                              "A plan ready to be called, from any number of threads at once.")
      .def_property_readonly("input_names", [](const Module& module) { return module.plan().input_names; })
      .def_property_readonly("output_names", [](const Module& module) { return module.plan().output_names; })
      .def_property_readonly("threads", [](const Module& module) { return module.configuration().all_threads(); })
      .def_property_readonly("executors",
                             [](const Module& module) {
                               const auto& [executors, threads] = module.configuration();
                               return py::make_tuple(executors, threads);
                             })
      .def_property_readonly("estimate_us", [](const Module& module) { return module.plan().estimate_us; })
      .def_property_readonly("kept_bytes", &Module::kept_bytes)
      .def_property_readonly("binding_count", &Module::binding_count)
      .def(
          "kernels",
          [](const Module& module, const Target& target) {
            py::list kernels;
            const auto places = places_of(module.plan());
            for (const Block* block : blocks_of(module.plan())) {
              for (const Region& region : block->regions) {
                for (const Item& item : region.items) add_kernels(item, places.at(&item).item, target, kernels);
              }
            }
            return kernels;
          },
          py::arg("machine"), "The kernels of every step on the device, as text for the target's.")
      .def("prepare_device", &Module::prepare_device, py::call_guard<py::gil_scoped_release>(),
           "Opens the device, compiles its kernels and sends it the constants: a ResourceError where there is none.")
      .def(
          "limit_calls",
          [](Module& module, std::optional<int64_t> memory, std::optional<double> seconds) {
            module.limit_calls({memory, seconds});
          },
          py::arg("memory"), py::arg("seconds"))
      .def_property_readonly(
          "quota", [](const Module& module) { return py::make_tuple(module.quota().bytes, module.quota().seconds); })
      .def_property_readonly("constant_bytes", [](const Module& module) { return constant_bytes(module.plan()); })
      .def_property_readonly(
          "call_bytes",
          [](const Module& module) { return call_bytes(module.plan(), module.configuration().executors); },
          "Intermediate values and scratch memory of one call, at the largest sizes of ranges that have an upper "
          "limit.")
      .def_property_readonly("steps",
                             [](const Module& module) {
                               py::list steps;
                               list_steps(*module.plan().root, 0, steps);
                               return steps;
                             })
      .def_property_readonly("plan", [](const Module& module) { return describe_plan(module.plan()); })
      .def("regions_at_hints", [](const Module& module) { return describe_regions_at_hints(module.plan()); })
      .def(
          "call",
          [](Module& module, const py::list& inputs, CancelToken* token, const py::object& outputs) {
            return call(module, inputs, token, nullptr, nullptr, outputs);
          },
          py::arg("inputs"), py::arg("token") = py::none(), py::arg("outputs") = py::none(),
          "outputs: for each a dense array that the result is written to, or None")
      .def(
          "trace",
          [](Module& module, const py::list& inputs) {
            Record record;
            py::list results = call(module, inputs, nullptr, &record);
            const auto places = places_of(module.plan());
            py::list events, spans, regions;
            std::map<std::pair<int, int>, const TraceEvent*> bound;
            for (const TraceEvent& e : record.events) {
              const ItemPlace& place = places.at(e.item);
              py::dict entry;
              entry["item"] = place.item;
              entry["node"] = e.item->node;
              entry["op"] = e.item->op;
              entry["routine"] = e.item->routine;
              entry["start_ns"] = e.start_ns;
              entry["end_ns"] = e.end_ns;
              entry["iteration"] = e.iteration;
              entry["executor"] = e.executor;
              entry["estimate_us"] = e.item->estimate_us;
              entry["flops"] = at_values(e.item->flops, *e.binding);
              entry["bytes"] = at_values(e.item->bytes, *e.binding);
              events.append(entry);
              bound[{place.block, place.region}] = &e;
            }
            for (const TeamSpan& s : record.spans) spans.append(py::make_tuple(s.member, s.start_ns, s.end_ns));
            const auto blocks = blocks_of(module.plan());
            for (const auto& [place, event] : bound) {
              const Block& block = *blocks[static_cast<size_t>(place.first)];
              regions.append(describe_region(block, place.first, place.second, *event->binding));
            }
            return py::make_tuple(results, events, spans, regions);
          },
          py::arg("inputs"),
          "(results, events in order of their end, (thread, start, end) where a thread works, sizes of regions)")
      .def(
          "observe",
          [](Module& module, const py::list& inputs) {
            struct Written {
              const Item* item;
              std::string value;
              HostValue copy;
            };
            std::vector<Written> written;
            const ValueObserver observer = [&](const Item& item, const std::string& value, HostValue copy) {
              written.push_back({&item, value, std::move(copy)});
            };
            py::list results = call(module, inputs, nullptr, nullptr, &observer);
            py::list values;
            for (const Written& w : written) {
              values.append(py::make_tuple(w.item->node, w.item->op, w.item->routine, w.value, to_python(w.copy)));
            }
            return py::make_tuple(results, values);
          },
          py::arg("inputs"),
          "(results, [(node, op, routine, name of the value, the value) of everything the steps of the outermost "
          "block wrote])")
      .def(
          "with_threads",
          [](const Module& module, int threads, bool oversubscribe) {
            return std::shared_ptr<Module>(module.with({1, threads}, oversubscribe));
          },
          py::arg("threads"), py::arg("oversubscribe") = true)
      .def(
          "with_executors",
          [](const Module& module, int executors, int threads, bool oversubscribe) {
            return std::shared_ptr<Module>(module.with({executors, threads}, oversubscribe));
          },
          py::arg("executors"), py::arg("threads"), py::arg("oversubscribe") = true)
      .def(
          "expected_makespan",
          [](const Module& module, int executors, int threads, int estimated_at) {
            const Makespan found = simulate(module.plan(), {executors, threads}, estimated_at);
            return py::make_tuple(found.time_us, found.bound_us);
          },
          py::arg("executors"), py::arg("threads"), py::arg("estimated_at"),
          "(microseconds of a call, what no schedule stays below) of executors, by the steps' estimates, which were "
          "made for a team of `estimated_at`")
      .def(
          "simulated_makespan",
          [](const Module& module, int executors, const std::vector<double>& times_us, bool first_in_first_out) {
            size_t items = 0;
            for (const Region& region : module.plan().root->regions) items += region.items.size();
            NEO_CHECK(times_us.size() == items && executors >= 1, Model, "executors",
                      "there must be a time for each step of the outermost block. Got ", times_us.size(), ", expected ",
                      items);
            const ReadyOrder order = first_in_first_out ? ReadyOrder::FirstInFirstOut : ReadyOrder::CriticalPathFirst;
            const Makespan found = simulate(module.plan(), executors, times_us, order);
            return py::make_tuple(found.time_us, found.bound_us);
          },
          py::arg("executors"), py::arg("times_us"), py::arg("first_in_first_out") = false,
          "(microseconds of a call, what no schedule stays below) by the times of the steps of depth 0")
      .def(
          "call_shuffled",
          [](Module& module, const py::list& inputs, uint64_t seed) {
            return call(module, inputs, nullptr, nullptr, nullptr, py::none(), seed);
          },
          py::arg("inputs"), py::arg("seed"),
          "Runs the items of every region one by one in another order that their dependencies allow, over memory whose "
          "former contents are gone.");
}

}  // namespace neo::python
