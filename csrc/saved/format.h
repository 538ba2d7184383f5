#pragma once

#include <string_view>

namespace neo {

// The versions of the format that are written and read: a file of one plan, and one of several variants.
inline constexpr std::string_view kSavedFormat = "1";
inline constexpr std::string_view kVariantsFormat = "2";

// Keys of the header's __metadata__; others are the saver's notes.
inline constexpr std::string_view kFormatKey = "neo.format";
inline constexpr std::string_view kPlanKey = "neo.plan";
inline constexpr std::string_view kSignatureKey = "neo.signature";  // the saver's, but one for each variant
inline constexpr std::string_view kVariantsKey = "neo.variants";

// How the values of an enumeration are written, in its order.
inline constexpr std::string_view kStorageNames[] = {"argument", "constant", "arena", "result", "view", "owned"};
inline constexpr std::string_view kRelationNames[] = {"equal", "less_equal", "divides", "broadcasts"};

}  // namespace neo
