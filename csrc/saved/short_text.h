#pragma once

#include <string>
#include <string_view>

namespace neo {

// Text in which what repeats refers back (docs/saved_modules.md, "Short plans"): plans say the same of every layer. It
// is printable and UTF-8 where the text is.
std::string shorten(std::string_view text);

// The text that was shortened. A Model error where a reference leads out of it, or where it is longer than `max_bytes`.
std::string lengthen(std::string_view shortened, size_t max_bytes);

}  // namespace neo
