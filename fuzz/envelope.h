#pragma once

#include <optional>
#include <span>
#include <string>

#include "fuzz/json_edit.h"

namespace neo::fuzz {

// A saved module taken apart.
struct Envelope {
  std::string header;  // with an empty string for the plan
  std::string plan;
  std::string blobs;

  // None where the length or the header make no sense.
  static std::optional<Envelope> of(std::string_view file);
  // A file whose length is right and whose blobs lie where they may.
  std::string join() const;
};

// A changed copy of a file; most changes are of the plan and leave an envelope that holds. `donor` is another file.
std::string mutate_module(std::string_view file, std::string_view donor, Random& random);

}  // namespace neo::fuzz
