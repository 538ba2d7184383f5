#include "standalone/standalone.h"

#include "base/check.h"
#include "saved/compact.h"

namespace neo {

SavedModule open_module(const FileBytes& file, const std::string& place, const Quota& /*quota*/) {
  const ExportedParts parts = exported_parts();
  static const OpRegistry ops = [&] {
    OpRegistry used;
    parts.add_ops(used);
    return used;
  }();
  try {
    return read_compact(parts.plan, file, parts.makers, ops);
  } catch (const Error& error) {
    fail_at(error, place);
  }
}

}  // namespace neo
