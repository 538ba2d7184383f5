#include "tune/measure.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <set>

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/float_mode.h"
#include "base/flush.h"
#include "base/topology.h"
#include "tune/timed_device_candidate.h"

namespace neo {
namespace {

constexpr int64_t kLine = 64;
// Larger inputs are not made for a measurement.
constexpr int64_t kMaxBytes = int64_t{2} << 30;
// Bytes to evict at most from a last-level cache that many cores share.
constexpr int64_t kMaxEvicted = int64_t{192} << 20;
// The last-level cache belongs to all that runs on the machine: this part of it still holds a model's constants when
// its next call comes.
constexpr int64_t kCountedOn = 4;
constexpr int64_t kNever = int64_t{1} << 60;
constexpr const char* kTimeIsUp = "the time was up";

Dims dims_at_hints(const Type& type) {
  Dims dims;
  for (const Dim& d : type.shape.dims()) dims.push_back(d.hint());
  return dims;
}

bool is_measurable(const Value& value) {
  return value.type.is_tensor() && value.shape().has_rank() && value.dtype() != DType::String;
}

int64_t bytes_at_hints(const Value& value) {
  return is_measurable(value) ? element_count(dims_at_hints(value.type)) * item_bytes(value.dtype()) : 0;
}

std::optional<std::string> unmeasurable(const Candidate& candidate) {
  if (candidate.kind == Candidate::Kind::View || candidate.kind == Candidate::Kind::ConcatInPlace)
    return "it has no step of its own";
  const Workload& workload = *candidate.workload;
  if (workload.root().op == "neo.Dims") return "its elements are sizes";
  for (const auto* values : {&workload.inputs, &workload.outputs}) {
    for (const Value* v : *values) {
      if (!is_measurable(*v)) return "an operand is not a tensor of numbers and known rank";
    }
  }
  for (const Node* node : workload.nodes) {
    if (!node->symbols.empty()) return "its sizes are known only after it ran";
    const bool recurrent = node->op == "LSTM" || node->op == "GRU" || node->op == "RNN";
    const Value* lengths = recurrent ? node->input(4) : nullptr;
    if (lengths && !lengths->is_constant()) return "its work depends on values";
  }
  return std::nullopt;
}

void add_constants(const Graph& graph, std::set<const void*>& seen, int64_t& constants, int64_t& live) {
  for (const auto& node : graph.nodes()) {
    int64_t here = 0;
    for (const Value* v : node->inputs) {
      if (!v) continue;
      if (!v->is_constant()) {
        here += bytes_at_hints(*v);
      } else if (v->constant && seen.insert(v).second) {
        constants += bytes_at_hints(*v);
      }
    }
    for (const Value* v : node->outputs) here += v ? bytes_at_hints(*v) : 0;
    live = std::max(live, here);
    for (const auto& [name, body] : node->bodies) add_constants(*body, seen, constants, live);
  }
}

// Values that no kernel stumbles over: floats in [-1, 1), indices and flags 0.
Tensor synthetic(const Type& type) {
  Tensor tensor(type.dtype, dims_at_hints(type));
  uint32_t state = 12345;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  };
  if (type.dtype == DType::Float32) {
    std::generate_n(tensor.as<float>(), tensor.size(), next);
  } else if (type.dtype == DType::Float64) {
    std::generate_n(tensor.as<double>(), tensor.size(), next);
  } else {
    std::memset(tensor.data(), 0, static_cast<size_t>(tensor.bytes()));
  }
  return tensor;
}

Arg describe(const Value& value, const Schema& schema) {
  Arg arg;
  arg.dtype = value.dtype();
  arg.layout = schema.layout;
  arg.dims = dims_at_hints(value.type);
  arg.strides = dense_strides(schema.layout.physical_dims(arg.dims));
  return arg;
}

int64_t aligned_bytes(const Arg& arg) {
  return align_bytes(element_count(arg.layout.physical_dims(arg.dims)) * item_bytes(arg.dtype));
}

void check_size(const SelectionProblem& problem, const Trial& trial) {
  int64_t bytes = trial.packed_bytes;
  const auto count = [&](const Value* v) { bytes += v->is_constant() ? 0 : bytes_at_hints(*v); };
  if (trial.conversion >= 0) {
    count(problem.conversions[static_cast<size_t>(trial.conversion)].value);
  } else {
    for (const Value* v : trial.candidate->workload->inputs) count(v);
    for (const Value* v : trial.candidate->workload->outputs) count(v);
  }
  NEO_CHECK(bytes <= kMaxBytes, Memory, "tune", "a measurement must fit into memory. Got ", bytes,
            " bytes, expected at most ", kMaxBytes);
}

}  // namespace

