// Sequences of calls of neo.h with any arguments: handles that live, were released or never were, pointers that are
// NULL, sizes that do not fit. An input is a saved module, and behind it the bytes that say what is called.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "capi/neo.h"
#include "fuzz/counts.h"
#include "fuzz/envelope.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace neo::fuzz {
namespace {

constexpr size_t kMaxCalls = 64;
constexpr size_t kMaxScript = 1024;
constexpr neo_limits kLimits = {.bytes = 0, .memory = uint64_t{64} << 20, .seconds = 0.25};
constexpr std::string_view kMark = "calls:";

// Splits an input at its mark: module and script.
std::pair<std::string_view, std::string_view> split(std::string_view input) {
  const size_t mark = input.rfind(kMark);
  if (mark == std::string_view::npos) return {input, {}};
  return {input.substr(0, mark), input.substr(mark + kMark.size())};
}

// One script on one module.
class Player {
 public:
  Player(std::string_view module, std::string_view script) : file_(module), script_(script) {}

  Reached play() {
    load();
    for (size_t i = 0; i < kMaxCalls && at_ < script_.size(); ++i) call();
    for (neo_module* m : modules_) neo_release(m);
    for (neo_token* t : tokens_) neo_release_token(t);
    for (neo_results* r : results_) neo_release_results(r);
    return reached_;
  }

 private:
  uint8_t byte() { return at_ < script_.size() ? static_cast<uint8_t>(script_[at_++]) : 0; }

  // A handle that was given out at some time, or NULL, or none at all.
  template <class T>
  T* any(const std::vector<T*>& handles) {
    const uint8_t choice = byte();
    if (choice % 16 == 15) return nullptr;
    if (choice % 16 == 14) return reinterpret_cast<T*>(static_cast<uintptr_t>(choice) << 20);
    return handles.empty() ? nullptr : handles[choice % handles.size()];
  }
  // A place for a result, or NULL.
  template <class T>
  T* place(T& here) {
    return byte() % 16 == 15 ? nullptr : &here;
  }

  // -1 comes with a line and a kind that is not a bug.
  bool check(int code) {
    if (code == 0) return true;
    if (code != -1 || neo_last_error_kind() == NEO_ERROR_NONE || neo_last_error_kind() == NEO_ERROR_INTERNAL ||
        *neo_last_error() == '\0')
      std::abort();
    return false;
  }

  void load() {
    neo_module* module = nullptr;
    if (!check(neo_load_bytes_within(file_.data(), file_.size(), 1, &kLimits, &module))) return;
    modules_.push_back(module);
    reached_ = Reached::Loaded;
  }

  void read(const neo_tensor& value, int depth) {
    if (depth > 8) return;
    if (value.kind == NEO_SEQUENCE || value.kind == NEO_MAP) {
      for (size_t i = 0; i < value.item_count; ++i) read(value.items[i], depth + 1);
    } else if (value.kind == NEO_TENSOR) {
      size_t count = 1;
      for (int axis = 0; axis < value.rank; ++axis) count *= static_cast<size_t>(value.dims[axis]);
      const size_t bytes = count * neo_dtype_bytes(value.dtype);
      unsigned sum = 0;
      for (size_t i = 0; i < bytes; ++i) sum += static_cast<const unsigned char*>(value.data)[i];
      if (value.dtype == NEO_STRING) {
        for (size_t i = 0; i < count; ++i) {
          const neo_string& s = static_cast<const neo_string*>(value.data)[i];
          for (size_t c = 0; c < s.size; ++c) sum += static_cast<unsigned char>(s.data[c]);
        }
      }
      read_ += sum;
    }
  }

