#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

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

// One argument of str(): a number, or a text that stays where it is.
class TextPart {
 public:
  TextPart(std::string_view text) : kind_(Kind::Text), size_(text.size()), text_(text.data()) {}  // NOLINT
  TextPart(const std::string& text) : TextPart(std::string_view(text)) {}                         // NOLINT
  TextPart(const char* text) : kind_(Kind::Literal), text_(text) {}                               // NOLINT
  TextPart(char character) : kind_(Kind::Character), integer_(character) {}                       // NOLINT
  template <class T>
  requires(std::is_integral_v<T> || (std::is_enum_v<T> && std::is_convertible_v<T, int>))
      TextPart(T value)  // NOLINT: every argument of str() becomes a part
      : kind_(std::is_unsigned_v<T> ? Kind::Unsigned : Kind::Integer), integer_(static_cast<int64_t>(value)) {
    static_assert(!std::is_same_v<T, signed char> && !std::is_same_v<T, unsigned char>, "a number or a character?");
  }
  TextPart(double value) : kind_(Kind::Real), real_(value) {}  // NOLINT

  void print(std::ostream& out) const;

 private:
  enum class Kind : uint8_t { Text, Literal, Character, Integer, Unsigned, Real };

  Kind kind_;
  size_t size_;  // of a Text alone, so that the many calls set no more than they need
  union {
    const char* text_;
    int64_t integer_;
    double real_;
  };
};

// The parts as operator<< of a stream prints them, one behind the other.
std::string join(std::initializer_list<TextPart> parts);

// Concatenates texts and numbers. Calls are many and messages rare: a call fills in a list, and the rest is in join().
template <class... Args>
std::string str(const Args&... args) {
  return join({TextPart(args)...});
}

// Throws neo::Error with the message "[where] text". The text follows docs/errors.md:
// "rule. Got <values>, expected <values> - at <place>", and where we know one a last line "Hint: ...". A text
// from a model stays one readable line: control characters are escaped, and the middle of a long text is left out.
[[noreturn]] void fail(ErrorKind kind, std::string_view where, const std::string& text);
// The same of a list of parts.
[[noreturn]] void fail_with(ErrorKind kind, const TextPart& where, std::initializer_list<TextPart> text);

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
#define NEO_CHECK(condition, kind, where, ...)                        \
  do {                                                                \
    if (!(condition)) [[unlikely]]                                    \
      ::neo::fail_with(::neo::ErrorKind::kind, where, {__VA_ARGS__}); \
  } while (0)

// For what only a bug in neo can break.
#define NEO_ASSERT(condition, ...) NEO_CHECK(condition, Internal, "neo", #condition " ", ##__VA_ARGS__)