// The caches as a model's other steps leave them.
class Measurer::Caches {
 public:
  void set(CacheLevel cache_level, Team& team) {
    team_ = &team;
    const Topology& host = host_topology();
    is_memory_ = cache_level == CacheLevel::Memory;
    private_bytes_ = cache_level == CacheLevel::Private ? 0 : 2 * host.l2_bytes * team.size();
    bytes_ = is_memory_ ? std::max(private_bytes_, std::min(host.l3_bytes * 3 / 2, kMaxEvicted)) : private_bytes_;
    if (bytes_ <= buffer_.capacity_bytes()) return;
    buffer_.reserve(bytes_);
    std::memset(buffer_.data(), 1, static_cast<size_t>(bytes_));  // pages of its own, not the one of zeros
  }

  // The same for constants of which all places are known: only those leave the last-level cache.
  void evict(std::span<const std::span<const std::byte>> constants) {
    bool all = true;
    for (const auto& bytes : constants) all = all && is_memory_ && flush(bytes);
    read(all ? private_bytes_ : bytes_);
  }

  // The same where nobody knows the places of the constants.
  void evict_all() { read(bytes_); }

  // Constants for all candidates of a benchmark, none of which finds there what another left.
  Tensor synthetic(int64_t bytes) {
    if (!constants_.defined() || constants_.bytes() < bytes) {
      constants_ = Tensor::in_new_pages(DType::Float32, {(bytes + 3) / 4});
      std::fill_n(constants_.as<float>(), constants_.size(), 0x1.8p-6f);
    }
    return constants_;
  }

  // Each member reads its share, which is more than its private caches hold.
  void read(int64_t bytes) {
    team_->parallel_for(bytes / kChunk, [&](int64_t begin, int64_t end, int) {
      uint64_t sum = 0;
      for (int64_t i = begin * kChunk; i < end * kChunk; i += kLine) {
        uint64_t word = 0;
        std::memcpy(&word, buffer_.data() + i, sizeof(word));
        sum += word;
      }
      sink_.fetch_add(sum, std::memory_order_relaxed);
    });
  }

  // As though a step on this team had just written it, which split the work in another way: the members' pieces lie
  // between each other, so that whoever reads finds its share of the lines changed in the others' private caches.
  void write(std::byte* data, int64_t bytes) {
    const int64_t pieces = (bytes + kPiece - 1) / kPiece;
    const int64_t writers = std::min<int64_t>(team_->size(), pieces);
    team_->parallel_for(writers, [&](int64_t begin, int64_t end, int) {
      for (int64_t writer = begin; writer < end; ++writer) {
        for (int64_t piece = writer; piece < pieces; piece += writers) {
          for (int64_t i = piece * kPiece; i < std::min(bytes, (piece + 1) * kPiece); i += kLine) {
            volatile std::byte* p = data + i;
            *p = *p;
          }
        }
      }
    });
  }

 private:
  // Each member flushes its share; false where this machine offers no way.
  bool flush(std::span<const std::byte> bytes) {
    std::atomic<bool> all{true};
    const auto size = static_cast<int64_t>(bytes.size());
    team_->parallel_for((size + kChunk - 1) / kChunk, [&](int64_t begin, int64_t end, int) {
      const int64_t from = begin * kChunk, to = std::min(size, end * kChunk);
      if (from < to && !flush_lines(bytes.data() + from, static_cast<size_t>(to - from))) all = false;
    });
    return all;
  }

  static constexpr int64_t kChunk = 16 << 10;
  static constexpr int64_t kPiece = 4 << 10;
  Team* team_ = nullptr;
  Arena buffer_;
  Tensor constants_;
  bool is_memory_ = false;
  int64_t private_bytes_ = 0;  // that evict the cores' own caches
  int64_t bytes_ = 0;          // that evict as the cache level asks
  std::atomic<uint64_t> sink_{0};
};

