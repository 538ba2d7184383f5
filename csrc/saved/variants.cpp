#include "saved/variants.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/json.h"
#include "saved/format.h"
#include "saved/short_text.h"

namespace neo {
namespace {

constexpr size_t kMaxVariants = 64;

using Metadata = std::map<std::string, std::string>;

std::string numbered(std::string_view key, size_t number) {
  return str(key, ".", number);
}

const std::string& entry_of(const Metadata& metadata, std::string_view key) {
  const auto it = metadata.find(std::string(key));
  NEO_CHECK(it != metadata.end(), Model, "load", "a saved module must have the entry ", key, ". Got none");
  return it->second;
}

// One set of features per variant, in the file's order.
std::vector<Isa> read_isas(const std::string& text) {
  const Json json = Json::parse(text);
  const Json::Array& names = json.as_array();
  NEO_CHECK(!names.empty() && names.size() <= kMaxVariants, Model, "load", "a saved module must have 1 to ",
            kMaxVariants, " variants. Got ", names.size());
  std::vector<Isa> isas;
  for (const Json& name : names) isas.push_back(parse_isa(name.as_string(), "load"));
  return isas;
}

std::string listed(std::span<const Isa> isas) {
  std::string names;
  std::set<std::string> seen;
  for (const Isa isa : isas) {
    if (seen.insert(isa_name(isa)).second) names += str(names.empty() ? "" : ", ", isa_name(isa));
  }
  return names;
}

Isa best_isa(std::span<const Isa> isas, Isa host) {
  const Isa* best = nullptr;
  for (const Isa& isa : isas) {
    if (!isa.is_subset_of(host)) continue;
    if (!best || (best->is_subset_of(isa) && *best != isa)) best = &isa;
  }
  NEO_CHECK(best != nullptr, Unsupported, "load",
            "a saved module must have a variant for an instruction set that runs here. Got ", listed(isas),
            ", expected ", isa_name(host), " or weaker\nHint: compile the model for target \"cpu:", isa_name(host),
            "\" too.");
  return *best;
}

}  // namespace

std::vector<AxisRanges> input_ranges(const Plan& plan) {
  const Block& root = *plan.root;
  std::vector<AxisRanges> inputs;
  for (const int slot : root.arguments) {
    const Type& type = root.slots[static_cast<size_t>(slot)].type;
    AxisRanges& ranges = inputs.emplace_back();
    if (!type.is_tensor() || !type.shape.has_rank()) continue;
    ranges.emplace();
    for (const Dim& d : type.shape.dims())
      ranges->push_back(d.is_constant() ? Range{d.value(), d.value()} : Range{0, kMaxExtent});
    for (const SymbolSource& source : root.regions.front().sources) {
      const auto axis = static_cast<size_t>(source.axis);
      if (source.slot == slot && axis < ranges->size()) (*ranges)[axis] = source.symbol.range;
    }
  }
  return inputs;
}

std::vector<VariantEntry> choose_variants(const Metadata& metadata, Isa host) {
  const std::string& format = entry_of(metadata, kFormatKey);
  const bool is_one = format == kSavedFormat || format == kOlderSavedFormat;
  const bool is_short = format == kShortFormat || format == kOlderShortFormat;
  NEO_CHECK(is_one || is_short || format == kVariantsFormat || format == kOlderVariantsFormat, Unsupported, "load",
            "a saved module must be of a format that this neo reads. Got ", format.substr(0, 20), ", expected ",
            kOlderSavedFormat, " to ", kShortFormat, "\nHint: compile the model again.");
  if (is_one || (is_short && metadata.count(std::string(kVariantsKey)) == 0)) {
    const std::string& plan = entry_of(metadata, kPlanKey);
    Metadata notes = metadata;
    notes.erase(std::string(kPlanKey));
    return {{&plan, is_short, std::nullopt, std::move(notes)}};
  }
  const std::vector<Isa> isas = read_isas(entry_of(metadata, kVariantsKey));
  Metadata shared = metadata;
  shared.erase(std::string(kVariantsKey));
  for (size_t i = 0; i < isas.size(); ++i) {
    for (const std::string_view key : {kPlanKey, kSignatureKey}) shared.erase(numbered(key, i));
  }
  const Isa best = best_isa(isas, host);
  std::vector<VariantEntry> chosen;
  for (size_t i = 0; i < isas.size(); ++i) {
    if (isas[i] != best) continue;
    VariantEntry& entry = chosen.emplace_back();
    entry.plan = &entry_of(metadata, numbered(kPlanKey, i));
    entry.is_short = is_short;
    entry.isa = best;
    entry.notes = shared;
    entry.notes[std::string(kSignatureKey)] = entry_of(metadata, numbered(kSignatureKey, i));
  }
  return chosen;
}

Metadata variants_metadata(std::span<const SavedModule> variants, std::vector<std::string> plans) {
  NEO_CHECK(!variants.empty() && variants.size() <= kMaxVariants, Model, "save", "a saved module must have 1 to ",
            kMaxVariants, " variants. Got ", variants.size());
  size_t bytes = 0;
  for (const std::string& plan : plans) bytes += plan.size();
  const bool is_short = bytes >= kShortenedBytes;
  if (is_short) {
    for (std::string& plan : plans) plan = shorten(plan);
  }
  Metadata metadata = variants.front().notes;
  if (variants.size() == 1) {
    metadata[std::string(kFormatKey)] = is_short ? kShortFormat : kSavedFormat;
    metadata[std::string(kPlanKey)] = std::move(plans.front());
    return metadata;
  }
  metadata.erase(std::string(kSignatureKey));
  metadata[std::string(kFormatKey)] = is_short ? kShortFormat : kVariantsFormat;
  Json::Array isas;
  for (size_t i = 0; i < variants.size(); ++i) {
    isas.emplace_back(isa_name(variants[i].target.isa));
    metadata[numbered(kPlanKey, i)] = std::move(plans[i]);
    metadata[numbered(kSignatureKey, i)] = variants[i].notes.at(std::string(kSignatureKey));
  }
  metadata[std::string(kVariantsKey)] = Json(std::move(isas)).dump();
  return metadata;
}

}  // namespace neo
