#pragma once

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace neo {

// The kinds of errors as a user sees them. Each is one Python class (bindings/errors.cpp).
enum class ErrorKind {
  Model,        // the model is malformed                      neo.ModelError (ValueError)
  Shape,        // a shape or size does not fit                neo.ShapeError (ValueError)
  Type,         // a dtype or a kind of argument does not fit  neo.DTypeError (TypeError)
  Unsupported,  // valid, but outside what neo does            neo.UnsupportedError (NotImplementedError)
  Resource,     // a file, a device or a library is missing    neo.ResourceError (OSError)
  Memory,       // no memory, or a limit on it                 neo.OutOfMemoryError (MemoryError)
  Time,         // a limit on the time was reached             neo.TimeLimitError (TimeoutError)
  Cancelled,    // the caller cancelled a run                  neo.CancelledError
  Internal,     // a bug in neo                                neo.InternalError (RuntimeError)
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, std::string message) : std::runtime_error(std::move(message)), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// Concatenates its arguments with operator<<.
template <class... Args>
std::string str(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

// Throws neo::Error with the message "[where] text". The text follows docs/errors.md:
// "rule. Got <values>, expected <values> - at <place>", and where we know one a last line "Hint: ...". A text
// from a model stays one readable line: control characters are escaped, and the middle of a long text is left out.
[[noreturn]] void fail(ErrorKind kind, std::string_view where, const std::string& text);

// The same error again.
[[noreturn]] inline void fail_again(const Error& error) {
  throw Error(error);
}

// The same error with " - at <place>" behind its message, before a hint.
[[noreturn]] inline void fail_at(const Error& error, const std::string& place) {
  std::string text = error.what();
  text.insert(std::min(text.find("\nHint:"), text.size()), " - at " + place);
  throw Error(error.kind(), text);
}

}  // namespace neo

// The one way to raise: NEO_CHECK(x > 0, Shape, "Conv", "group must be positive. Got ", g, ", expected >= 1").
#define NEO_CHECK(condition, kind, where, ...)                             \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::neo::fail(::neo::ErrorKind::kind, where, ::neo::str(__VA_ARGS__)); \
  } while (0)

// For what only a bug in neo can break.
#define NEO_ASSERT(condition, ...) NEO_CHECK(condition, Internal, "neo", #condition " ", ##__VA_ARGS__)
