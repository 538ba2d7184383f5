#include "saved/short_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/budget.h"
#include "base/check.h"

namespace neo {
namespace {

// A reference is the mark, the distance to what it repeats as three digits, the highest first, and how many bytes more
// than kMinMatch it has: digits that are added up, all but the last of them the largest.
constexpr char kMark = '~';
constexpr size_t kDistanceDigits = 3;
constexpr size_t kMinMatch = 7;

// Digits are the printable characters that JSON writes as one byte, the mark aside.
constexpr std::string_view kDigits =
    " !#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}";
constexpr size_t kBase = kDigits.size();
constexpr size_t kMaxDistance = kBase * kBase * kBase - 1;

std::array<int8_t, 256> digit_values() {
  std::array<int8_t, 256> values;
  values.fill(-1);
  for (size_t i = 0; i < kBase; ++i) values[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
  return values;
}

// Whether a character goes on at this byte. References begin and end between characters.
bool is_inside(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80;
}

// Finds earlier places with the same beginning.
class Matches {
 public:
  explicit Matches(std::string_view text) : text_(text), heads_(kHeads, -1), earlier_(text.size(), -1) {}

  struct Match {
    size_t distance = 0;
    size_t length = 0;
  };
  Match longest(size_t at) const {
    Match best;
    int tries = kTries;
    for (int64_t from = heads_[key(at)]; from >= 0 && tries > 0; from = earlier_[static_cast<size_t>(from)], --tries) {
      const size_t distance = at - static_cast<size_t>(from);
      if (distance > kMaxDistance) break;
      const size_t length = common(static_cast<size_t>(from), at);
      if (length > best.length) best = {distance, length};
    }
    while (best.length > 0 && is_inside(text_, at + best.length)) --best.length;
    return best;
  }
  void add(size_t at) {
    if (at + kMinMatch > text_.size()) return;
    int64_t& head = heads_[key(at)];
    earlier_[at] = head;
    head = static_cast<int64_t>(at);
  }

 private:
  static constexpr size_t kHeads = size_t{1} << 16;
  static constexpr int kTries = 24;

  size_t key(size_t at) const {
    uint64_t word = 0;
    std::memcpy(&word, text_.data() + at, kMinMatch);
    return static_cast<size_t>((word * 0x9E3779B97F4A7C15u) >> 48);
  }
  size_t common(size_t from, size_t at) const {
    size_t length = 0;
    while (at + length < text_.size() && text_[from + length] == text_[at + length]) ++length;
    return length;
  }

  std::string_view text_;
  std::vector<int64_t> heads_;
  std::vector<int64_t> earlier_;
};

void write_reference(std::string& out, size_t distance, size_t length) {
  out += kMark;
  for (size_t unit = kBase * kBase; unit > 0; unit /= kBase) out += kDigits[distance / unit % kBase];
  size_t more = length - kMinMatch;
  for (; more >= kBase - 1; more -= kBase - 1) out += kDigits[kBase - 1];
  out += kDigits[more];
}

}  // namespace

std::string shorten(std::string_view text) {
  std::string out;
  Matches matches(text);
  for (size_t at = 0; at < text.size();) {
    Matches::Match match;
    if (at + kMinMatch <= text.size() && !is_inside(text, at)) match = matches.longest(at);
    size_t done = 1;
    if (match.length >= kMinMatch) {
      write_reference(out, match.distance, match.length);
      done = match.length;
    } else {
      out += text[at];
      if (text[at] == kMark) out += kMark;
    }
    for (const size_t end = at + done; at < end; ++at) matches.add(at);
  }
  return out;
}

std::string lengthen(std::string_view shortened, size_t max_bytes) {
  static const std::array<int8_t, 256> values = digit_values();
  std::string out;
  size_t at = 0;
  const auto digit = [&] {
    const int8_t value = at < shortened.size() ? values[static_cast<uint8_t>(shortened[at])] : int8_t{-1};
    NEO_CHECK(value >= 0, Model, "load", "a reference in a plan must be whole. Got another character at byte ", at);
    ++at;
    return static_cast<size_t>(value);
  };
  const auto grow = [&](size_t count) {
    NEO_CHECK(count <= max_bytes - out.size(), Model, "load", "a plan must have at most ", max_bytes,
              " bytes. Got more");
    // The text grows by doubling.
    if (out.size() + count > out.capacity()) require_memory(static_cast<int64_t>(2 * (out.size() + count)));
  };
  while (at < shortened.size()) {
    const char c = shortened[at++];
    const bool is_literal = c != kMark || (at < shortened.size() && shortened[at] == kMark);
    if (is_literal) {
      if (c == kMark) ++at;
      grow(1);
      out += c;
      continue;
    }
    size_t distance = 0, length = kMinMatch;
    for (size_t i = 0; i < kDistanceDigits; ++i) distance = distance * kBase + digit();
    for (size_t more = kBase - 1; more == kBase - 1; length += more) {
      more = digit();
      NEO_CHECK(length <= max_bytes, Model, "load", "a plan must have at most ", max_bytes, " bytes. Got more");
    }
    NEO_CHECK(distance > 0 && distance <= out.size(), Model, "load",
              "a reference in a plan must lead to what precedes it. Got ", distance, " bytes back, expected 1 to ",
              out.size());
    grow(length);
    // The repeated text may overlap the text that is being written.
    for (size_t i = 0; i < length; ++i) out += out[out.size() - distance];
  }
  return out;
}

}  // namespace neo
