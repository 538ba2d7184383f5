#include "base/check.h"

#include <cstdio>
#include <sstream>

namespace neo {
namespace {

constexpr size_t kMaxText = 2000;

// How many bytes from `at` make a character of UTF-8 that is printed as it is; 0: none.
size_t printable_length(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = byte(at);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const size_t length = first >= 0xF0 && first < 0xF5 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first >= 0xF5) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  unsigned code = first & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) code = code << 6 | (byte(at + i) & 0x3F);
  const bool is_control = code < 0xA1 || (code >= 0x2000 && code <= 0x200F) || (code >= 0x2028 && code <= 0x202F) ||
                          (code >= 0x205F && code <= 0x206F) || (code >= 0xD800 && code <= 0xF8FF) || code >= 0xFFF0;
  return is_control ? 0 : length;
}

std::string readable(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = printable_length(text, i);
    const bool is_hint = text[i] == '\n' && text.substr(i + 1).starts_with("Hint: ");
    if (length > 0 || is_hint) {
      out += text.substr(i, std::max<size_t>(length, 1));
      i += std::max<size_t>(length, 1);
      continue;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[i])));
    out += escaped;
    ++i;
  }
  return out;
}

// The middle of a long text left out, whole characters kept.
std::string shortened(std::string text) {
  if (text.size() <= kMaxText) return text;
  const auto is_inside = [&](size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80; };
  size_t head = kMaxText / 2;
  size_t tail = text.size() - kMaxText / 2;
  while (head > 0 && is_inside(head)) --head;
  while (tail < text.size() && is_inside(tail)) ++tail;
  return str(std::string_view(text).substr(0, head), " [...] ", std::string_view(text).substr(tail));
}

}  // namespace

void TextPart::print(std::ostream& out) const {
  switch (kind_) {
    case Kind::Text:
      out << std::string_view(text_, size_);
      break;
    case Kind::Literal:
      out << text_;
      break;
    case Kind::Character:
      out << static_cast<char>(integer_);
      break;
    case Kind::Integer:
      out << integer_;
      break;
    case Kind::Unsigned:
      out << static_cast<uint64_t>(integer_);
      break;
    case Kind::Real:
      out << real_;
      break;
  }
}

std::string join(std::initializer_list<TextPart> parts) {
  std::ostringstream out;
  for (const TextPart& part : parts) part.print(out);
  return out.str();
}

void fail(ErrorKind kind, std::string_view where, const std::string& text) {
  std::string message = shortened(readable(str("[", where, "] ", text)));
  if (kind == ErrorKind::Internal)
    message += "\nHint: this is a bug in neo; please report it with the model and this line.";
  throw Error(kind, std::move(message));
}

void fail_with(ErrorKind kind, const TextPart& where, std::initializer_list<TextPart> text) {
  fail(kind, join({where}), join(text));
}

}  // namespace neo