namespace {

// The memory that all trials of a workload share, and inputs by schema.
struct Stage {
  std::unique_ptr<DeviceStage> device;  // null: no trial is of one
  std::map<std::pair<const Value*, std::string>, Tensor> inputs;
  Arena outputs;
  Arena scratch;
  PackedStore packed;  // what every candidate begins with
};

class TimedCandidate {
 public:
  TimedCandidate(const SelectionProblem& problem, const Trial& trial, const OpRegistry& ops, const Target& target,
                 Stage& stage)
      : stage_(stage) {
    if (trial.conversion >= 0) {
      convert(problem.conversions[static_cast<size_t>(trial.conversion)], target);
    } else {
      const Candidate& c = *trial.candidate;
      for (size_t i = 0; i < c.inputs.size(); ++i) {
        if (c.inputs[i]) add_input(*c.workload->inputs[i], *c.inputs[i]);
      }
      for (size_t i = 0; i < c.outputs.size(); ++i) add_output(*c.workload->outputs[i], c.outputs[i]);
      PackedStore packed = stage_.packed;
      step_ = c.routine->make(c, target, ops, packed);
      for (const Tensor& blob : packed.blobs()) {
        constants_.emplace_back(static_cast<const std::byte*>(blob.data()), static_cast<size_t>(blob.bytes()));
      }
    }
    if (device_) return;
    if (step_->kind() == Step::Kind::Device) {
      run_on_device(false, false);
      return;
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (is_constant_[i]) constants_.emplace_back(pointers_[i], static_cast<size_t>(aligned_bytes(args_[i])));
    }
    if (step_->kind() == Step::Kind::Kernel) {
      prepared_ = static_cast<const KernelStep&>(*step_).prepare(args_);
      stage_.scratch.reserve(prepared_.scratch_bytes);
    }
    stage_.outputs.reserve(output_bytes_);
  }

  // After every candidate was made: memory no longer moves.
  void place() {
    if (device_) return device_->place();
    std::byte* at = stage_.outputs.data();
    for (size_t i = inputs_.size(); i < args_.size(); ++i) {
      pointers_.push_back(at);
      if (step_->kind() == Step::Kind::Host)
        host_outputs_.emplace_back(Tensor(args_[i].dtype, args_[i].dims, at, nullptr));
      at += aligned_bytes(args_[i]);
    }
    if (step_->kind() == Step::Kind::Host) host_inputs_.assign(inputs_.begin(), inputs_.end());
  }

  int64_t time_ns(Measurer::Caches& caches, Team& team) {
    if (device_) {
      if (stage_.device->device().info().is_host_unified) caches.evict_all();
      device_->warm();
      return device_->time_ns();
    }
    caches.evict(constants_);
    caches.write(stage_.scratch.data(), prepared_.scratch_bytes);
    caches.write(stage_.outputs.data(), output_bytes_);
    for (size_t i = inputs_.size(); i-- > 0;) {
      if (!is_constant_[i]) caches.write(pointers_[i], aligned_bytes(args_[i]));
    }
    if (step_->kind() == Step::Kind::Host) {
      std::vector<HostValue> outputs = host_outputs_;
      const int64_t start = steady_now_ns();
      static_cast<const HostStep&>(*step_).run(host_inputs_, outputs, team);
      return steady_now_ns() - start;
    }
    const int64_t start = steady_now_ns();
    static_cast<const KernelStep&>(*step_).run(prepared_.bytes.data(), pointers_.data(), stage_.scratch.data(), team);
    return steady_now_ns() - start;
  }

 private:
  // In one step, or by way of the schema between the two.
  void convert(const SelectionProblem::Conversion& c, const Target& target) {
    add_input(*c.value, c.from);
    add_output(*c.value, c.to);
    const std::optional<Schema> between = intermediate_schema(c.from, c.to);
    if (c.from.device == c.to.device) {
      step_ = make_adapt(c.value->type, c.from, c.to, target);
    } else if (!between) {
      run_on_device(c.from.device == DeviceKind::Cpu, c.to.device == DeviceKind::Cpu);
    } else if (c.from.device == DeviceKind::Cpu) {
      step_ = make_adapt(c.value->type, *between, c.to, target);
      run_on_device(true, false);
    } else {
      step_ = make_adapt(c.value->type, c.from, *between, target);
      run_on_device(false, true);
    }
  }

  void run_on_device(bool copies_in, bool copies_out) {
    NEO_CHECK(stage_.device, Resource, "tune", "there must be a device to measure on. Got none");
    device_.emplace(*stage_.device, static_cast<const DeviceStep*>(step_.get()), inputs_, is_constant_, args_,
                    copies_in, copies_out);
  }

