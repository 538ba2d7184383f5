#include "runtime/devices/driver_library.h"

#include <dlfcn.h>

#include "base/check.h"

namespace neo {

DriverLibrary::DriverLibrary(std::string_view where, const std::vector<std::string>& names, std::string_view hint)
    : where_(where) {
  std::string said;
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      name_ = name;
      return;
    }
    const char* error = dlerror();
    if (said.empty() && error != nullptr) said = error;
  }
  fail(ErrorKind::Resource, where, str("the library ", names.front(), " must be there. Got: ", said, "\nHint: ", hint));
}

void* DriverLibrary::find(const char* symbol, bool optional) const {
  void* found = dlsym(handle_, symbol);
  NEO_CHECK(found != nullptr || optional, Resource, where_, "the library ", name_, " must have ", symbol,
            ". Got a library without it");
  return found;
}

}  // namespace neo
