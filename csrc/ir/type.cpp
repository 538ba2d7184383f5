#include "base/check.h"
#include "ir/graph.h"

namespace neo {
namespace {

constexpr int kMaxTypeDepth = 16;

Type parse_type(std::string_view text, const SymbolLookup& symbols, int depth) {
  NEO_CHECK(depth < kMaxTypeDepth, Model, "type", "types must nest at most ", kMaxTypeDepth, " deep. Got deeper ones");
  const auto inner = [&](std::string_view prefix) -> std::optional<std::string_view> {
    if (!text.starts_with(prefix) || !text.ends_with(')')) return std::nullopt;
    return text.substr(prefix.size(), text.size() - prefix.size() - 1);
  };
  if (const auto element = inner("seq(")) return Type::sequence(parse_type(*element, symbols, depth + 1));
  if (const auto element = inner("optional(")) return Type::optional(parse_type(*element, symbols, depth + 1));
  if (const auto pair = inner("map(")) {
    const size_t comma = pair->find(',');
    const auto key = comma == std::string_view::npos ? std::nullopt : find_dtype(pair->substr(0, comma));
    NEO_CHECK(key.has_value(), Model, "type", "a map must be written like map(string,float32[]). Got \"", text, "\"");
    const Type value = parse_type(pair->substr(comma + 1), symbols, depth + 1);
    NEO_CHECK(value == Type::tensor(value.dtype, Shape::of({})), Model, "type",
              "the values of a map must be scalars. Got \"", text, "\"");
    return Type::map(*key, value.dtype);
  }
  const size_t bracket = text.find('[');
  NEO_CHECK(bracket != std::string_view::npos, Model, "type",
            "a type is written like float32[N,3], seq(float32[*]) or optional(int64[2]). Got \"", text, "\"");
  const std::string_view element = text.substr(0, bracket);
  const auto dtype = element == name(DType::Undefined) ? DType::Undefined : find_dtype(element);
  NEO_CHECK(dtype.has_value(), Model, "type", "an element type must be known. Got \"", element, "\" in \"", text, "\"");
  return Type::tensor(*dtype, Shape::parse(text.substr(bracket), symbols));
}

}  // namespace

Type Type::map(DType key, DType value) {
  NEO_CHECK(key == DType::String || is_integer(key), Type, "type",
            "the keys of a map must be integers or strings. Got ", name(key));
  Type values = tensor(value, Shape::of({}));
  values.element = std::make_shared<Type>(tensor(key, Shape::of({})));
  return {Kind::Map, DType::Undefined, {}, std::make_shared<Type>(std::move(values))};
}

std::string Type::to_string() const {
  switch (kind) {
    case Kind::Tensor:
      return std::string(name(dtype)) + shape.to_string();
    case Kind::Sequence:
      return "seq(" + element->to_string() + ")";
    case Kind::Optional:
      return "optional(" + element->to_string() + ")";
    case Kind::Map:
      return "map(" + std::string(name(key())) + "," + element->to_string() + ")";
  }
  return {};
}

Type Type::parse(std::string_view text, const SymbolLookup& symbols) {
  return parse_type(text, symbols, 0);
}

bool operator==(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.key() != b.key()) return false;
  if (a.is_tensor()) return a.dtype == b.dtype && a.shape == b.shape;
  return *a.element == *b.element;
}

}  // namespace neo