  void add_input(const Value& value, const Schema& schema) {
    Tensor& tensor = stage_.inputs[{&value, schema.to_string()}];
    if (!tensor.defined()) {
      // A sweep's workers get constants without their contents.
      tensor = value.constant && !value.constant->is_absent() ? *value.constant : synthetic(value.type);
      NEO_CHECK(tensor.size() > 0, Unsupported, "tune", "an operand must have elements. Got none");
      const Schema plain = plain_schema(value.type);
      if (schema != plain) tensor = adapt_constant(tensor, plain, schema);
    }
    inputs_.push_back(tensor);
    is_constant_.push_back(value.is_constant());
    args_.push_back(describe(value, schema));
    pointers_.push_back(static_cast<std::byte*>(tensor.data()));
  }

  void add_output(const Value& value, const Schema& schema) {
    args_.push_back(describe(value, schema));
    output_bytes_ += aligned_bytes(args_.back());
  }

  Stage& stage_;
  std::unique_ptr<Step> step_;
  std::optional<TimedDeviceCandidate> device_;  // where it runs there
  std::vector<Tensor> inputs_;
  std::vector<bool> is_constant_;
  std::vector<std::span<const std::byte>> constants_;  // what the step reads of them
  std::vector<Arg> args_;
  std::vector<std::byte*> pointers_;
  std::vector<HostValue> host_inputs_;
  std::vector<HostValue> host_outputs_;
  Prepared prepared_;
  int64_t output_bytes_ = 0;
};

std::string with_schemas(const std::string& candidate, std::span<const std::optional<Schema>> from,
                         std::span<const Schema> to) {
  std::string inputs, outputs;
  for (const auto& s : from) inputs += str(inputs.empty() ? "" : ", ", s ? s->to_string() : "-");
  for (const auto& s : to) outputs += str(outputs.empty() ? "" : ", ", s.to_string());
  return str(candidate, " ", inputs, " -> ", outputs);
}

std::string conversion_workload(const Type& type) {
  return str("neo.Adapt ", sizes_text(type));
}

}  // namespace

std::string trial_text(const Candidate& candidate) {
  return with_schemas(candidate.text(), candidate.inputs, candidate.outputs);
}

std::optional<std::pair<std::string, std::string>> trial_name(const Item& item, const Block& block) {
  const auto* step = std::get_if<StepItem>(&item.what);
  if (!step || !step->spec) return std::nullopt;
  const StepSpec& spec = *step->spec;
  if (!spec.routine.empty()) {
    return std::pair{spec.workload, with_schemas(item.routine, spec.inputs, spec.outputs)};
  }
  const Type& type = block.slots[static_cast<size_t>(step->inputs.front())].type;
  if (!type.is_tensor() || !type.shape.has_rank()) return std::nullopt;
  return std::pair{conversion_workload(type), item.routine};
}

std::vector<Trial> list_trials(const SelectionProblem& problem) {
  std::vector<Trial> trials;
  std::map<const Workload*, std::string> texts;
  std::map<std::pair<std::string, std::string>, size_t> index;
  for (size_t v = 0; v < problem.nodes.size(); ++v) {
    const auto& variable = problem.nodes[v];
    for (size_t i = 0; i < variable.choices.size(); ++i) {
      const auto& choice = variable.choices[i];
      if (!choice.candidate) continue;
      const Candidate& c = *choice.candidate;
      auto [text, unknown] = texts.try_emplace(c.workload.get());
      if (unknown) text->second = c.workload->text();
      const auto [it, fresh] = index.try_emplace({text->second, trial_text(c)}, trials.size());
      if (fresh) {
        Trial trial;
        trial.workload = it->first.first;
        trial.candidate_text = it->first.second;
        trial.candidate = c;
        trial.routine = c.routine->name();
        trial.unmeasurable = unmeasurable(c);
        trial.estimate_us = choice.estimate_us;
        trial.packed_bytes = c.cost.packed_bytes;
        trials.push_back(std::move(trial));
      }
      Trial& trial = trials[it->second];
      trial.weight += variable.trips;
      trial.uses.emplace_back(static_cast<int>(v), static_cast<int>(i));
    }
  }
  for (size_t i = 0; i < problem.conversions.size(); ++i) {
    const auto& c = problem.conversions[i];
    if (c.estimate_us == kForbidden) continue;
    Trial trial;
    trial.workload = conversion_workload(c.value->type);
    trial.candidate_text = adapt_name(c.from, c.to);
    trial.routine = trial.candidate_text.substr(0, trial.candidate_text.find('/'));
    if (!is_measurable(*c.value)) trial.unmeasurable = "an operand is not a tensor of numbers and known rank";
    trial.estimate_us = c.estimate_us;
    trial.weight = 1;
    trial.conversion = static_cast<int>(i);
    trials.push_back(std::move(trial));
  }
  return trials;
}

