#include "ops/regex.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/budget.h"
#include "base/check.h"
#include "ops/unicode.h"

namespace neo {

namespace {

constexpr char32_t kLastPoint = 0x10FFFF;
constexpr size_t kMaxSteps = 50000;
constexpr int kMaxRepeat = 1000;  // RE2's limit
constexpr int kMaxPatternDepth = 500;

using Ranges = std::vector<std::pair<char32_t, char32_t>>;

Ranges complement(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges result;
  char32_t next = 0;
  for (const auto& [low, high] : ranges) {
    if (low > next) result.emplace_back(next, low - 1);
    next = std::max<char32_t>(next, high + 1);
  }
  if (next <= kLastPoint) result.emplace_back(next, kLastPoint);
  return result;
}

const Ranges kDigits = {{'0', '9'}};
const Ranges kSpaces = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
const Ranges kWords = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

struct NamedClass {
  std::u32string_view name;
  Ranges ranges;
};

const std::array<NamedClass, 14> kNamedClasses = {{
    {U"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
    {U"alpha", {{'A', 'Z'}, {'a', 'z'}}},
    {U"ascii", {{0, 127}}},
    {U"blank", {{'\t', '\t'}, {' ', ' '}}},
    {U"cntrl", {{0, 31}, {127, 127}}},
    {U"digit", {{'0', '9'}}},
    {U"graph", {{'!', '~'}}},
    {U"lower", {{'a', 'z'}}},
    {U"print", {{' ', '~'}}},
    {U"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
    {U"space", {{'\t', '\r'}, {' ', ' '}}},
    {U"upper", {{'A', 'Z'}}},
    {U"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
    {U"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
}};

bool is_word_point(char32_t point) {
  return std::any_of(kWords.begin(), kWords.end(),
                     [point](const auto& range) { return point >= range.first && point <= range.second; });
}

}  // namespace

// Recursive descent that emits steps; a fragment starts at one step and leaves ends to be joined to what follows.
class RegexParser {
 public:
  RegexParser(Regex& regex, std::string_view pattern) : regex_(regex), text_(pattern), pattern_(decode_utf8(pattern)) {}

  void run() {
    const Fragment all = alternatives(0);
    NEO_CHECK(at_ == pattern_.size(), Model, "Regex", "parentheses must balance. Got \"", text_, "\"");
    const int match = emit({});
    join(all.ends, match);
    regex_.start_ = all.start;
  }

 private:
  struct End {
    int step;
    bool other;
  };
  struct Fragment {
    int start = -1;
    std::vector<End> ends;
  };
  struct Flags {
    bool ignore_case = false;
    bool multi_line = false;
    bool dot_newline = false;
  };
  using Kind = Regex::Kind;
  using Place = Regex::Place;
  using Step = Regex::Step;

  [[noreturn]] void refuse(const char* rule) const {
    fail(ErrorKind::Model, "Regex", str(rule, ". Got \"", text_, "\""));
  }

  bool more() const { return at_ < pattern_.size(); }
  char32_t peek() const { return more() ? pattern_[at_] : 0; }
  bool take(char32_t point) {
    if (!more() || pattern_[at_] != point) return false;
    ++at_;
    return true;
  }
  char32_t next() {
    if (!more()) refuse("a pattern must not end in the middle");
    return pattern_[at_++];
  }
  bool looking_at(std::u32string_view words) const {
    return pattern_.size() - at_ >= words.size() &&
           std::equal(words.begin(), words.end(), pattern_.begin() + static_cast<int64_t>(at_));
  }

  int emit(Step step) {
    NEO_CHECK(regex_.steps_.size() < kMaxSteps, Unsupported, "Regex", "a pattern must stay small. Got \"", text_, "\"");
    regex_.steps_.push_back(std::move(step));
    return static_cast<int>(regex_.steps_.size()) - 1;
  }
  void join(const std::vector<End>& ends, int target) {
    for (const End& end : ends) {
      Step& step = regex_.steps_[static_cast<size_t>(end.step)];
      (end.other ? step.other : step.next) = target;
    }
  }
  Fragment single(Step step) {
    const int at = emit(std::move(step));
    return {at, {{at, false}}};
  }
  // Takes nothing.
  Fragment nothing() {
    Step step;
    step.kind = Kind::Split;
    return single(step);
  }
  Fragment set(Ranges ranges) {
    if (flags_.ignore_case) {
      const size_t count = ranges.size();
      for (size_t i = 0; i < count; ++i) {
        const auto [low, high] = ranges[i];
        for (char32_t point = low; point <= std::min<char32_t>(high, 0x1EFF); ++point) {
          if (to_lower(point) != point) ranges.emplace_back(to_lower(point), to_lower(point));
          if (to_upper(point) != point) ranges.emplace_back(to_upper(point), to_upper(point));
        }
      }
    }
    Step step;
    step.kind = Kind::Set;
    step.ranges = std::move(ranges);
    return single(std::move(step));
  }
  Fragment point_set(char32_t point) { return set({{point, point}}); }
  Fragment assertion(Place place) {
    Step step;
    step.kind = Kind::Assert;
    step.place = place;
    return single(step);
  }

  Fragment sequence(Fragment first, Fragment second) {
    join(first.ends, second.start);
    return {first.start, std::move(second.ends)};
  }
  Fragment either(Fragment first, Fragment second) {
    Step step;
    step.kind = Kind::Split;
    step.next = first.start;
    step.other = second.start;
    const int split = emit(step);
    first.ends.insert(first.ends.end(), second.ends.begin(), second.ends.end());
    return {split, std::move(first.ends)};
  }
  // Any number of times; the way out is the split's other end.
  Fragment loop(Fragment body) {
    Step step;
    step.kind = Kind::Split;
    step.next = body.start;
    const int split = emit(step);
    join(body.ends, split);
    return {split, {{split, true}}};
  }

  Fragment alternatives(int depth) {
    NEO_CHECK(depth < kMaxPatternDepth, Unsupported, "Regex", "a pattern must not nest deeper. Got more than ",
              kMaxPatternDepth, " levels");
    const Flags outer = flags_;
    Fragment result = concatenation(depth);
    while (take('|')) {
      Fragment other = concatenation(depth);
      result = either(std::move(result), std::move(other));
    }
    flags_ = outer;
    return result;
  }

  Fragment concatenation(int depth) {
    Fragment result = nothing();
    while (more() && peek() != '|' && peek() != ')') result = sequence(std::move(result), repetition(depth));
    return result;
  }

  // The copies that a counted repeat needs are made by parsing the piece again.
  Fragment repetition(int depth) {
    const size_t begin = at_;
    const Flags flags = flags_;
    Fragment first = piece(depth);
    int low = 0;
    std::optional<int> high;
    if (!repeat_sign(low, high)) return first;
    take('?');  // a lazy repeat takes the same texts
    const size_t end = at_;
    if (peek() == '*' || peek() == '+' || peek() == '?') refuse("a repeat must follow a piece");
    if (low == 0 && !high) return loop(std::move(first));
    bool used = false;
    const auto one = [&] {
      if (!std::exchange(used, true)) return std::move(first);
      at_ = begin;
      const Flags kept = std::exchange(flags_, flags);
      Fragment copy = piece(depth);
      flags_ = kept;
      return copy;
    };
    Fragment result = nothing();
    for (int i = 0; i < low; ++i) result = sequence(std::move(result), one());
    if (!high) result = sequence(std::move(result), loop(one()));
    for (int i = low; high && i < *high; ++i) {
      Fragment turn = one();
      result = sequence(std::move(result), either(std::move(turn), nothing()));
    }
    at_ = end;
    return result;
  }

  bool repeat_sign(int& low, std::optional<int>& high) {
    if (take('*')) return true;
    if (take('?')) {
      high = 1;
      return true;
    }
    if (take('+')) {
      low = 1;
      return true;
    }
    return peek() == '{' && counts(low, high);
  }

  // {n}, {n,} or {n,m}; anything else is plain text.
  bool counts(int& low, std::optional<int>& high) {
    const size_t begin = at_;
    const auto number = [&]() -> std::optional<int> {
      if (!(peek() >= '0' && peek() <= '9')) return std::nullopt;
      int value = 0;
      while (more() && peek() >= '0' && peek() <= '9')
        value = std::min(kMaxRepeat + 1, value * 10 + static_cast<int>(next() - '0'));
      return value;
    };
    if (!take('{')) return false;
    const auto first = number();
    std::optional<int> second = first;
    const bool open = first && take(',');
    if (open) second = number();
    if (!first || !take('}')) {
      at_ = begin;
      return false;
    }
    if (*first > kMaxRepeat || (second && (*second > kMaxRepeat || *second < *first)))
      refuse("a repeat must have at most 1000 turns, in order");
    low = *first;
    high = second;
    return true;
  }

  Fragment piece(int depth) {
    const char32_t point = next();
    switch (point) {
      case '(':
        return group(depth);
      case '[':
        return set(bracket());
      case '.':
        return set(flags_.dot_newline ? Ranges{{0, kLastPoint}} : complement({{'\n', '\n'}}));
      case '^':
        return assertion(flags_.multi_line ? Place::LineBegin : Place::TextBegin);
      case '$':
        return assertion(flags_.multi_line ? Place::LineEnd : Place::TextEnd);
      case '\\':
        return escape();
      case '*':
      case '+':
      case '?':
        refuse("a repeat must follow a piece");
      default:
        return point_set(point);
    }
  }

  Fragment group(int depth) {
    if (take('?')) {
      if (looking_at(U"P<") || looking_at(U"<")) {
        take('P');
        if (looking_at(U"<=") || looking_at(U"<!")) refuse("RE2 has no look-behind");
        while (next() != '>') {
        }
      } else {
        if (peek() == '=' || peek() == '!') refuse("RE2 has no look-ahead");
        Flags flags = flags_;
        bool on = true;
        while (peek() != ')' && peek() != ':') {
          switch (next()) {
            case 'i':
              flags.ignore_case = on;
              break;
            case 'm':
              flags.multi_line = on;
              break;
            case 's':
              flags.dot_newline = on;
              break;
            case 'U':
              break;
            case '-':
              on = false;
              break;
            default:
              refuse("flags must be i, m, s or U");
          }
        }
        if (take(')')) {
          flags_ = flags;  // to the end of the group around it
          return nothing();
        }
        take(':');
        const Flags outer = std::exchange(flags_, flags);
        Fragment inside = alternatives(depth + 1);
        flags_ = outer;
        if (!take(')')) refuse("parentheses must balance");
        return inside;
      }
    }
    Fragment inside = alternatives(depth + 1);
    if (!take(')')) refuse("parentheses must balance");
    return inside;
  }

  // \d, \S, ...; nothing for other escapes.
  static std::optional<Ranges> escaped_class(char32_t letter) {
    switch (letter) {
      case 'd':
        return kDigits;
      case 'D':
        return complement(kDigits);
      case 's':
        return kSpaces;
      case 'S':
        return complement(kSpaces);
      case 'w':
        return kWords;
      case 'W':
        return complement(kWords);
      default:
        return std::nullopt;
    }
  }

  static std::optional<int> digit_of(char32_t point, int base) {
    int value = -1;
    if (point >= '0' && point <= '9') value = static_cast<int>(point - '0');
    if (point >= 'a' && point <= 'f') value = static_cast<int>(point - 'a') + 10;
    if (point >= 'A' && point <= 'F') value = static_cast<int>(point - 'A') + 10;
    return value >= 0 && value < base ? std::optional(value) : std::nullopt;
  }

  // The code point an escape stands for.
  char32_t escaped_point(char32_t letter) {
    switch (letter) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'a':
        return '\a';
      case 'x': {
        char32_t value = 0;
        const bool braces = take('{');
        for (int i = 0; braces ? peek() != '}' : i < 2; ++i) {
          const auto digit = digit_of(next(), 16);
          if (!digit || i > 5) refuse("\\x must be followed by hexadecimal digits");
          value = value * 16 + static_cast<char32_t>(*digit);
        }
        if (braces) take('}');
        if (value > kLastPoint) refuse("a code point must be at most 10FFFF");
        return value;
      }
      case 'p':
      case 'P':
      case 'C':
        fail(ErrorKind::Unsupported, "Regex",
             str("Unicode classes and single bytes are not supported. Got \"", text_, "\""));
      default:
        break;
    }
    if (letter == '0') {
      char32_t value = 0;
      for (int i = 0; i < 2 && digit_of(peek(), 8); ++i)
        value = value * 8 + static_cast<char32_t>(*digit_of(next(), 8));
      return value;
    }
    if (is_word_point(letter)) refuse("an escaped letter must be one that RE2 knows");
    return letter;
  }

  Fragment escape() {
    const char32_t letter = next();
    if (auto ranges = escaped_class(letter)) return set(std::move(*ranges));
    switch (letter) {
      case 'A':
        return assertion(Place::TextBegin);
      case 'z':
        return assertion(Place::TextEnd);
      case 'b':
        return assertion(Place::WordBoundary);
      case 'B':
        return assertion(Place::NoWordBoundary);
      case 'Q': {
        Fragment all = nothing();
        while (more() && !looking_at(U"\\E")) all = sequence(std::move(all), point_set(next()));
        if (more()) at_ += 2;
        return all;
      }
      default:
        return point_set(escaped_point(letter));
    }
  }

  Ranges bracket() {
    const bool negated = take('^');
    Ranges ranges;
    bool first = true;
    while (first || peek() != ']') {
      first = false;
      if (looking_at(U"[:")) {
        named_class(ranges);
        continue;
      }
      char32_t low = next();
      if (low == '\\') {
        const char32_t letter = next();
        if (const auto known = escaped_class(letter)) {
          ranges.insert(ranges.end(), known->begin(), known->end());
          continue;
        }
        low = escaped_point(letter);
      }
      char32_t high = low;
      if (peek() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']') {
        ++at_;
        high = next();
        if (high == '\\') high = escaped_point(next());
        if (high < low) refuse("a range must be in order");
      }
      ranges.emplace_back(low, high);
    }
    ++at_;
    if (!negated) return ranges;
    if (flags_.ignore_case) {
      const size_t count = ranges.size();
      for (size_t i = 0; i < count; ++i) {
        for (char32_t p = ranges[i].first; p <= std::min<char32_t>(ranges[i].second, 0x1EFF); ++p) {
          ranges.emplace_back(to_lower(p), to_lower(p));
          ranges.emplace_back(to_upper(p), to_upper(p));
        }
      }
    }
    return complement(std::move(ranges));
  }

  void named_class(Ranges& ranges) {
    at_ += 2;
    const bool negated = take('^');
    for (const NamedClass& named : kNamedClasses) {
      if (!looking_at(std::u32string(named.name) + U":]")) continue;
      at_ += named.name.size() + 2;
      const Ranges known = negated ? complement(named.ranges) : named.ranges;
      ranges.insert(ranges.end(), known.begin(), known.end());
      return;
    }
    refuse("a named class must be one that RE2 knows");
  }

  Regex& regex_;
  std::string_view text_;
  std::vector<char32_t> pattern_;
  size_t at_ = 0;
  Flags flags_;
};

Regex::Regex(std::string_view pattern) {
  RegexParser(*this, pattern).run();
}

bool Regex::matches_whole(std::string_view text) const {
  const auto points = decode_utf8(text);
  return longest_match(points, 0) == points.size();
}

std::optional<size_t> Regex::longest_match(const std::vector<char32_t>& points, size_t from) const {
  std::optional<size_t> end;
  std::vector<int> current;
  std::vector<int> next;
  std::vector<int> pending;
  std::vector<size_t> seen(steps_.size(), SIZE_MAX);
  const auto holds = [&](Place place, size_t at) {
    const bool before = at > 0 && is_word_point(points[at - 1]);
    const bool after = at < points.size() && is_word_point(points[at]);
    switch (place) {
      case Place::TextBegin:
        return at == 0;
      case Place::TextEnd:
        return at == points.size();
      case Place::LineBegin:
        return at == 0 || points[at - 1] == '\n';
      case Place::LineEnd:
        return at == points.size() || points[at] == '\n';
      case Place::WordBoundary:
        return before != after;
      case Place::NoWordBoundary:
        return before == after;
      case Place::Nowhere:
        break;
    }
    return false;
  };
  // Adds a step and all that it reaches without taking a code point.
  const auto add = [&](int start, size_t at, std::vector<int>& list) {
    pending.push_back(start);
    while (!pending.empty()) {
      const int i = pending.back();
      pending.pop_back();
      if (i < 0 || seen[static_cast<size_t>(i)] == at) continue;
      seen[static_cast<size_t>(i)] = at;
      const Step& step = steps_[static_cast<size_t>(i)];
      if (step.kind == Kind::Split) {
        pending.push_back(step.other);
        pending.push_back(step.next);
      } else if (step.kind == Kind::Assert) {
        if (holds(step.place, at)) pending.push_back(step.next);
      } else {
        list.push_back(i);
      }
    }
  };
  add(start_, from, current);
  for (size_t at = from;; ++at) {
    checkpoint();
    next.clear();
    for (const int i : current) {
      const Step& step = steps_[static_cast<size_t>(i)];
      if (step.kind == Kind::Match) end = at;
      if (step.kind != Kind::Set || at == points.size()) continue;
      const char32_t point = points[at];
      const bool inside = std::any_of(step.ranges.begin(), step.ranges.end(), [point](const auto& range) {
        return point >= range.first && point <= range.second;
      });
      if (inside) add(step.next, at + 1, next);
    }
    std::swap(current, next);
    if (current.empty()) return end;
  }
}

}  // namespace neo
