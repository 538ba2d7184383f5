#pragma once

#include <cstddef>

namespace neo {

// Writes back and drops the cache lines of [data, data + bytes) from every cache of the machine; false where this
// machine offers no way.
bool flush_lines(const void* data, size_t bytes);

}  // namespace neo
