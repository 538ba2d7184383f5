#include "ops/unicode.h"

namespace neo {

namespace {

// Invalid bytes are kept as kRawByte + byte.
constexpr char32_t kRawByte = 0x110000;

bool between(char32_t point, char32_t low, char32_t high) {
  return point >= low && point <= high;
}

// Blocks in which upper and lower case letters alternate, upper case on the given parity.
bool alternates(char32_t point, char32_t& parity) {
  parity = between(point, 0x139, 0x148) || between(point, 0x179, 0x17E) ? 1 : 0;
  if (point == 0x130 || point == 0x131 || point == 0x138 || point == 0x149) return false;
  return between(point, 0x100, 0x177) || between(point, 0x179, 0x17E) || between(point, 0x460, 0x481) ||
         between(point, 0x48A, 0x4BF) || between(point, 0x4D0, 0x52F) || between(point, 0x1E00, 0x1E95) ||
         between(point, 0x1EA0, 0x1EFF);
}

}  // namespace

std::vector<char32_t> decode_utf8(std::string_view text) {
  std::vector<char32_t> points;
  points.reserve(text.size());
  size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xC2 && lead < 0xE0 ? 2
                          : lead >= 0xE0 && lead < 0xF0 ? 3
                          : lead >= 0xF0 && lead < 0xF5 ? 4
                                                        : 0;
    char32_t point = length == 1 ? lead : length == 2 ? lead & 0x1F : length == 3 ? lead & 0x0F : lead & 0x07;
    bool valid = length > 0 && i + length <= text.size();
    for (size_t k = 1; valid && k < length; ++k) {
      const auto byte = static_cast<uint8_t>(text[i + k]);
      valid = (byte & 0xC0) == 0x80;
      point = (point << 6) | (byte & 0x3F);
    }
    valid = valid && !(length == 3 && (point < 0x800 || between(point, 0xD800, 0xDFFF))) &&
            !(length == 4 && !between(point, 0x10000, 0x10FFFF));
    points.push_back(valid ? point : kRawByte + lead);
    i += valid ? length : 1;
  }
  return points;
}

std::string encode_utf8(const std::vector<char32_t>& points) {
  std::string text;
  const auto tail = [&](char32_t point, int shift) { text += static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
  for (const char32_t point : points) {
    if (point >= kRawByte) {
      text += static_cast<char>(point - kRawByte);
    } else if (point < 0x80) {
      text += static_cast<char>(point);
    } else if (point < 0x800) {
      text += static_cast<char>(0xC0 | (point >> 6));
      tail(point, 0);
    } else if (point < 0x10000) {
      text += static_cast<char>(0xE0 | (point >> 12));
      tail(point, 6);
      tail(point, 0);
    } else {
      text += static_cast<char>(0xF0 | (point >> 18));
      tail(point, 12);
      tail(point, 6);
      tail(point, 0);
    }
  }
  return text;
}

char32_t to_lower(char32_t point) {
  if (between(point, 'A', 'Z')) return point + 32;
  if (point < 0x80) return point;
  if (between(point, 0xC0, 0xDE) && point != 0xD7) return point + 32;
  if (between(point, 0x391, 0x3AB) && point != 0x3A2) return point + 32;
  if (between(point, 0x410, 0x42F)) return point + 32;
  if (between(point, 0x400, 0x40F)) return point + 80;
  if (between(point, 0x531, 0x556)) return point + 48;
  if (point == 0x178) return 0xFF;
  char32_t parity = 0;
  return alternates(point, parity) && (point & 1) == parity ? point + 1 : point;
}

char32_t to_upper(char32_t point) {
  if (between(point, 'a', 'z')) return point - 32;
  if (point < 0x80) return point;
  if (between(point, 0xE0, 0xFE) && point != 0xF7) return point - 32;
  if (point == 0x3C2) return 0x3A3;
  if (between(point, 0x3B1, 0x3CB)) return point - 32;
  if (between(point, 0x430, 0x44F)) return point - 32;
  if (between(point, 0x450, 0x45F)) return point - 80;
  if (between(point, 0x561, 0x586)) return point - 48;
  if (point == 0xFF) return 0x178;
  char32_t parity = 0;
  return alternates(point, parity) && (point & 1) != parity ? point - 1 : point;
}

}  // namespace neo
