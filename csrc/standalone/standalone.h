#pragma once

#include <span>

#include "routines/families.h"

namespace neo {

// The parts that `neo export` writes for one model (parts.cpp of an export).
struct ExportedParts {
  std::span<const std::byte> plan;  // read_compact() reads it
  std::span<const MakeStep> makers;
  void (*add_ops)(OpRegistry&);  // families whose references run
};
ExportedParts exported_parts();

}  // namespace neo
