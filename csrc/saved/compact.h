#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "routines/families.h"
#include "saved/saved.h"

namespace neo {

// The plan of one saved module as an exported library holds it (docs/export.md): what loading has checked is written
// down, so that reading it again needs no parser, no shape inference and no routine but what makes the plan's steps.
// Nothing in it is checked: it is part of the program.

using Sha256 = std::array<uint8_t, 32>;

// Bytes of the saved module that the plan relies on, beside its header: contents of constants that are not floats.
struct FileSpan {
  int64_t begin = 0;
  int64_t end = 0;
};

struct CompactModule {
  std::vector<std::byte> bytes;
  std::vector<std::string_view> makers;    // of families.h, by the number that the plan gives a routine
  std::vector<std::string_view> families;  // of ops/families.h, whose references the plan runs
  uint32_t depthwise_forms = 0;            // of its kernels, a bit each (depthwise.h)
};

// `file` is the module that `module` was loaded from.
CompactModule write_compact(const SavedModule& module, const FileBytes& file);

// Refuses every file but the one that `bytes` was written from.
SavedModule read_compact(std::span<const std::byte> bytes, const FileBytes& file, std::span<const MakeStep> makers,
                         const OpRegistry& ops);

Sha256 sha256(std::span<const std::span<const std::byte>> pieces);

}  // namespace neo