  // Tensors as the module wants them, at times damaged.
  std::vector<neo_tensor> inputs_for(const neo_module* module) {
    size_t count = 0;
    std::vector<neo_tensor> inputs;
    if (neo_input_count(module, &count) != 0) return inputs;
    entries_.clear();
    dims_.clear();
    dims_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      const neo_info* info = nullptr;
      if (neo_input(module, i, &info) != 0) std::abort();
      neo_tensor t = {};
      t.kind = info->kind == NEO_OPTIONAL ? NEO_NONE : info->kind;
      t.dtype = info->dtype;
      t.rank = std::max(info->rank, 0);
      for (int axis = 0; axis < t.rank; ++axis) {
        const int64_t size = info->dims[axis] >= 0 ? info->dims[axis] : 1 + byte() % 4;
        dims_[i].push_back(byte() % 32 == 31 ? size - 2 + byte() % 5 : size);
      }
      if (byte() % 64 == 63) t.rank = byte() - 4;
      if (t.rank > static_cast<int>(dims_[i].size())) dims_[i].resize(static_cast<size_t>(t.rank), 1);
      t.dims = dims_[i].data();
      int64_t elements = 1;
      for (const int64_t d : dims_[i]) {
        if (__builtin_mul_overflow(elements, d, &elements)) elements = -1;
      }
      const auto width = static_cast<int64_t>(std::max<size_t>(neo_dtype_bytes(t.dtype), 1));
      if (elements < 0 || elements > static_cast<int64_t>(sizeof memory_) / width) {
        t.bytes = sizeof memory_;
      } else if (byte() % 4 == 0) {
        t.bytes = static_cast<size_t>(elements * width);
      }
      t.data = t.dtype == NEO_STRING ? static_cast<const void*>(words()) : memory_;
      if (byte() % 64 == 63) t.dtype = static_cast<neo_dtype>(byte() % 32);
      if (t.dtype == NEO_STRING) t.data = words();
      if (byte() % 64 == 63) t.data = nullptr;
      if (t.kind == NEO_MAP) add_entries(t, info->key);
      inputs.push_back(t);
    }
    if (byte() % 32 == 31 && !inputs.empty()) inputs.pop_back();
    return inputs;
  }

  // Keys and values of a map, at times of other sizes or one of them missing.
  void add_entries(neo_tensor& map, neo_dtype key) {
    entries_.emplace_back();
    Entries& made = entries_.back();
    made.sizes = {byte() % 4, byte() % 4};
    if (byte() % 4 != 3) made.sizes[1] = made.sizes[0];
    for (size_t i = 0; i < made.items.size(); ++i) {
      neo_tensor& item = made.items[i];
      item.dtype = i == 0 ? key : map.dtype;
      item.rank = 1;
      item.dims = &made.sizes[i];
      item.data = item.dtype == NEO_STRING ? static_cast<const void*>(words()) : memory_;
    }
    map.items = made.items.data();
    map.item_count = byte() % 16 == 15 ? 1 : 2;
  }

  const neo_string* words() {
    if (words_.empty()) words_.assign(sizeof memory_ / sizeof(neo_string), {"word", 4});
    return words_.data();
  }

  void call() {
    switch (byte() % 20) {
      case 0:
        return load();
      case 1: {
        neo_module* other = nullptr;
        if (check(neo_with_threads(any(modules_), byte() % 8 - 2, place(other)))) modules_.push_back(other);
        return;
      }
      case 2:
        check(neo_release(any(modules_)));
        return;
      case 3: {
        int threads = 0;
        check(neo_threads(any(modules_), place(threads)));
        return;
      }
      case 4: {
        size_t count = 0;
        check(byte() & 1 ? neo_input_count(any(modules_), place(count))
                         : neo_output_count(any(modules_), place(count)));
        return;
      }
      case 5: {
        const neo_info* info = nullptr;
        const size_t index = byte() % 16 == 15 ? SIZE_MAX : byte() % 8;
        const bool found = check(byte() & 1 ? neo_input(any(modules_), index, place(info))
                                            : neo_output(any(modules_), index, place(info)));
        if (found && info) read_ += std::strlen(info->name) + std::strlen(info->type);
        return;
      }
      case 6: {
        const char name[] = {static_cast<char>(byte()), '\0'};
        size_t index = 0;
        check(byte() & 1 ? neo_find_input(any(modules_), byte() % 16 == 15 ? nullptr : name, place(index))
                         : neo_find_output(any(modules_), name, place(index)));
        return;
      }
      case 7: {
        const char* text = nullptr;
        constexpr const char* kKeys[] = {"neo.version", "neo.model", "", nullptr};
        if (check(neo_note(any(modules_), kKeys[byte() % 4], place(text))) && text) read_ += std::strlen(text);
        return;
      }
      case 8: {
        neo_token* token = nullptr;
        if (check(neo_new_token(place(token)))) tokens_.push_back(token);
        return;
      }
      case 9:
        check(neo_cancel(any(tokens_)));
        return;
      case 10:
        check(neo_release_token(any(tokens_)));
        return;
      case 11:
        check(neo_release_results(any(results_)));
        return;
      case 12: {
        size_t count = 0;
        check(neo_result_count(any(results_), place(count)));
        return;
      }
      case 13: {
        const neo_tensor* result = nullptr;
        if (check(neo_result(any(results_), byte() % 8, place(result))) && result) read(*result, 0);
        return;
      }
      case 14: {
        neo_module* module = nullptr;
        const size_t size = std::min<size_t>(file_.size(), byte() * 16);
        const void* data = byte() % 16 == 15 ? nullptr : file_.data();
        if (check(neo_load_bytes_within(data, size, byte() - 2, &kLimits, place(module)))) modules_.push_back(module);
        return;
      }
      case 15:
        return run();
      default:
        return call_module();
    }
  }

