#include "routines/cost/machine.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "base/check.h"
#include "base/core.h"
#include "base/knobs.h"
#include "base/topology.h"

namespace neo {
namespace {

constexpr CoreFigures kCores[] = {
    {kIsaScalar, 4, 3, 12, 20, 1 << 20},
    {kIsaNeon, 4, 2, 30, 30, 1 << 20},
    {kIsaAvx2, 8, 2.8, 90, 60, 512 << 10},
    {kIsaAvx512, 16, 3.7, 120, 80, 1 << 20},
};
constexpr CoreFigures kWideCore = {kIsaAvx512, 16, 3.4, kWideGflops, 150, 1 << 20};

// Zen 4 (AMD EPYC 9R14 in a virtual machine), as `neo machine --measure` measured it. The other tiers have its caches
// and the arithmetic of a middling core.
constexpr double kLevelGbps[] = {220, 105, 72};
constexpr double kOneMemoryGbps = 29, kTeamMemoryGbps = 55, kWakeUs = 1.2, kStepUs = 0.05;

Machine machine_of(const CoreFigures& core) {
  return {core.ghz,
          core.gflops,
          {{{32 << 10, kLevelGbps[0]}, {core.l2_bytes, kLevelGbps[1]}, {32 << 20, kLevelGbps[2]}}},
          kOneMemoryGbps,
          kTeamMemoryGbps,
          kWakeUs,
          kStepUs};
}

struct Figure {
  const char* name;
  double Machine::*value;
};

constexpr Figure kMachineFigures[] = {
    {"ghz", &Machine::ghz},
    {"gflops", &Machine::gflops},
    {"memory_gbps", &Machine::memory_gbps},
    {"shared_memory_gbps", &Machine::shared_memory_gbps},
    {"wake_us", &Machine::wake_us},
    {"step_us", &Machine::step_us},
};

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  NEO_CHECK(file, Resource, "machine", "NEO_MACHINE must name a file that can be read. Got \"", path, "\"");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

const CoreFigures& middling_core(Isa isa, bool is_host) {
  if (is_host && kIsaAvx512.is_subset_of(isa) && host_core().wide_fmas == 2) return kWideCore;
  const CoreFigures* best = &kCores[0];
  for (const CoreFigures& core : kCores) {
    if (core.isa.is_subset_of(isa) && core.gflops > best->gflops) best = &core;
  }
  return *best;
}

Machine Machine::of(Isa isa, bool is_host) {
  if (!is_host) return machine_of(middling_core(isa, false));
  if (const std::string path = knob_text(Knob::Machine); !path.empty()) return parse(read_whole(path), path);
  Machine machine = machine_of(middling_core(isa, true));
  const Topology& host = host_topology();
  const int64_t bytes[] = {host.l1d_bytes, host.l2_bytes, host.l3_bytes};
  for (size_t i = 0; i < machine.cache.size(); ++i) machine.cache[i].bytes = bytes[i];
  return machine;
}

std::string Machine::to_text() const {
  std::ostringstream text;
  for (const Figure& f : kMachineFigures) text << f.name << " = " << this->*f.value << '\n';
  for (size_t i = 0; i < cache.size(); ++i) {
    text << "l" << i + 1 << "_bytes = " << cache[i].bytes << '\n';
    text << "l" << i + 1 << "_gbps = " << cache[i].gbps << '\n';
  }
  return text.str();
}

Machine Machine::parse(std::string_view text, std::string_view file) {
  Machine machine;
  std::vector<std::string> missing;
  for (const Figure& f : kMachineFigures) missing.emplace_back(f.name);
  for (size_t i = 1; i <= machine.cache.size(); ++i) {
    missing.push_back(str("l", i, "_bytes"));
    missing.push_back(str("l", i, "_gbps"));
  }
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const size_t equals = line.find('=');
    const std::string_view name = trimmed(line.substr(0, equals));
    const std::string_view number = equals == std::string_view::npos ? "" : trimmed(line.substr(equals + 1));
    double value = 0;
    const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool is_number = error == std::errc() && rest == number.data() + number.size();
    const auto known = std::find(missing.begin(), missing.end(), name);
    NEO_CHECK(known != missing.end() && is_number && value >= 0 && value <= 1e12, Unsupported, "machine",
              "a machine's file must have each figure once, as \"name = number\" of at least 0. Got \"", line, "\" in ",
              file, "\nHint: `neo machine --measure` prints one.");
    missing.erase(known);
    for (const Figure& f : kMachineFigures) {
      if (name == f.name) machine.*f.value = value;
    }
    for (size_t i = 0; i < machine.cache.size(); ++i) {
      if (name == str("l", i + 1, "_bytes")) machine.cache[i].bytes = static_cast<int64_t>(value);
      if (name == str("l", i + 1, "_gbps")) machine.cache[i].gbps = value;
    }
  }
  NEO_CHECK(missing.empty() && machine.ghz > 0 && machine.gflops > 0 && machine.memory_gbps > 0 &&
                machine.shared_memory_gbps > 0,
            Unsupported, "machine", "a machine's file must have each figure. Got none, or 0, for ",
            missing.empty() ? "ghz, gflops or memory" : missing.front(), " in ", file,
            "\nHint: `neo machine --measure` prints one.");
  return machine;
}

}  // namespace neo
