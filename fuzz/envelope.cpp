#include "fuzz/envelope.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace neo::fuzz {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 64;
constexpr std::string_view kPlanKey = "\"neo.plan\"";

// The value of the plan in a header.
std::optional<Value> find_plan(std::string_view header) {
  for (const Value& v : find_values(header)) {
    if (v.kind == '"' && header.substr(v.member).starts_with(kPlanKey)) return v;
  }
  return std::nullopt;
}

// Words of constants: what is special to floats, and to indices and sizes.
constexpr uint64_t kWords[] = {0,
                               1,
                               0xFFFFFFFFFFFFFFFFu,
                               0x8000000000000000u,
                               0x7FFFFFFFFFFFFFFFu,
                               0x80000000u,
                               0x7FFFFFFFu,
                               0x7FC000007FC00000u,
                               0x7F8000007F800000u,
                               0xFF800000FF800000u,
                               0x7FF0000000000000u,
                               0x0000000100000001u,
                               1000,
                               uint64_t{1} << 40};

void edit_blobs(std::string& blobs, Random& random) {
  const size_t width = random.one_in(2) ? 8 : 4;
  for (size_t n = 1 + random.below(8); n > 0; --n) {
    if (random.one_in(3) || blobs.size() < width) {
      blobs[random.below(blobs.size())] = static_cast<char>(random.next());
      continue;
    }
    const uint64_t word = kWords[random.below(std::size(kWords))];
    const size_t at = random.below(blobs.size() / width) * width;
    for (size_t i = 0; i < width; ++i) blobs[at + i] = static_cast<char>(word >> 8 * i & 0xFF);
  }
}

}  // namespace

std::optional<Envelope> Envelope::of(std::string_view file) {
  if (file.size() < kLengthBytes) return std::nullopt;
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= uint64_t{static_cast<unsigned char>(file[i])} << 8 * i;
  if (length > file.size() - kLengthBytes) return std::nullopt;
  const auto bytes = static_cast<size_t>(length);
  Envelope parts;
  parts.header = file.substr(kLengthBytes, bytes);
  parts.header.erase(parts.header.find_last_not_of(' ') + 1);
  parts.blobs = file.substr(kLengthBytes + bytes);
  const auto plan = find_plan(parts.header);
  if (!plan) return std::nullopt;
  parts.plan = unescape(std::string_view(parts.header).substr(plan->begin, plan->end - plan->begin));
  parts.header.replace(plan->begin, plan->end - plan->begin, "\"\"");
  return parts;
}

std::string Envelope::join() const {
  std::string text = header;
  if (const auto at = find_plan(text)) text.replace(at->begin, at->end - at->begin, escape(plan));
  text.append((kAlignment - (text.size() + kLengthBytes) % kAlignment) % kAlignment, ' ');
  std::string file;
  for (size_t i = 0; i < kLengthBytes; ++i) file += static_cast<char>(text.size() >> 8 * i & 0xFF);
  return file + text + blobs;
}

std::string mutate_module(std::string_view file, std::string_view donor, Random& random) {
  auto parts = Envelope::of(file);
  if (!parts) return std::string(file);
  const size_t way = random.below(16);
  if (way == 0) {
    parts->header = edit(std::move(parts->header), {}, random);
  } else if (way <= 6 && !parts->blobs.empty()) {
    edit_blobs(parts->blobs, random);
  } else {
    const auto other = donor.empty() ? std::nullopt : Envelope::of(donor);
    parts->plan = edit(std::move(parts->plan), other ? std::string_view(other->plan) : std::string_view(), random);
  }
  return parts->join();
}

}  // namespace neo::fuzz
