#include "ir/text.h"

#include <algorithm>

namespace neo {

std::string quote(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 0xF];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string print_name(std::string_view name) {
  const bool plain = !name.empty() && is_word_start(name[0]) && std::all_of(name.begin(), name.end(), is_word);
  return plain ? std::string(name) : quote(name);
}

std::optional<std::string> unquote(std::string_view text, size_t& at) {
  const auto digit = [](char c) {
    if (is_digit(c)) return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string out;
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"') {
      ++at;
      return out;
    }
    if (text[at] != '\\') {
      out += text[at];
      continue;
    }
    if (++at == text.size()) break;
    if (text[at] == 'x' && at + 2 < text.size() && digit(text[at + 1]) >= 0 && digit(text[at + 2]) >= 0) {
      out += static_cast<char>(digit(text[at + 1]) * 16 + digit(text[at + 2]));
      at += 2;
    } else {
      out += text[at] == 'n' ? '\n' : text[at];
    }
  }
  return std::nullopt;
}

}  // namespace neo
