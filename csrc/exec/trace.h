#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "exec/binding.h"

namespace neo {

// One record per executed item, in order of end.
struct TraceEvent {
  const Item* item = nullptr;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int iteration = -1;                      // of the innermost loop
  int executor = 0;                        // that ran it
  std::shared_ptr<const Binding> binding;  // of the item's region
};

// Told of every value that an item of the outermost block has just written: a copy on the host, row-major, whatever the
// plan's layout.
using ValueObserver = std::function<void(const Item& item, const std::string& value, HostValue copy)>;

}  // namespace neo
