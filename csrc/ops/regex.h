#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace neo {

// A regular expression in RE2's syntax over code points, matched in time linear in the text (Thompson 1968). Unicode
// classes
// (\p{...}) and \C are Unsupported errors; a malformed pattern is a Model error.
class Regex {
 public:
  explicit Regex(std::string_view pattern);
  bool matches_whole(std::string_view text) const;
  // The end of the longest match that begins at `from`, if there is one; `points` is the whole text.
  std::optional<size_t> longest_match(const std::vector<char32_t>& points, size_t from) const;

 private:
  friend class RegexParser;
  enum class Kind : uint8_t { Set, Split, Assert, Match };
  enum class Place : uint8_t { TextBegin, TextEnd, LineBegin, LineEnd, WordBoundary, NoWordBoundary, Nowhere };
  using Ranges = std::vector<std::pair<char32_t, char32_t>>;  // closed
  struct Step {
    Kind kind = Kind::Match;
    Place place = Place::Nowhere;
    int next = -1;
    int other = -1;  // the second way of a Split
    Ranges ranges;   // of a Set
  };
  std::vector<Step> steps_;
  int start_ = 0;
};

}  // namespace neo
