#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/budget.h"
#include "exec/plan.h"
#include "routines/routine.h"
#include "saved/file_bytes.h"

namespace neo {

// The contents of a saved module (docs/saved_modules.md).
struct SavedModule {
  std::shared_ptr<const Plan> plan;
  Target target;
  std::map<std::string, std::string> notes;  // what the saver wrote beside the plan: provenance
  std::optional<Configuration> chosen;       // its executors where there are as many threads; none: one of all threads
};

// The executors that run a loaded plan where calls may use `threads` threads and nobody says how many executors.
Configuration configuration_for(const SavedModule& saved, int threads);

// Writes the variants of one module to a temporary file and renames it to `path`; equal blobs are stored once. Notes
// but the signature are the first one's.
void save_variants(const std::string& path, std::span<const SavedModule> variants);

// Makes the plan of a saved module again. Nothing in the file is trusted: what does not hold is an error that ends in
// `place`. The plan's constants point into the file, which it keeps alive. Loading stays within the quota, the file's
// own bytes not counted, and `poll`, if any, is called now and then; what it throws ends the loading.
SavedModule load_module(const FileBytes& file, const std::string& place, const OpRegistry& ops,
                        const RoutineTable& routines, const Quota& quota = {},
                        const std::function<void()>* poll = nullptr);
// All variants of a file that this machine runs best, in the file's order (saved/variants.h); never none. load_module
// gives the first.
std::vector<SavedModule> load_variants(const FileBytes& file, const std::string& place, const OpRegistry& ops,
                                       const RoutineTable& routines, const Quota& quota = {},
                                       const std::function<void()>* poll = nullptr);

// The modules that the C interface opens: load_module() with all that there is in libneo (capi/open.cpp), the one
// module that it was made for in an exported library (standalone/standalone.cpp), whose loading takes what its sources
// say.
SavedModule open_module(const FileBytes& file, const std::string& place, const Quota& quota);

}  // namespace neo
