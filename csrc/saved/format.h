#pragma once

#include <cstddef>
#include <string_view>

namespace neo {

// The versions of the format that are written: a file of one plan, one of several variants, and one of either whose
// plans are shortened (saved/short_text.h). The older ones are read, too: they call a step's spec by another key.
inline constexpr std::string_view kSavedFormat = "4", kOlderSavedFormat = "1";
inline constexpr std::string_view kVariantsFormat = "5", kOlderVariantsFormat = "2";
inline constexpr std::string_view kShortFormat = "6", kOlderShortFormat = "3";
inline constexpr std::string_view kSpecKey = "spec", kOlderSpecKey = "recipe";

// Bytes of all plans of a file from which on they are shortened.
inline constexpr size_t kShortenedBytes = size_t{1} << 15;
// Bytes of a plan that was shortened; as the header, which may hold it as it is.
inline constexpr size_t kMaxPlanBytes = 100'000'000;

// Keys of the header's __metadata__; others are the saver's notes.
inline constexpr std::string_view kFormatKey = "neo.format";
inline constexpr std::string_view kPlanKey = "neo.plan";
inline constexpr std::string_view kSignatureKey = "neo.signature";  // the saver's, but one for each variant
inline constexpr std::string_view kVariantsKey = "neo.variants";

// How the values of an enumeration are written, in its order.
inline constexpr std::string_view kStorageNames[] = {"argument", "constant", "arena", "result", "view", "owned"};
inline constexpr std::string_view kRelationNames[] = {"equal", "less_equal", "divides", "broadcasts"};

}  // namespace neo