int64_t footprint_bytes(const Graph& graph, const SelectionProblem& problem) {
  std::set<const void*> seen;
  int64_t constants = 0;
  int64_t live = 0;
  add_constants(graph, seen, constants, live);
  int64_t packed = 0;
  for (const auto& variable : problem.nodes) {
    if (variable.expansion >= 0) continue;
    const SelectionProblem::Choice* best = nullptr;
    for (const auto& choice : variable.choices) {
      if (choice.candidate && (!best || choice.estimate_us < best->estimate_us)) best = &choice;
    }
    if (best) packed += best->candidate->cost.packed_bytes;
  }
  return std::max(constants, packed) + live;
}

CacheLevel cache_level_of(int64_t footprint_bytes, int threads) {
  const Topology& host = host_topology();
  if (footprint_bytes <= host.l2_bytes * threads) return CacheLevel::Private;
  return footprint_bytes <= host.l3_bytes / kCountedOn ? CacheLevel::Shared : CacheLevel::Memory;
}

Measurer::Measurer(std::shared_ptr<Device> device) : caches_(std::make_unique<Caches>()), device_(std::move(device)) {}

Measurer::~Measurer() = default;

std::vector<MeasureResult> Measurer::measure(const SelectionProblem& problem, std::span<const Trial* const> trials,
                                             CacheLevel cache_level, const OpRegistry& ops, const Target& target,
                                             Team& team, const BenchmarkOptions& options) {
  const FloatModeScope mode(Denormals::Flush);  // as in a call
  std::vector<MeasureResult> results(trials.size());
  Stage stage;
  if (device_) stage.device = std::make_unique<DeviceStage>(device_);
  int64_t packed = 0;
  for (const Trial* trial : trials) packed = std::max(packed, trial->packed_bytes);
  if (packed <= kMaxBytes) stage.packed = PackedStore::synthetic(caches_->synthetic(packed));
  std::vector<std::unique_ptr<TimedCandidate>> candidates;
  std::vector<size_t> entered;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (options.poll) options.poll();
    if (trials[i]->unmeasurable) {
      results[i].failure = *trials[i]->unmeasurable;
      continue;
    }
    // Making one may take a driver's compiler.
    if (options.deadline_ns != 0 && steady_now_ns() >= options.deadline_ns) {
      results[i].failure = kTimeIsUp;
      continue;
    }
    try {
      check_size(problem, *trials[i]);
      candidates.push_back(std::make_unique<TimedCandidate>(problem, *trials[i], ops, target, stage));
      entered.push_back(i);
    } catch (const Error& error) {
      results[i].failure = error.what();
    }
  }
  if (stage.device) stage.device->place();
  for (size_t k = 0; k < candidates.size(); ++k) {
    if (options.poll) options.poll();
    try {
      candidates[k]->place();
    } catch (const Error& error) {
      results[entered[k]].failure = error.what();
    }
  }
  caches_->set(cache_level, team);
  // A host step may throw on synthetic values: that counts as never being done.
  const auto time_ns = [&](size_t k) {
    if (!results[entered[k]].failure.empty()) return kNever;
    try {
      return candidates[k]->time_ns(*caches_, team);
    } catch (const Error& error) {
      results[entered[k]].failure = error.what();
      return kNever;
    }
  };
  const auto times = benchmark(candidates.size(), time_ns, steady_now_ns, options);
  for (size_t k = 0; k < times.size(); ++k) {
    MeasureResult& result = results[entered[k]];
    if (!result.failure.empty()) continue;
    result.rounds = times[k].rounds;
    if (result.rounds > 0) {
      result.time_us = times[k].time_us;
      result.spread_us = times[k].spread_us;
    } else {
      result.failure = kTimeIsUp;
    }
  }
  return results;
}

}  // namespace neo
