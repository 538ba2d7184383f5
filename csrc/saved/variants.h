#pragma once

#include <optional>
#include <span>

#include "saved/saved.h"

namespace neo {

// Several variants of one module in one file (docs/saved_modules.md): for other instruction sets, for other ranges of
// the inputs' sizes.

// The sizes that an input may have by axis; nothing where even the rank is open.
using AxisRanges = std::optional<std::vector<Range>>;
// The ranges of the axes of every input of a plan, as its first region checks them.
std::vector<AxisRanges> input_ranges(const Plan& plan);

// A variant as the header holds it.
struct VariantEntry {
  const std::string* plan = nullptr;         // points into the metadata it was chosen from
  bool is_short = false;                     // the plan is what shorten() gave
  std::optional<Isa> isa;                    // what the header says that it is for; nothing: nothing is said
  std::map<std::string, std::string> notes;  // its own, and those of all
};

// Those variants of a file that a machine runs best, in the file's order: among the sets that `host` contains, one that
// no other of them contains, the first in the file. If none runs, an Unsupported error names them.
std::vector<VariantEntry> choose_variants(const std::map<std::string, std::string>& metadata, Isa host);

// The header's strings for these variants, given with the text of each plan. One variant alone is written in the format
// that has no variants.
std::map<std::string, std::string> variants_metadata(std::span<const SavedModule> variants,
                                                     std::vector<std::string> plans);

}  // namespace neo
