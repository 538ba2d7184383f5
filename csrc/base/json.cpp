#include "base/json.h"

#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include "base/budget.h"
#include "base/check.h"

namespace neo {
namespace {

constexpr std::string_view kWhere = "json";
constexpr int64_t kCountedValues = 256;  // whose memory and time are counted at once

// Bytes of the UTF-8 character at the front, 0 where there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first < 0xF0) {
    const unsigned lowest = first == 0xE0 ? 0xA0 : 0x80, highest = first == 0xED ? 0x9F : 0xBF;
    return byte(1) >= lowest && byte(1) <= highest && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first < 0xF5) {
    const unsigned lowest = first == 0xF0 ? 0x90 : 0x80, highest = first == 0xF4 ? 0x8F : 0xBF;
    return byte(1) >= lowest && byte(1) <= highest && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string& to, uint32_t code) {
  const auto add = [&](uint32_t byte) { to += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

class Parser {
 public:
  Parser(std::string_view text, const Json::Limits& limits) : text_(text), limits_(limits) {}

  Json parse() {
    Json value = parse_value(0);
    skip_spaces();
    if (at_ != text_.size()) refuse("the end");
    return value;
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    const std::string got = at_ < text_.size() ? str("byte ", int{static_cast<unsigned char>(text_[at_])}) : "the end";
    fail(ErrorKind::Model, kWhere, str("a text must be JSON. Got ", got, ", expected ", expected, " - at byte ", at_));
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(std::string{'\'', c, '\''});
  }
  bool accept_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  Json parse_value(int depth) {
    NEO_CHECK(depth <= limits_.depth, Model, kWhere, "values must nest at most ", limits_.depth,
              " deep. Got deeper ones - at byte ", at_);
    NEO_CHECK(++values_ <= limits_.values, Model, kWhere, "a text must have at most ", limits_.values,
              " values. Got more - at byte ", at_);
    if (values_ % kCountedValues == 1) {
      take_memory(kCountedValues * static_cast<int64_t>(sizeof(Json::Member)));
      checkpoint();
    }
    skip_spaces();
    if (at_ == text_.size()) refuse("a value");
    switch (text_[at_]) {
      case '{':
        return parse_object(depth);
      case '[':
        return parse_array(depth);
      case '"':
        return parse_string();
      case 't':
        if (accept_word("true")) return true;
        break;
      case 'f':
        if (accept_word("false")) return false;
        break;
      case 'n':
        if (accept_word("null")) return {};
        break;
      default:
        return parse_number();
    }
    refuse("a value");
  }

  Json parse_object(int depth) {
    Json::Object members;
    expect('{');
    if (accept('}')) return members;
    do {
      skip_spaces();
      if (at_ == text_.size() || text_[at_] != '"') refuse("a key");
      std::string key = parse_string();
      expect(':');
      members.emplace_back(std::move(key), parse_value(depth + 1));
    } while (accept(','));
    expect('}');
    std::set<std::string_view> keys;
    for (const auto& [key, value] : members) {
      NEO_CHECK(keys.insert(key).second, Model, kWhere, "keys must differ. Got \"", key, "\" twice - at byte ", at_);
    }
    return members;
  }

  Json parse_array(int depth) {
    Json::Array items;
    expect('[');
    if (accept(']')) return items;
    do items.push_back(parse_value(depth + 1));
    while (accept(','));
    expect(']');
    return items;
  }

  std::string parse_string() {
    std::string out;
    ++at_;
    for (;;) {
      if (at_ == text_.size()) refuse("a closing quote");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return out;
      }
      if (static_cast<unsigned char>(c) < 0x20) refuse("no control character");
      if (c == '\\') {
        ++at_;
        parse_escape(out);
        continue;
      }
      const size_t length = utf8_length(text_.substr(at_, 4));
      if (length == 0) refuse("UTF-8");
      out.append(text_, at_, length);
      at_ += length;
    }
  }

  void parse_escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (at_ == text_.size()) refuse("an escape");
    const char c = text_[at_];
    if (const size_t i = kNames.find(c); i != std::string_view::npos) {
      ++at_;
      out += kMeant[i];
      return;
    }
    if (c != 'u') refuse("an escape");
    ++at_;
    uint32_t code = parse_hex4();
    if (code >= 0xD800 && code < 0xDC00) {
      if (!accept_word("\\u")) refuse("the second half of a surrogate pair");
      const uint32_t low = parse_hex4();
      if (low < 0xDC00 || low >= 0xE000) refuse("the second half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      refuse("the first half of a surrogate pair");
    }
    append_utf8(out, code);
  }

  uint32_t parse_hex4() {
    uint32_t code = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4) refuse("four hexadecimal digits");
    at_ += 4;
    return code;
  }

  Json parse_number() {
    const size_t begin = at_;
    const auto digits = [&] {
      const size_t first = at_;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
      if (at_ == first) refuse("a digit");
      return at_ - first;
    };
    const auto accept_any = [&](std::string_view chars) {
      const bool found = at_ < text_.size() && chars.find(text_[at_]) != std::string_view::npos;
      at_ += found;
      return found;
    };
    accept_any("-");
    const size_t whole = at_;
    if (digits() > 1 && text_[whole] == '0') {
      at_ = whole;
      refuse("a number without leading zeros");
    }
    bool is_integer = true;
    if (accept_any(".")) {
      is_integer = false;
      digits();
    }
    if (accept_any("eE")) {
      is_integer = false;
      accept_any("+-");
      digits();
    }
    const char *first = text_.data() + begin, *last = text_.data() + at_;
    if (is_integer) {
      int64_t value = 0;
      if (std::from_chars(first, last, value).ec == std::errc()) return value;
    }
    double value = 0;
    if (std::from_chars(first, last, value).ec != std::errc()) {
      at_ = begin;
      refuse("a number that a double holds");
    }
    return value;
  }

  std::string_view text_;
  const Json::Limits& limits_;
  size_t at_ = 0;
  int64_t values_ = 0;
};

void print_string(std::string_view text, std::string& to) {
  constexpr std::string_view kHex = "0123456789abcdef";
  to += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (byte < 0x20) {
      to += "\\u00";
      to += kHex[byte >> 4];
      to += kHex[byte & 15];
    } else {
      to += c;
    }
  }
  to += '"';
}

}  // namespace

