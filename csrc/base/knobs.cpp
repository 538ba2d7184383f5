#include "base/knobs.h"

#include <charconv>
#include <cstdlib>
#include <iterator>

#include "base/check.h"

namespace neo {
namespace {

constexpr KnobInfo kKnobs[] = {
    {Knob::MaxIsa, "NEO_MAX_ISA", KnobType::Text, "", 0, 0, "",
     "Caps the instruction set (scalar, avx2, avx512, avx512_vnni, neon); unset: what the CPU reports."},
    {Knob::Machine, "NEO_MACHINE", KnobType::Text, "", 0, 0, "",
     "A file of the figures that estimates use, as `neo machine --measure` prints them; unset: those of a middling "
     "core."},
    {Knob::NumThreads, "NEO_NUM_THREADS", KnobType::Int, "0", 0, 1024, "",
     "Threads of a call that does not say; 0: the physical cores that this process may really use."},
    {Knob::SpinUs, "NEO_SPIN_US", KnobType::Int, "50", 0, 1000000, "",
     "Microseconds that an idle thread polls for work before it sleeps; read once, when the thread pool starts."},
    {Knob::Pin, "NEO_PIN", KnobType::Choice, "off", 0, 0, "off auto on",
     "Binds worker threads to cores; auto: only under an affinity mask narrower than the machine; read once."},
    {Knob::Verify, "NEO_VERIFY", KnobType::Bool, "0", 0, 0, "",
     "Checks the graph against its specification after every pass, and the plan against its own after lowering."},
    {Knob::Device, "NEO_DEVICE", KnobType::Text, "", 0, 0, "",
     "The device among several of a kind: its number from 0, or a part of its name; unset: the first."},
};

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t length = words.find(' ');
    if (words.substr(0, length) == word) return true;
    words = length == std::string_view::npos ? std::string_view() : words.substr(length + 1);
  }
  return false;
}

std::string join_words(std::string_view words, std::string_view separator) {
  std::string out;
  for (const char c : words) c == ' ' ? out += separator : out += c;
  return out;
}

}  // namespace

Span<const KnobInfo> all_knobs() {
  return {kKnobs, std::ssize(kKnobs)};
}

const KnobInfo& get_knob_info(Knob knob) {
  for (const KnobInfo& info : kKnobs) {
    if (info.knob == knob) return info;
  }
  fail(ErrorKind::Internal, "neo", str("knob is not declared. Got ", static_cast<int>(knob)));
}

std::string knob_type_text(const KnobInfo& info) {
  switch (info.type) {
    case KnobType::Bool:
      return "bool";
    case KnobType::Int:
      return str("int ", info.min, "..", info.max);
    case KnobType::Choice:
      return join_words(info.choices, "|");
    case KnobType::Text:
      return "text";
  }
  fail(ErrorKind::Internal, "neo", str("knob type is not known. Got ", static_cast<int>(info.type)));
}

std::string knob_text(Knob knob) {
  const KnobInfo& info = get_knob_info(knob);
  const char* value = std::getenv(info.name);
  return value != nullptr && *value != '\0' ? value : info.default_value;
}

bool knob_bool(Knob knob) {
  const KnobInfo& info = get_knob_info(knob);
  NEO_ASSERT(info.type == KnobType::Bool, "for ", info.name);
  const std::string value = knob_text(knob);
  if (value == "1" || value == "true" || value == "on") return true;
  NEO_CHECK(value == "0" || value == "false" || value == "off", Unsupported, info.name,
            "environment variable must be a bool. Got '", value, "', expected 0, 1, false, true, off or on");
  return false;
}

int64_t knob_int(Knob knob) {
  const KnobInfo& info = get_knob_info(knob);
  NEO_ASSERT(info.type == KnobType::Int, "for ", info.name);
  const std::string text = knob_text(knob);
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  NEO_CHECK(code == std::errc() && stop == end && value >= info.min && value <= info.max, Unsupported, info.name,
            "environment variable must be an integer. Got '", text, "', expected ", info.min, " to ", info.max);
  return value;
}

std::string knob_string(Knob knob) {
  const KnobInfo& info = get_knob_info(knob);
  NEO_ASSERT(info.type == KnobType::Choice || info.type == KnobType::Text, "for ", info.name);
  std::string value = knob_text(knob);
  NEO_CHECK(info.type == KnobType::Text || has_word(info.choices, value), Unsupported, info.name,
            "environment variable must be one of its choices. Got '", value, "', expected one of ",
            join_words(info.choices, ", "));
  return value;
}

}  // namespace neo
