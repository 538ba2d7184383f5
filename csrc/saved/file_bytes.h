#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace neo {

// The bytes of a saved module, kept alive by `owner`. Their address is a multiple of 64.
struct FileBytes {
  std::shared_ptr<void> owner;
  std::span<const std::byte> bytes;
};

// Maps a regular file for reading; pages are read when they are touched. The file must not change while it is mapped.
FileBytes map_file(const std::string& path);
// A copy of bytes in memory.
FileBytes copy_bytes(std::span<const std::byte> bytes);

// Writes pieces one after the other to a temporary file beside `path`, makes it durable and renames it. On an error
// nothing is left behind and what was at `path` stays. A device or a pipe is written where it stands.
void write_file(const std::string& path, std::span<const std::span<const std::byte>> pieces);

}  // namespace neo