  const neo_token* token() { return byte() % 8 == 7 ? any(tokens_) : nullptr; }

  void call_module() {
    neo_module* module = any(modules_);
    const std::vector<neo_tensor> inputs = inputs_for(module);
    neo_results* results = nullptr;
    if (!check(neo_call(module, inputs.data(), inputs.size(), token(), place(results)))) return;
    results_.push_back(results);
    reached_ = Reached::Ran;
  }

  void run() {
    neo_module* module = any(modules_);
    const std::vector<neo_tensor> inputs = inputs_for(module);
    size_t count = 0;
    if (neo_output_count(module, &count) != 0) count = byte() % 4;
    std::vector<std::vector<char>> memory(count);
    std::vector<neo_buffer> outputs(count);
    for (size_t i = 0; i < count; ++i) {
      const neo_info* info = nullptr;
      memory[i].resize(size_t{byte()} * 16);
      outputs[i].dtype = neo_output(module, i, &info) == 0 ? info->dtype : NEO_FLOAT32;
      if (byte() % 32 == 31) outputs[i].dtype = static_cast<neo_dtype>(byte() % 32);
      outputs[i].data = byte() % 32 == 31 ? nullptr : memory[i].data();
      outputs[i].bytes = memory[i].size();
    }
    if (check(neo_run(module, inputs.data(), inputs.size(), outputs.data(), count, token()))) {
      for (const neo_buffer& out : outputs) {
        if (out.written > out.bytes) std::abort();
      }
      reached_ = Reached::Ran;
    }
  }

  std::string_view file_;
  std::string_view script_;
  size_t at_ = 0;
  size_t read_ = 0;
  Reached reached_ = Reached::Envelope;
  std::vector<neo_module*> modules_;
  std::vector<neo_token*> tokens_;
  std::vector<neo_results*> results_;
  struct Entries {
    std::array<int64_t, 2> sizes = {};
    std::array<neo_tensor, 2> items = {};
  };
  std::deque<Entries> entries_;  // addresses stay
  std::vector<std::vector<int64_t>> dims_;
  std::vector<neo_string> words_;
  alignas(64) char memory_[1 << 16] = {};
};

}  // namespace
}  // namespace neo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto [module, script] = neo::fuzz::split({reinterpret_cast<const char*>(data), size});
  neo::fuzz::count(neo::fuzz::Player(module, script).play());
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace neo::fuzz;
  Random random(seed);
  const auto [file, old_script] = split({reinterpret_cast<const char*>(data), size});
  std::string module(file), script(old_script);
  if (random.one_in(8)) {
    module = mutate_module(file, {}, random);
  } else if (script.empty() || random.one_in(4)) {
    script.resize(16 + random.below(256));
    for (char& c : script) c = static_cast<char>(random.next());
  } else {
    std::string bytes = script;
    bytes.resize(kMaxScript);
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), script.size(), kMaxScript));
    script = bytes;
  }
  const std::string all = module + std::string(kMark) + script;
  if (all.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(all.begin(), all.end(), data);
  return all.size();
}
