#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "ir/graph.h"

namespace neo {
namespace {

template <class T>
constexpr std::string_view kind_of() {
  if constexpr (std::is_same_v<T, int64_t>) return "an int";
  if constexpr (std::is_same_v<T, double>) return "a float";
  if constexpr (std::is_same_v<T, std::string>) return "a string";
  if constexpr (std::is_same_v<T, std::vector<int64_t>>) return "ints";
  if constexpr (std::is_same_v<T, std::vector<double>>) return "floats";
  if constexpr (std::is_same_v<T, std::vector<std::string>>) return "strings";
  if constexpr (std::is_same_v<T, Tensor>) return "a tensor";
  if constexpr (std::is_same_v<T, std::vector<Dim>>) return "sizes";
}

// Null where the attribute is absent.
template <class T>
const T* find_attr(const Node& node, std::string_view key) {
  const auto it = node.attrs.find(key);
  if (it == node.attrs.end()) return nullptr;
  const T* held = std::get_if<T>(&it->second);
  if (held == nullptr) {
    const auto got = std::visit([](const auto& x) { return kind_of<std::decay_t<decltype(x)>>(); }, it->second);
    fail(ErrorKind::Model, node.op,
         str("attribute \"", key, "\" has the wrong type. Got ", got, ", expected ", kind_of<T>(), " - at ",
             node.place()));
  }
  return held;
}

template <class T>
T attr_or(const Node& node, std::string_view key, T fallback) {
  const T* held = find_attr<T>(node, key);
  return held ? *held : std::move(fallback);
}

bool same_bits(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

bool identical(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, double>) {
          return same_bits(x, y);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_bits);
        } else if constexpr (std::is_same_v<T, Tensor>) {
          return identical(x, y);
        } else {
          return x == y;
        }
      },
      a);
}

Graph& Node::body(std::string_view body_name) const {
  for (const auto& [key, body] : bodies) {
    if (key == body_name) return *body;
  }
  fail(ErrorKind::Internal, op, str("a body \"", body_name, "\" is missing - at ", place()));
}

int64_t Node::int_attr(std::string_view key, int64_t fallback) const {
  return attr_or(*this, key, fallback);
}
double Node::float_attr(std::string_view key, double fallback) const {
  return attr_or(*this, key, fallback);
}

std::string Node::string_attr(std::string_view key, std::string_view fallback) const {
  return attr_or(*this, key, std::string(fallback));
}

std::vector<int64_t> Node::ints_attr(std::string_view key, std::vector<int64_t> fallback) const {
  return attr_or(*this, key, std::move(fallback));
}

std::vector<double> Node::floats_attr(std::string_view key, std::vector<double> fallback) const {
  return attr_or(*this, key, std::move(fallback));
}

std::vector<std::string> Node::strings_attr(std::string_view key, std::vector<std::string> fallback) const {
  return attr_or(*this, key, std::move(fallback));
}

const Tensor* Node::tensor_attr(std::string_view key) const {
  return find_attr<Tensor>(*this, key);
}

std::string Node::place() const {
  if (!name.empty()) return str("node \"", name, "\"");
  for (const Value* v : outputs) {
    if (v) return str("the ", op, " that makes \"", v->name, "\"");
  }
  return str("a ", op);
}

}  // namespace neo
