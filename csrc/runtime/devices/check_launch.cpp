#include "runtime/devices/check_launch.h"

#include <algorithm>
#include <cctype>

#include "base/check.h"

namespace neo {
namespace {

constexpr size_t kLogBytes = 4000;

std::string line_of(const std::string& text, int64_t number) {
  size_t at = 0;
  for (int64_t i = 1; i < number; ++i) {
    at = text.find('\n', at);
    if (at == std::string::npos) return "";
    ++at;
  }
  return text.substr(at, text.find('\n', at) - at);
}

int64_t number_at(const std::string& text, size_t at) {
  int64_t number = 0;
  for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0 && number < 100000000; ++at) {
    number = 10 * number + (text[at] - '0');
  }
  return number;
}

// The line that a log's first error names: "name:12:3: error", "error: name:12:3: ...", "name(12): error". 0: none.
int64_t error_line(const std::string& log) {
  const size_t error = log.find("error");
  if (error == std::string::npos) return 0;
  const size_t end = std::min(log.find('\n', error), log.size());
  for (size_t i = log.rfind('\n', error) + 1; i + 1 < end; ++i) {  // npos + 1 is 0
    if (log[i] != ':' && log[i] != '(') continue;
    size_t after = i + 1;
    while (after < end && std::isdigit(static_cast<unsigned char>(log[after])) != 0) ++after;
    if (after > i + 1 && after < end && (log[after] == ':' || log[after] == ')')) return number_at(log, i + 1);
  }
  return 0;
}

}  // namespace

void check_program(const DeviceInfo& info, std::string_view where, const ProgramSource& source) {
  NEO_CHECK(!source.needs_float16 || info.has_float16, Unsupported, where, "the device must compute in float16. Got ",
            info.name, ", which does not");
  NEO_CHECK(!source.needs_float64 || info.has_float64, Unsupported, where, "the device must compute in float64. Got ",
            info.name, ", which does not");
  NEO_CHECK(!source.needs_subgroups || info.has_subgroups, Unsupported, where, "the device must have subgroups. Got ",
            info.name, ", which has none");
  NEO_CHECK(!source.needs_images || info.image_texels > 0, Unsupported, where, "the device must have images. Got ",
            info.name, ", which has none");
}

void check_launch(const DeviceInfo& info, std::string_view where, const Launch& launch) {
  int64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    threads *= launch.locals[i];
    NEO_CHECK(launch.locals[i] <= info.local_extents[i], Unsupported, where, "a group must fit the device. Got ",
              launch.locals[i], " threads along axis ", i, " in ", launch.kernel, ", ", info.name, " takes ",
              info.local_extents[i]);
  }
  NEO_CHECK(threads <= info.group_threads, Unsupported, where, "a group must fit the device. Got ", threads,
            " threads in ", launch.kernel, ", ", info.name, " takes ", info.group_threads);
  NEO_CHECK(launch.local_bytes <= info.local_bytes, Unsupported, where, "local memory must fit the device. Got ",
            launch.local_bytes, " bytes in ", launch.kernel, ", ", info.name, " has ", info.local_bytes);
}

void check_allocation(const DeviceInfo& info, std::string_view where, int64_t bytes) {
  NEO_CHECK(bytes >= 1 && bytes <= info.largest_buffer_bytes, Memory, where,
            "a buffer must fit in the device's memory. Got ", bytes, " bytes, ", info.name, " takes 1 ... ",
            info.largest_buffer_bytes);
}

void fail_to_compile(std::string_view where, const std::string& text, const std::string& log) {
  const int64_t number = error_line(log);
  const std::string line = number > 0 ? line_of(text, number) : "";
  fail(ErrorKind::Internal, where,
       str("the driver must compile the kernel. Got: ", log.substr(0, kLogBytes),
           line.empty() ? "" : str("\nLine ", number, " is: ", line)));
}

}  // namespace neo
