#include "saved/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "ir/tensor.h"

namespace neo {
namespace {

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }
  int get() const { return descriptor_; }
  bool close() {
    const int descriptor = std::exchange(descriptor_, -1);
    return descriptor < 0 || ::close(descriptor) == 0;
  }

 private:
  int descriptor_;
};

// Removes a file that was not renamed.
struct Temporary {
  std::string path;
  ~Temporary() {
    if (!path.empty()) ::unlink(path.c_str());
  }
};

std::string reason() {
  return std::strerror(errno);
}

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

FileBytes map_file(const std::string& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  NEO_CHECK(file.get() >= 0, Resource, "load", "a saved module must be a file that can be read. Got ", reason(),
            " - at \"", path, "\"");
  struct stat status = {};
  NEO_CHECK(::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode), Resource, "load",
            "a saved module must be a regular file. Got another kind - at \"", path, "\"");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return {};
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  NEO_CHECK(memory != MAP_FAILED, Resource, "load", "a saved module must fit in the address space. Got ", reason(),
            " for ", size, " bytes - at \"", path, "\"");
  return {{memory, [size](void* p) { ::munmap(p, size); }}, {static_cast<const std::byte*>(memory), size}};
}

FileBytes copy_bytes(std::span<const std::byte> bytes) {
  const Tensor copy(DType::UInt8, {static_cast<int64_t>(bytes.size())});
  std::copy(bytes.begin(), bytes.end(), copy.as<std::byte>());
  return {copy.owner(), {copy.as<const std::byte>(), bytes.size()}};
}

void write_file(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  const auto check = [&](bool holds) {
    NEO_CHECK(holds, Resource, "save", "a saved module must be written. Got ", reason(), " - at \"", path, "\"");
  };
  // A device or a pipe is written where it stands: renaming would put a file in its place.
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    check(file.get() >= 0);
    for (const auto piece : pieces) check(write_all(file.get(), piece));
    check(file.close());
    return;
  }
  static std::atomic<int> next{0};
  std::string name;
  int descriptor = -1;
  do {
    name = str(path, ".", ::getpid(), ".", next++);
    descriptor = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EEXIST);
  check(descriptor >= 0);
  File file(descriptor);
  Temporary temporary{name};
  for (const auto piece : pieces) check(write_all(file.get(), piece));
  check(::fsync(file.get()) == 0);
  check(file.close());
  check(::rename(name.c_str(), path.c_str()) == 0);
  temporary.path.clear();
}

}  // namespace neo
