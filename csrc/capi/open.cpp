#include "ops/op.h"
#include "saved/saved.h"

namespace neo {

SavedModule open_module(const FileBytes& file, const std::string& place) {
  return load_module(file, place, standard_ops(), standard_routines());
}

}  // namespace neo
