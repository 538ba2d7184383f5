#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neo {

// Code points of UTF-8; a byte that is not part of a valid sequence stands for itself above the code points, so that
// encoding gives the same bytes back.
std::vector<char32_t> decode_utf8(std::string_view text);
std::string encode_utf8(const std::vector<char32_t>& points);

// Simple case mapping of ASCII, Latin, Greek and Cyrillic letters; other code points stay.
char32_t to_lower(char32_t point);
char32_t to_upper(char32_t point);

}  // namespace neo
