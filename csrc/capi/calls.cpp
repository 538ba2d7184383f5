#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>

#include "capi/errors.h"
#include "capi/handles.h"
#include "capi/modules.h"
#include "capi/values.h"

namespace neo::capi {
namespace {

constexpr const char* kToken = "a token";

// Stops the calls that run with it, from any thread.
class Token {
 public:
  using Cancel = std::function<void()>;

  // Until the returned position is given to remove().
  std::list<Cancel>::iterator add(Cancel cancel) {
    const std::lock_guard lock(mutex_);
    if (is_cancelled_) cancel();
    return running_.insert(running_.end(), std::move(cancel));
  }
  void remove(std::list<Cancel>::iterator position) {
    const std::lock_guard lock(mutex_);
    running_.erase(position);
  }
  void cancel() {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
    for (const Cancel& cancel : running_) cancel();
  }

 private:
  std::mutex mutex_;
  bool is_cancelled_ = false;
  std::list<Cancel> running_;
};

using TokenHandles = Handles<const neo_token, Token>;
using ResultHandles = Handles<const neo_results, const Results>;

// These live until the process ends, so that threads may call while it does.
TokenHandles& tokens() {
  static auto* const all = new TokenHandles();
  return *all;
}

ResultHandles& results() {
  static auto* const all = new ResultHandles();
  return *all;
}

// A call's place in its token.
class Running {
 public:
  explicit Running(std::shared_ptr<Token> token) : token_(std::move(token)) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (is_added_) token_->remove(position_);
  }
  void add(Token::Cancel cancel) {
    position_ = token_->add(std::move(cancel));
    is_added_ = true;
  }

 private:
  std::shared_ptr<Token> token_;
  std::list<Token::Cancel>::iterator position_;
  bool is_added_ = false;
};

std::string place_of(const char* side, const Described& described) {
  return str(side, " '", described.shown().name, "'");
}

std::vector<HostValue> call(const LoadedModule& loaded, const neo_tensor* inputs, size_t input_count,
                            const neo_token* token, const char* where) {
  const auto& expected = loaded.signature->inputs;
  NEO_CHECK(input_count == expected.size(), Model, "run", "every input must be given. Got ", input_count,
            " inputs, expected ", expected.size());
  if (input_count > 0) check_pointer(inputs, where, "inputs");
  const auto borrowed = std::make_shared<char>();  // marks the caller's memory
  std::vector<HostValue> values;
  values.reserve(input_count);
  for (size_t i = 0; i < input_count; ++i) {
    values.push_back(to_host(inputs[i], borrowed, place_of("input", *expected[i])));
  }
  Module::CallOptions options;
  std::vector<HostValue> found;
  if (token) {
    Running running(tokens().get(token, where, kToken));
    options.started = [&running](Token::Cancel cancel) { running.add(std::move(cancel)); };
    found = loaded.module->call(values, options);
  } else {
    found = loaded.module->call(values, options);
  }
  for (HostValue& value : found) detach(value, borrowed);
  return found;
}

// Whether an output goes into a buffer, and whether it was asked for.
void check_buffer(const neo_buffer& buffer, const HostValue& value, const Described& output) {
  const std::string place = place_of("output", output);
  NEO_CHECK(value.kind == HostValue::Kind::Tensor && value.tensor.dtype() != DType::String, Unsupported, "run",
            "an output that goes into a buffer must be a tensor of numbers. Got ", output.shown().type, " - at ", place,
            "\nHint: neo_call gives outputs of any kind.");
  const Tensor& tensor = value.tensor;
  NEO_CHECK(number_of(buffer.dtype) == static_cast<int>(tensor.dtype()), Type, "run",
            "a buffer's dtype must be the output's. Got ", dtype_name(number_of(buffer.dtype)), ", expected ",
            name(tensor.dtype()), " - at ", place);
  NEO_CHECK(static_cast<size_t>(tensor.bytes()) <= buffer.bytes, Shape, "run", "a buffer must hold its output. Got ",
            buffer.bytes, " bytes, expected ", tensor.bytes(), " for ", to_string(tensor.dims()), " - at ", place);
  NEO_CHECK(buffer.data || tensor.bytes() == 0, Model, "run", "a buffer must not be NULL. Got NULL, expected ",
            tensor.bytes(), " bytes - at ", place);
}

}  // namespace
}  // namespace neo::capi

using namespace neo::capi;  // NOLINT: what follows is the face of this namespace

int neo_new_token(neo_token** token) {
  return guarded([&] {
    check_pointer(token, "neo_new_token", "token");
    *token = const_cast<neo_token*>(tokens().give_out(std::make_shared<Token>()));
  });
}

int neo_cancel(const neo_token* token) {
  return guarded([&] { tokens().get(token, "neo_cancel", kToken)->cancel(); });
}

int neo_release_token(neo_token* token) {
  return guarded([&] { tokens().release(token, "neo_release_token", kToken); });
}

int neo_run(const neo_module* module, const neo_tensor* inputs, size_t input_count, neo_buffer* outputs,
            size_t output_count, const neo_token* token) {
  return guarded([&] {
    const auto loaded = modules().get(module, "neo_run", "a module");
    const auto& expected = loaded->signature->outputs;
    NEO_CHECK(output_count == expected.size(), Model, "run", "every output must have a buffer. Got ", output_count,
              " buffers, expected ", expected.size());
    if (output_count > 0) check_pointer(outputs, "neo_run", "outputs");
    const std::vector<neo::HostValue> found = call(*loaded, inputs, input_count, token, "neo_run");
    for (size_t i = 0; i < output_count; ++i) check_buffer(outputs[i], found[i], *expected[i]);
    for (size_t i = 0; i < output_count; ++i) {
      const neo::Tensor& tensor = found[i].tensor;
      outputs[i].written = static_cast<size_t>(tensor.bytes());
      if (tensor.bytes() > 0) std::memcpy(outputs[i].data, tensor.data(), outputs[i].written);
    }
  });
}

int neo_call(const neo_module* module, const neo_tensor* inputs, size_t input_count, const neo_token* token,
             neo_results** results) {
  return guarded([&] {
    check_pointer(results, "neo_call", "results");
    const auto loaded = modules().get(module, "neo_call", "a module");
    auto found = std::make_shared<const Results>(call(*loaded, inputs, input_count, token, "neo_call"));
    *results = const_cast<neo_results*>(neo::capi::results().give_out(std::move(found)));
  });
}

int neo_result_count(const neo_results* results, size_t* count) {
  return guarded([&] {
    check_pointer(count, "neo_result_count", "count");
    *count = neo::capi::results().get(results, "neo_result_count", "results")->shown().size();
  });
}

int neo_result(const neo_results* results, size_t index, const neo_tensor** result) {
  return guarded([&] {
    check_pointer(result, "neo_result", "result");
    const auto shown = neo::capi::results().get(results, "neo_result", "results")->shown();
    NEO_CHECK(index < shown.size(), Model, "neo_result", "index must be below the count. Got ", index,
              ", expected below ", shown.size());
    *result = &shown[index];
  });
}

int neo_release_results(neo_results* results) {
  return guarded([&] { neo::capi::results().release(results, "neo_release_results", "results"); });
}
