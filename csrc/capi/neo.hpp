// neo.hpp: neo.h for C++20. Handles release themselves, what returned -1 throws neo::Error, memory is std::span.
// docs/deploy.md is the guide.
#ifndef NEO_HPP
#define NEO_HPP

#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "neo.h"

namespace neo {
// In a program, neo::Module; to the linker, no class of libneo.a.
inline namespace face {

class Error : public std::runtime_error {
 public:
  // The last error of this thread.
  Error() : std::runtime_error(neo_last_error()), kind_(neo_last_error_kind()) {}
  neo_error_kind kind() const noexcept { return kind_; }

 private:
  neo_error_kind kind_;
};

namespace detail {

inline void check(int status) {
  if (status != 0) throw Error();
}

template <class>
inline constexpr bool is_unknown = true;

template <class T>
constexpr neo_dtype find_dtype() {
  if constexpr (std::is_same_v<T, float>)
    return NEO_FLOAT32;
  else if constexpr (std::is_same_v<T, double>)
    return NEO_FLOAT64;
  else if constexpr (std::is_same_v<T, bool>)
    return NEO_BOOL;
  else if constexpr (std::is_same_v<T, neo_string>)
    return NEO_STRING;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return NEO_COMPLEX64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return NEO_COMPLEX128;
  else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
    return sizeof(T) == 8 ? NEO_INT64 : sizeof(T) == 4 ? NEO_INT32 : sizeof(T) == 2 ? NEO_INT16 : NEO_INT8;
  else if constexpr (std::is_integral_v<T>)
    return sizeof(T) == 8 ? NEO_UINT64 : sizeof(T) == 4 ? NEO_UINT32 : sizeof(T) == 2 ? NEO_UINT16 : NEO_UINT8;
  else
    static_assert(!is_unknown<T>, "no dtype of neo.h has this type: fill in a neo_tensor or neo_buffer by hand");
}

// A handle that one object owns.
template <class T, int (*release)(T*)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(T* handle) noexcept : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() { release(handle_); }
  T* get() const noexcept { return handle_; }

 private:
  T* handle_ = nullptr;
};

}  // namespace detail

// The dtype whose elements are T.
template <class T>
inline constexpr neo_dtype dtype_of = detail::find_dtype<std::remove_cv_t<T>>();

// An input over memory of the caller; `dims` is the caller's too.
template <class T>
neo_tensor tensor(std::span<T> data, std::span<const int64_t> dims) {
  neo_tensor made = {};
  made.dtype = dtype_of<T>;
  made.rank = static_cast<int>(dims.size());
  made.dims = dims.data();
  made.data = data.data();
  made.bytes = data.size_bytes();
  return made;
}

// Memory of the caller that an output is written to.
template <class T>
neo_buffer buffer(std::span<T> data) {
  return {dtype_of<T>, data.data(), data.size_bytes(), 0};
}

// Stops calls from another thread.
class Token {
 public:
  Token() {
    neo_token* made = nullptr;
    detail::check(neo_new_token(&made));
    handle_ = detail::Owned<neo_token, neo_release_token>(made);
  }
  void cancel() const { detail::check(neo_cancel(handle_.get())); }
  const neo_token* get() const noexcept { return handle_.get(); }

 private:
  detail::Owned<neo_token, neo_release_token> handle_;
};

// What a call gave.
class Results {
 public:
  explicit Results(neo_results* handle) noexcept : handle_(handle) {}

  size_t size() const {
    size_t count = 0;
    detail::check(neo_result_count(handle_.get(), &count));
    return count;
  }
  // Read only, as long as this lives.
  const neo_tensor& operator[](size_t index) const {
    const neo_tensor* result = nullptr;
    detail::check(neo_result(handle_.get(), index, &result));
    return *result;
  }
  std::span<const int64_t> dims(size_t index) const {
    const neo_tensor& result = (*this)[index];
    return {result.dims, static_cast<size_t>(result.rank)};
  }
  // The elements of a tensor of T; std::invalid_argument for any other.
  template <class T>
  std::span<const T> get(size_t index) const {
    const neo_tensor& result = (*this)[index];
    if (result.kind != NEO_TENSOR || result.dtype != dtype_of<T>)
      throw std::invalid_argument(std::string("a result must be read as what it is. Got ") +
                                  neo_dtype_name(dtype_of<T>) + ", expected " +
                                  (result.kind == NEO_TENSOR ? neo_dtype_name(result.dtype) : "no tensor"));
    return {static_cast<const T*>(result.data), result.bytes / sizeof(T)};
  }

