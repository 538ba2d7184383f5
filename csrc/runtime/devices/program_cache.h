#pragma once

#include <optional>
#include <string>
#include <vector>

namespace neo {

// Programs as a driver compiled them, one file each, in the folder neo/programs of the user's cache folder
// ($XDG_CACHE_HOME, else ~/.cache). A file is whole or it is not there: it gets its name when all of it is written, so
// that processes do not disturb one another. A file that cannot be read or written is left out in silence: the
// cache only saves time.
class ProgramCache {
 public:
  // `key` holds all that the binary depends on: device, driver, options, source.
  static std::optional<std::string> load(const std::string& key);
  static void store(const std::string& key, const std::string& binary);
  static void remove(const std::string& key);
  // The folder; empty where there is no home.
  static std::string folder();
};

}  // namespace neo
