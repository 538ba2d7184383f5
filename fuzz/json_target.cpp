// Any text: what is read and printed is read as the same.

#include <cstdlib>
#include <string>

#include "base/check.h"
#include "base/json.h"
#include "fuzz/counts.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using neo::Json;
  using neo::fuzz::Reached;
  std::string text;
  try {
    text = Json::parse({reinterpret_cast<const char*>(data), size}).dump();
  } catch (const neo::Error& error) {
    if (error.kind() != neo::ErrorKind::Model) std::abort();
    neo::fuzz::count(Reached::Nothing);
    return 0;
  }
  if (Json::parse(text).dump() != text) std::abort();
  neo::fuzz::count(Reached::Ran);
  return 0;
}
