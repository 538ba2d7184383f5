#include "capi/modules.h"

#include <algorithm>
#include <functional>

#include "base/topology.h"
#include "capi/errors.h"
#include "saved/saved.h"

namespace neo::capi {

Described::Described(const std::string& name, const Type& type) : name_(name), type_(type.to_string()) {
  shown_.name = name_.c_str();
  shown_.type = type_.c_str();
  shown_.rank = -1;
  const Type* innermost = &type;
  while (!innermost->is_tensor()) {
    if (innermost->kind == Type::Kind::Map) shown_.key = static_cast<neo_dtype>(innermost->key());
    innermost = innermost->element.get();
  }
  shown_.dtype = static_cast<neo_dtype>(innermost->dtype);
  switch (type.kind) {
    case Type::Kind::Tensor:
      shown_.kind = NEO_TENSOR;
      break;
    case Type::Kind::Sequence:
      shown_.kind = NEO_SEQUENCE;
      break;
    case Type::Kind::Optional:
      shown_.kind = NEO_OPTIONAL;
      break;
    case Type::Kind::Map:
      shown_.kind = NEO_MAP;
      break;
  }
  if (!type.is_tensor() || !type.shape.has_rank()) return;
  shown_.rank = type.shape.rank();
  for (const Dim& dim : type.shape.dims()) {
    dims_.push_back(dim.is_constant() ? dim.value() : -1);
    texts_.push_back(dim.is_constant() ? "" : dim.to_string());
  }
  hints_ = type.shape.hint_dims();
  for (size_t axis = 0; axis < texts_.size(); ++axis)
    symbols_.push_back(dims_[axis] < 0 ? texts_[axis].c_str() : nullptr);
  shown_.dims = dims_.data();
  shown_.hints = hints_.data();
  shown_.symbols = symbols_.data();
}

Signature::Signature(const Plan& plan) {
  const Block& root = *plan.root;
  const auto describe = [&](const std::vector<std::string>& names, const std::vector<int>& slots, auto& out) {
    for (size_t i = 0; i < names.size(); ++i)
      out.push_back(std::make_unique<const Described>(names[i], root.slots[static_cast<size_t>(slots[i])].type));
  };
  describe(plan.input_names, root.arguments, inputs);
  describe(plan.output_names, root.results, outputs);
}

// Lives until the process ends, so that threads may call while it does.
ModuleHandles& modules() {
  static auto* const all = new ModuleHandles();
  return *all;
}

namespace {

constexpr const char* kModule = "a module";

int threads_of(int threads, const char* where) {
  NEO_CHECK(threads >= 0, Model, where, "threads must be positive, or 0 for the default. Got ", threads);
  return threads == 0 ? default_threads() : threads;
}

// The memory and time that loading a file of `bytes`, and then each call, may take.
Quota quota_of(const neo_limits* limits, size_t bytes) {
  Quota quota;
  if (limits == nullptr) return quota;
  NEO_CHECK(limits->bytes == 0 || bytes <= limits->bytes, Model, "load", "a file must be at most ", limits->bytes,
            " bytes. Got ", bytes);
  NEO_CHECK(limits->seconds >= 0, Model, "load", "seconds must not be negative. Got ", limits->seconds);
  if (limits->memory > 0) quota.bytes = static_cast<int64_t>(std::min<uint64_t>(limits->memory, INT64_MAX));
  if (limits->seconds > 0) quota.seconds = limits->seconds;
  return quota;
}

// Both sides of a module: inputs or outputs.
using Side = std::vector<std::unique_ptr<const Described>> Signature::*;

int count(const neo_module* module, size_t* count, Side side, const char* where) {
  return guarded([&] {
    check_pointer(count, where, "count");
    *count = (*modules().get(module, where, kModule)->signature.*side).size();
  });
}

int describe(const neo_module* module, size_t index, const neo_info** info, Side side, const char* where) {
  return guarded([&] {
    check_pointer(info, where, "info");
    const auto loaded = modules().get(module, where, kModule);
    const auto& all = *loaded->signature.*side;
    NEO_CHECK(index < all.size(), Model, where, "index must be below the count. Got ", index, ", expected below ",
              all.size());
    *info = &all[index]->shown();
  });
}

int find(const neo_module* module, const char* name, size_t* index, Side side, const char* where) {
  return guarded([&] {
    check_pointer(name, where, "name");
    check_pointer(index, where, "index");
    const auto loaded = modules().get(module, where, kModule);
    const auto& all = *loaded->signature.*side;
    const auto it =
        std::find_if(all.begin(), all.end(), [&](const auto& d) { return d->shown().name == std::string_view(name); });
    if (it == all.end()) {
      std::string names;
      for (const auto& d : all) names += str(names.empty() ? "'" : ", '", d->shown().name, "'");
      fail(ErrorKind::Model, where, str("a name must be the model's. Got '", name, "', expected ", names));
    }
    *index = static_cast<size_t>(it - all.begin());
  });
}

}  // namespace

neo_module* load(const FileBytes& file, const std::string& place, int threads, const Quota& quota) {
  const int count = threads_of(threads, "load");
  SavedModule saved = open_module(file, place, quota);
  const Configuration configuration = threads == 0 ? configuration_for(saved, count) : Configuration{1, count};
  auto signature = std::make_shared<Signature>(*saved.plan);
  signature->notes = std::move(saved.notes);
  auto loaded = std::make_shared<LoadedModule>();
  loaded->module = std::make_shared<Module>(std::move(saved.plan), configuration, false, quota);
  loaded->signature = std::move(signature);
  return modules().give_out(std::move(loaded));
}

namespace {

int load_file(const char* path, int threads, const neo_limits* limits, neo_module** module, const char* where) {
  return guarded([&] {
    check_pointer(path, where, "path");
    check_pointer(module, where, "module");
    const FileBytes file = map_file(path);
    *module = load(file, path, threads, quota_of(limits, file.bytes.size()));
  });
}

int load_memory(const void* data, size_t bytes, int threads, const neo_limits* limits, neo_module** module,
                const char* where) {
  return guarded([&] {
    check_pointer(data, where, "data");
    check_pointer(module, where, "module");
    const Quota quota = quota_of(limits, bytes);
    *module = load(copy_bytes({static_cast<const std::byte*>(data), bytes}), "bytes", threads, quota);
  });
}

// The same module that another configuration runs.
template <class F>
int run_with(const neo_module* module, F&& configuration, neo_module** other, const char* where) {
  return guarded([&] {
    check_pointer(other, where, "other");
    const auto loaded = modules().get(module, where, kModule);
    auto made = std::make_shared<LoadedModule>();
    made->module = loaded->module->with(configuration(), true);
    made->signature = loaded->signature;
    *other = modules().give_out(std::move(made));
  });
}

}  // namespace
}  // namespace neo::capi

