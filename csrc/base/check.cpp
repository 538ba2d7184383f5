#include "base/check.h"

#include <charconv>

namespace neo {
namespace {

template <class... Form>
void append_number(std::string& out, Form... form) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, form...).ptr;
  out.append(buffer, end);
}

}  // namespace

void append_text(std::string& out, int64_t x) {
  append_number(out, x);
}
void append_text(std::string& out, uint64_t x) {
  append_number(out, x);
}
void append_text(std::string& out, double x) {
  append_number(out, x, std::chars_format::general, 6);
}

void fail(ErrorKind kind, std::string_view where, const std::string& text) {
  std::string message = str("[", where, "] ", text);
  if (kind == ErrorKind::Internal)
    message += "\nHint: this is a bug in neo; please report it with the model and this line.";
  throw Error(kind, std::move(message));
}

}  // namespace neo