 private:
  detail::Owned<neo_results, neo_release_results> handle_;
};

// A saved module that was loaded. Every member may be called from any thread at any time.
class Module {
 public:
  // threads: that a call may use; 0: the cores that this process may really use.
  explicit Module(const std::string& path, int threads = 0) {
    neo_module* made = nullptr;
    detail::check(neo_load(path.c_str(), threads, &made));
    handle_ = Handle(made);
  }
  // From memory, which is copied.
  explicit Module(std::span<const std::byte> bytes, int threads = 0) {
    neo_module* made = nullptr;
    detail::check(neo_load_bytes(bytes.data(), bytes.size(), threads, &made));
    handle_ = Handle(made);
  }
  // A file that nobody trusts, and every call of it, within limits.
  Module(const std::string& path, int threads, const neo_limits& limits) {
    neo_module* made = nullptr;
    detail::check(neo_load_within(path.c_str(), threads, &limits, &made));
    handle_ = Handle(made);
  }
  Module(std::span<const std::byte> bytes, int threads, const neo_limits& limits) {
    neo_module* made = nullptr;
    detail::check(neo_load_bytes_within(bytes.data(), bytes.size(), threads, &limits, &made));
    handle_ = Handle(made);
  }
  // The same module, weights shared, with the same answers to the bit.
  Module with_threads(int threads) const {
    neo_module* made = nullptr;
    detail::check(neo_with_threads(handle_.get(), threads, &made));
    return Module(Handle(made));
  }
  // The same on executors, which run parts of the model beside each other, of so many threads each.
  Module with_executors(int executors, int threads) const {
    neo_module* made = nullptr;
    detail::check(neo_with_executors(handle_.get(), executors, threads, &made));
    return Module(Handle(made));
  }

  // Of all executors.
  int threads() const {
    int threads = 0;
    detail::check(neo_threads(handle_.get(), &threads));
    return threads;
  }
  int executors() const {
    int executors = 0;
    detail::check(neo_executors(handle_.get(), &executors));
    return executors;
  }
  size_t input_count() const {
    size_t count = 0;
    detail::check(neo_input_count(handle_.get(), &count));
    return count;
  }
  size_t output_count() const {
    size_t count = 0;
    detail::check(neo_output_count(handle_.get(), &count));
    return count;
  }
  // As long as this lives.
  const neo_info& input(size_t index) const {
    const neo_info* info = nullptr;
    detail::check(neo_input(handle_.get(), index, &info));
    return *info;
  }
  const neo_info& output(size_t index) const {
    const neo_info* info = nullptr;
    detail::check(neo_output(handle_.get(), index, &info));
    return *info;
  }
  size_t find_input(const std::string& name) const {
    size_t index = 0;
    detail::check(neo_find_input(handle_.get(), name.c_str(), &index));
    return index;
  }
  size_t find_output(const std::string& name) const {
    size_t index = 0;
    detail::check(neo_find_output(handle_.get(), name.c_str(), &index));
    return index;
  }
  // Empty where there is none.
  std::string_view note(const std::string& key) const {
    const char* text = nullptr;
    detail::check(neo_note(handle_.get(), key.c_str(), &text));
    return text ? text : std::string_view();
  }

  // Into memory of the caller.
  void run(std::span<const neo_tensor> inputs, std::span<neo_buffer> outputs, const Token* token = nullptr) const {
    detail::check(neo_run(handle_.get(), inputs.data(), inputs.size(), outputs.data(), outputs.size(),
                          token ? token->get() : nullptr));
  }
  // Into memory of the library.
  Results call(std::span<const neo_tensor> inputs, const Token* token = nullptr) const {
    neo_results* results = nullptr;
    detail::check(neo_call(handle_.get(), inputs.data(), inputs.size(), token ? token->get() : nullptr, &results));
    return Results(results);
  }
  Results call(std::initializer_list<neo_tensor> inputs, const Token* token = nullptr) const {
    return call(std::span(inputs.begin(), inputs.size()), token);
  }

 private:
  using Handle = detail::Owned<neo_module, neo_release>;
  explicit Module(Handle handle) noexcept : handle_(std::move(handle)) {}

  Handle handle_;
};

}  // namespace face
}  // namespace neo

#endif