using namespace neo::capi;  // NOLINT: what follows is the face of this namespace

const char* neo_version(void) {
  return NEO_VERSION;
}

int neo_abi_version(void) {
  return NEO_ABI_VERSION;
}

int neo_load(const char* path, int threads, neo_module** module) {
  return load_file(path, threads, nullptr, module, "neo_load");
}

int neo_load_bytes(const void* data, size_t bytes, int threads, neo_module** module) {
  return load_memory(data, bytes, threads, nullptr, module, "neo_load_bytes");
}

int neo_load_within(const char* path, int threads, const neo_limits* limits, neo_module** module) {
  return load_file(path, threads, limits, module, "neo_load_within");
}

int neo_load_bytes_within(const void* data, size_t bytes, int threads, const neo_limits* limits, neo_module** module) {
  return load_memory(data, bytes, threads, limits, module, "neo_load_bytes_within");
}

int neo_with_threads(const neo_module* module, int threads, neo_module** other) {
  return run_with(
      module,
      [&] {
        return neo::Configuration{1, threads_of(threads, "neo_with_threads")};
      },
      other, "neo_with_threads");
}

int neo_with_executors(const neo_module* module, int executors, int threads, neo_module** other) {
  return run_with(
      module,
      [&] {
        return neo::Configuration{executors, threads};
      },
      other, "neo_with_executors");
}

int neo_release(neo_module* module) {
  return guarded([&] { modules().release(module, "neo_release", kModule); });
}

int neo_threads(const neo_module* module, int* threads) {
  return guarded([&] {
    check_pointer(threads, "neo_threads", "threads");
    *threads = modules().get(module, "neo_threads", kModule)->module->configuration().all_threads();
  });
}

int neo_executors(const neo_module* module, int* executors) {
  return guarded([&] {
    check_pointer(executors, "neo_executors", "executors");
    *executors = modules().get(module, "neo_executors", kModule)->module->configuration().executors;
  });
}

int neo_input_count(const neo_module* module, size_t* count) {
  return neo::capi::count(module, count, &Signature::inputs, "neo_input_count");
}

int neo_output_count(const neo_module* module, size_t* count) {
  return neo::capi::count(module, count, &Signature::outputs, "neo_output_count");
}

int neo_input(const neo_module* module, size_t index, const neo_info** info) {
  return describe(module, index, info, &Signature::inputs, "neo_input");
}

int neo_output(const neo_module* module, size_t index, const neo_info** info) {
  return describe(module, index, info, &Signature::outputs, "neo_output");
}

int neo_find_input(const neo_module* module, const char* name, size_t* index) {
  return find(module, name, index, &Signature::inputs, "neo_find_input");
}

int neo_find_output(const neo_module* module, const char* name, size_t* index) {
  return find(module, name, index, &Signature::outputs, "neo_find_output");
}

int neo_note(const neo_module* module, const char* key, const char** text) {
  return guarded([&] {
    check_pointer(key, "neo_note", "key");
    check_pointer(text, "neo_note", "text");
    const auto loaded = modules().get(module, "neo_note", kModule);
    const auto it = loaded->signature->notes.find(key);
    *text = it == loaded->signature->notes.end() ? nullptr : it->second.c_str();
  });
}
