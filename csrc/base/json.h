#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace neo {

// A JSON value (RFC 8259). Text is UTF-8. Integers that fit in 64 bits stay exact; keys of an object are unique and
// keep their order.
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  Json(int value) : value_(int64_t{value}) {}
  Json(int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  // Bounds on what a text may ask for.
  struct Limits {
    int depth = 32;
    int64_t values = 4'000'000;
  };
  // Reads the whole text. Text that is not JSON, not UTF-8 or beyond the limits is a Model error that says where.
  static Json parse(std::string_view text, const Limits& limits);
  static Json parse(std::string_view text) { return parse(text, Limits()); }
  std::string dump() const;  // without spaces; asserts that numbers are finite

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  // The value as what it must be; anything else is a Model error.
  bool as_bool() const;
  int64_t as_int(int64_t lo, int64_t hi) const;
  double as_number() const;  // an integer is one too
  const std::string& as_string() const;
  const Array& as_array() const;
  const Object& as_object() const;
  const Json& at(std::string_view key) const;  // a member that must be there
  const Json* find(std::string_view key) const;

 private:
  template <class T>
  const T& get(std::string_view expected) const;
  void print(std::string& to) const;

  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

}  // namespace neo