Json Json::parse(std::string_view text, const Limits& limits) {
  take_memory(static_cast<int64_t>(text.size()));
  return Parser(text, limits).parse();
}

std::string Json::dump() const {
  std::string text;
  print(text);
  return text;
}

void Json::print(std::string& to) const {
  std::array<char, 32> buffer;
  const auto number = [&](auto x) { to.append(buffer.data(), std::to_chars(buffer.begin(), buffer.end(), x).ptr); };
  if (is_null()) to += "null";
  if (const auto* b = std::get_if<bool>(&value_)) to += *b ? "true" : "false";
  if (const auto* i = std::get_if<int64_t>(&value_)) number(*i);
  if (const auto* x = std::get_if<double>(&value_)) {
    NEO_ASSERT(std::isfinite(*x), "JSON has no ", *x);
    number(*x);
  }
  if (const auto* text = std::get_if<std::string>(&value_)) print_string(*text, to);
  if (const auto* items = std::get_if<Array>(&value_)) {
    to += '[';
    for (size_t i = 0; i < items->size(); ++i) {
      if (i > 0) to += ',';
      (*items)[i].print(to);
    }
    to += ']';
  }
  if (const auto* members = std::get_if<Object>(&value_)) {
    to += '{';
    for (size_t i = 0; i < members->size(); ++i) {
      if (i > 0) to += ',';
      print_string((*members)[i].first, to);
      to += ':';
      (*members)[i].second.print(to);
    }
    to += '}';
  }
}

template <class T>
const T& Json::get(std::string_view expected) const {
  const T* value = std::get_if<T>(&value_);
  if (!value) {
    std::string got = dump();
    if (got.size() > 40) got.replace(40, got.npos, "...");
    fail(ErrorKind::Model, kWhere, str("a value must be of its kind. Got ", got, ", expected ", expected));
  }
  return *value;
}

bool Json::as_bool() const {
  return get<bool>("true or false");
}

int64_t Json::as_int(int64_t lo, int64_t hi) const {
  const int64_t value = get<int64_t>("an integer");
  NEO_CHECK(lo <= value && value <= hi, Model, kWhere, "a number must lie in its range. Got ", value, ", expected ", lo,
            " to ", hi);
  return value;
}

double Json::as_number() const {
  if (const auto* i = std::get_if<int64_t>(&value_)) return static_cast<double>(*i);
  return get<double>("a number");
}

const std::string& Json::as_string() const {
  return get<std::string>("a string");
}

const Json::Array& Json::as_array() const {
  return get<Array>("a list");
}

const Json::Object& Json::as_object() const {
  return get<Object>("an object");
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, value] : as_object()) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Json& Json::at(std::string_view key) const {
  const Json* value = find(key);
  NEO_CHECK(value != nullptr, Model, kWhere, "an object must have its members. Got none named \"", key, "\"");
  return *value;
}

}  // namespace neo
