#include "base/check.h"

namespace neo {

void fail(ErrorKind kind, std::string_view where, const std::string& text) {
  std::string message = str("[", where, "] ", text);
  if (kind == ErrorKind::Internal)
    message += "\nHint: this is a bug in neo; please report it with the model and this line.";
  throw Error(kind, std::move(message));
}

}  // namespace neo
