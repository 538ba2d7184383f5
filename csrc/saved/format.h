#pragma once

#include <string_view>

namespace neo {

// The version of the format that is written, and the only one that is read.
inline constexpr std::string_view kSavedFormat = "1";

// Keys of the header's __metadata__; others are the saver's notes.
inline constexpr std::string_view kFormatKey = "neo.format";
inline constexpr std::string_view kPlanKey = "neo.plan";

// How the values of an enumeration are written, in its order.
inline constexpr std::string_view kStorageNames[] = {"argument", "constant", "arena", "result", "view", "owned"};
inline constexpr std::string_view kRelationNames[] = {"equal", "less_equal", "divides", "broadcasts"};

}  // namespace neo
