#include "capi/errors.h"
#include "capi/modules.h"
#include "capi/neo.h"
#include "saved/file_bytes.h"

// model.S
extern "C" const std::byte neo_embedded_begin[];
extern "C" const std::byte neo_embedded_end[];

// As in neo_embedded.h, which programs include.
extern "C" NEO_API int neo_load_embedded(int threads, neo_module** module) {
  using namespace neo::capi;  // NOLINT: what follows is the face of this namespace
  return guarded([&] {
    check_pointer(module, "neo_load_embedded", "module");
    neo::FileBytes file;
    file.bytes = {neo_embedded_begin, neo_embedded_end};
    file.owner = std::shared_ptr<void>(const_cast<std::byte*>(neo_embedded_begin), [](void*) {});  // never ends
    *module = load(file, "the exported library", threads);
  });
}
