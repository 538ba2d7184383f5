#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace neo {

// Lexical rules that the printed forms of sizes, types and graphs share (docs/ir.md).
inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
inline bool is_word_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool is_word(char c) {
  return is_word_start(c) || is_digit(c) || c == '.';
}

// In double quotes, with \" \\ \n and \xHH for other control characters.
std::string quote(std::string_view text);
// A word as it is, anything else in quotes.
std::string print_name(std::string_view name);
// Reads what quote() wrote from text[at], a quote, and moves `at` behind it; null where it does not end.
std::optional<std::string> unquote(std::string_view text, size_t& at);

}  // namespace neo
