#include "fuzz/json_edit.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace neo::fuzz {
namespace {

constexpr std::string_view kNumbers[] = {"-1",
                                         "0",
                                         "1",
                                         "2",
                                         "3",
                                         "7",
                                         "16",
                                         "63",
                                         "64",
                                         "65",
                                         "1000",
                                         "1000000",
                                         "2147483647",
                                         "2147483648",
                                         "4294967296",
                                         "70368744177664",
                                         "1099511627776",
                                         "4611686018427387904",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "18446744073709551616",
                                         "0.5",
                                         "-0.0",
                                         "1e308",
                                         "1e-320"};

// Pieces of the texts that plans hold: types, layouts, schemas, sizes, workloads.
constexpr std::string_view kWords[] = {"",         "x",        "N",          "M",
                                       "float32",  "float16",  "bfloat16",   "float64",
                                       "int64",    "int32",    "int8",       "uint8",
                                       "bool",     "string",   "[1]",        "[]",
                                       "[*]",      "[N,4]",    "NCHW",       "NCHW16c",
                                       "NHWC",     "cpu",      "cpu:",       "->",
                                       "seq(",     "opt(",     ")",          "(",
                                       "{",        "}",        "[",          "]",
                                       ",",        "=",        "%0",         "k0",
                                       "k1",       "k99",      "+",          "*",
                                       "//",       "mod",      "min(",       "max(",
                                       "ceildiv",  "-1",       "0",          "1",
                                       "2",        "99",       "4294967296", "70368744177664",
                                       "arena",    "view",     "owned",      "result",
                                       "argument", "constant", "equal",      "divides",
                                       "step",     "dims",     "if",         "loop",
                                       "scan",     "avx2",     "scalar",     "avx512",
                                       "\xff",     "\\u0000"};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  std::vector<Value> scan() {
    value(0, npos);
    std::sort(values_.begin(), values_.end(), [](const Value& a, const Value& b) { return a.begin < b.begin; });
    return std::move(values_);
  }

 private:
  static constexpr size_t npos = static_cast<size_t>(-1);
  static constexpr int kMaxDepth = 64;

  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool string() {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        return true;
      }
    }
    return false;
  }
  bool value(int depth, size_t member) {
    const char first = peek();
    Value found{member == npos ? at_ : member, at_, at_, first};
    if (first == '\0' || depth > kMaxDepth) return false;
    if (first == '{' || first == '[') {
      const char close = first == '{' ? '}' : ']';
      ++at_;
      while (peek() != close) {
        size_t key = npos;
        if (first == '{') {
          key = at_;
          if (peek() != '"' || !string() || peek() != ':') return false;
          ++at_;
        }
        if (!value(depth + 1, key)) return false;
        if (peek() != ',') break;
        ++at_;
      }
      if (peek() != close) return false;
      ++at_;
    } else if (first == '"') {
      if (!string()) return false;
    } else {
      const size_t begin = at_;
      while (at_ < text_.size() && std::string_view(",]} \n\t\r").find(text_[at_]) == std::string_view::npos) ++at_;
      if (at_ == begin) return false;
      found.kind = first == '-' || (first >= '0' && first <= '9') ? 'n' : 'w';
    }
    found.end = at_;
    values_.push_back(found);
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Value> values_;
};

template <size_t N>
std::string_view pick(const std::string_view (&from)[N], Random& random) {
  return from[random.below(N)];
}

std::string other_number(std::string_view text, Random& random) {
  int64_t number = 0;
  const bool is_int = std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
  const auto u = static_cast<uint64_t>(number);
  switch (is_int ? random.below(7) : 6) {
    case 0:
    case 1:
      return std::to_string(static_cast<int64_t>(u + 1));
    case 2:
      return std::to_string(static_cast<int64_t>(u - 1));
    case 3:
      return std::to_string(static_cast<int64_t>(u * 2));
    case 4:
      return std::to_string(static_cast<int64_t>(u / 2));
    case 5:
      return std::to_string(static_cast<int64_t>(u * 64));
    default:
      return std::string(pick(kNumbers, random));
  }
}

