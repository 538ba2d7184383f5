#pragma once

#include <cstdint>
#include <string>

namespace neo {

// Copies strings, whose text is counted as memory taken.
void copy_strings(const std::string* from, int64_t count, std::string* to);

}  // namespace neo
