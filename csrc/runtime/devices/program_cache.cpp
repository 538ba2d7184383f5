#include "runtime/devices/program_cache.h"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace neo {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[] = "neo program 1\n";
constexpr size_t kMagicBytes = sizeof kMagic - 1;

uint64_t fnv(const std::string& text, uint64_t seed) {
  uint64_t hash = 14695981039346656037ull ^ seed;
  for (const unsigned char c : text) hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

std::string hex(uint64_t x) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, x >>= 4) text[static_cast<size_t>(i)] = kDigits[x & 15];
  return text;
}

fs::path path_of(const std::string& key) {
  const std::string folder = ProgramCache::folder();
  return folder.empty() ? fs::path() : fs::path(folder) / (hex(fnv(key, 0)) + hex(fnv(key, 0x9e3779b97f4a7c15ull)));
}

}  // namespace

// A file: the magic, the hash of key and binary, the key's length and the key, the binary.
std::string ProgramCache::folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return (fs::path(cache) / "neo" / "programs").string();
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return "";
  return (fs::path(home) / ".cache" / "neo" / "programs").string();
}

std::optional<std::string> ProgramCache::load(const std::string& key) {
  const fs::path path = path_of(key);
  if (path.empty()) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t head = kMagicBytes + 16 + sizeof(uint64_t);
  if (all.size() < head || all.compare(0, kMagicBytes, kMagic) != 0) return std::nullopt;
  uint64_t length = 0;
  std::memcpy(&length, all.data() + kMagicBytes + 16, sizeof length);
  if (length != key.size() || all.size() - head < length || all.compare(head, length, key) != 0) return std::nullopt;
  std::string binary = all.substr(head + length);
  if (all.compare(kMagicBytes, 16, hex(fnv(key + binary, 1))) != 0) return std::nullopt;
  return binary;
}

void ProgramCache::store(const std::string& key, const std::string& binary) {
  const fs::path path = path_of(key);
  if (path.empty()) return;
  static std::atomic<int> number{0};
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path partial = path.string() + "." + std::to_string(getpid()) + "." + std::to_string(number++) + ".part";
  const uint64_t length = key.size();
  {
    std::ofstream file(partial, std::ios::binary);
    file << kMagic << hex(fnv(key + binary, 1));
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file << key << binary;
    file.close();
    if (!file.good()) {
      fs::remove(partial, error);
      return;
    }
  }
  fs::rename(partial, path, error);
  if (error) fs::remove(partial, error);
}

void ProgramCache::remove(const std::string& key) {
  const fs::path path = path_of(key);
  std::error_code error;
  if (!path.empty()) fs::remove(path, error);
}

}  // namespace neo