// Another text of the same kind of grammar: a number or a word of it replaced, left out, put in or doubled.
std::string other_text(std::string text, Random& random) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (random.below(3) > 0) {
    std::vector<std::pair<size_t, size_t>> numbers;
    for (size_t i = 0; i < text.size();) {
      size_t end = i;
      while (end < text.size() && is_digit(text[end])) ++end;
      if (end > i) numbers.emplace_back(i, end - i);
      i = std::max(end, i + 1);
    }
    if (!numbers.empty()) {
      const auto [at, length] = numbers[random.below(numbers.size())];
      return text.replace(at, length, other_number(text.substr(at, length), random));
    }
  }
  const size_t at = random.below(text.size() + 1), length = std::min(random.below(8), text.size() - at);
  switch (random.below(5)) {
    case 0:
      return text.erase(at, length);
    case 1:
      return text.insert(at, text.substr(at, length));
    case 2:
      return text.replace(at, length, pick(kWords, random));
    case 3:
      return std::string(pick(kWords, random));
    default:
      return text.insert(at, pick(kWords, random));
  }
}

std::string of_any_kind(Random& random) {
  constexpr std::string_view kAny[] = {"[]", "{}", "null", "true", "false", "\"\"", "\"1\"", "[[]]", "[0]", "0.5"};
  return random.one_in(2) ? std::string(pick(kAny, random)) : std::string(pick(kNumbers, random));
}

// A value of the kind from a text.
std::string_view twin(std::string_view json, const std::vector<Value>& values, char kind, Random& random) {
  for (int tries = 0; tries < 32 && !values.empty(); ++tries) {
    const Value& v = values[random.below(values.size())];
    if (v.kind == kind) return json.substr(v.begin, v.end - v.begin);
  }
  return {};
}

std::string edit_once(std::string json, std::string_view donor, Random& random) {
  const std::vector<Value> values = find_values(json);
  if (values.empty()) return json;
  const Value& v = values[random.below(values.size())];
  const std::string text = json.substr(v.begin, v.end - v.begin);
  const auto replace = [&](std::string_view by) { return json.replace(v.begin, v.end - v.begin, by); };
  const size_t way = random.below(16);
  if (way == 0) return replace(of_any_kind(random));
  if (way <= 2) {  // left out, with its key and one comma
    size_t begin = v.member, end = v.end;
    if (end < json.size() && json[end] == ',') {
      ++end;
    } else if (begin > 0 && json[begin - 1] == ',') {
      --begin;
    }
    return json.erase(begin, end - begin);
  }
  if (way == 3) return json.insert(v.end, "," + json.substr(v.member, v.end - v.member));  // twice
  if (way <= 7 || v.kind == '{' || v.kind == '[') {
    const bool from_donor = !donor.empty() && random.one_in(2);
    const std::string other(from_donor ? twin(donor, find_values(donor), v.kind, random)
                                       : twin(json, values, v.kind, random));
    return other.empty() ? json : replace(other);
  }
  if (v.kind == 'n') return replace(other_number(text, random));
  if (v.kind == '"') return replace(escape(other_text(unescape(text), random)));
  return replace(text == "true" ? "false" : "true");
}

}  // namespace

std::vector<Value> find_values(std::string_view json) {
  return Scanner(json).scan();
}

std::string unescape(std::string_view quoted) {
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  std::string out;
  for (size_t i = 1; i + 1 < quoted.size(); ++i) {
    if (quoted[i] != '\\') {
      out += quoted[i];
      continue;
    }
    const size_t name = kNames.find(quoted[++i]);
    if (name != std::string_view::npos) {
      out += kMeant[name];
    } else if (i + 4 < quoted.size()) {
      // What is not a byte of ASCII is of no use to an edit.
      unsigned code = 0;
      std::from_chars(&quoted[i] + 1, &quoted[i] + 5, code, 16);
      out += code < 0x80 ? static_cast<char>(code) : '?';
      i += 4;
    }
  }
  return out;
}

std::string escape(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string edit(std::string json, std::string_view donor, Random& random) {
  const size_t times = random.one_in(3) ? 1 + random.below(3) : 1;
  for (size_t i = 0; i < times; ++i) json = edit_once(std::move(json), donor, random);
  return json;
}

}  // namespace neo::fuzz
