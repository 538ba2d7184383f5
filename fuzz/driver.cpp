// What libFuzzer does, for compilers without it: runs every file of the folders on the command line, then mutations of
// them. Understands -seed=, -runs=, -max_len=, -timeout=, -mutate_depth= and -artifact_prefix=; other options are
// passed over.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "fuzz/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" [[gnu::weak]] size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed);
extern "C" [[gnu::weak]] size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b,
                                                          size_t b_size, uint8_t* out, size_t max_size,
                                                          unsigned int seed);

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using Bytes = std::vector<uint8_t>;
using neo::fuzz::Random;

Random mutations(0);
const Bytes* current = nullptr;
std::string artifact;

// The input that a signal ends the process with is kept.
void keep(int signal) {
  if (current) {
    if (std::FILE* file = std::fopen(artifact.c_str(), "wb")) {
      std::fwrite(current->data(), 1, current->size(), file);
      std::fclose(file);
    }
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Options {
  uint64_t seed = 1;
  uint64_t runs = 0;
  size_t max_len = 65536;
  unsigned timeout = 60;
  uint64_t depth = 3;
  std::vector<Bytes> corpus;
};

void read_folder(const std::string& folder, Options& options) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    options.corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string text = argv[i];
    const auto value = [&](std::string_view key) {
      return text.starts_with(key) ? text.c_str() + key.size() : nullptr;
    };
    if (const char* seed = value("-seed=")) options.seed = std::strtoull(seed, nullptr, 10);
    if (const char* runs = value("-runs=")) options.runs = std::strtoull(runs, nullptr, 10);
    if (const char* bytes = value("-max_len=")) options.max_len = std::strtoull(bytes, nullptr, 10);
    if (const char* seconds = value("-timeout=")) options.timeout = static_cast<unsigned>(std::atoi(seconds));
    if (const char* depth = value("-mutate_depth="))
      options.depth = std::max<uint64_t>(1, std::strtoull(depth, nullptr, 10));
    if (const char* prefix = value("-artifact_prefix=")) artifact = prefix;
    if (!text.starts_with('-')) read_folder(text, options);
  }
  artifact += "crash-" + std::to_string(options.seed);
  return options;
}

void run(const Bytes& input, unsigned timeout) {
  current = &input;
  ::alarm(timeout);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  ::alarm(0);
  current = nullptr;
}

Bytes mutated(const Options& options) {
  const Bytes& from = options.corpus[mutations.below(options.corpus.size())];
  Bytes input = from;
  input.resize(std::max(options.max_len, from.size()));
  size_t size = from.size();
  const size_t times = 1 + mutations.below(options.depth);
  for (size_t i = 0; i < times; ++i) {
    const auto seed = static_cast<unsigned>(mutations.next());
    if (LLVMFuzzerCustomCrossOver && mutations.one_in(4)) {
      const Bytes before(input.begin(), input.begin() + static_cast<ptrdiff_t>(size));
      const Bytes& other = options.corpus[mutations.below(options.corpus.size())];
      size =
          LLVMFuzzerCustomCrossOver(before.data(), size, other.data(), other.size(), input.data(), input.size(), seed);
    } else if (LLVMFuzzerCustomMutator) {
      size = LLVMFuzzerCustomMutator(input.data(), size, input.size(), seed);
    } else {
      size = LLVMFuzzerMutate(input.data(), size, input.size());
    }
  }
  input.resize(size);
  input.shrink_to_fit();  // a read behind the end is one behind the block
  return input;
}

}  // namespace

// Bytes changed, left out, put in or doubled.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  Bytes bytes(data, data + size);
  for (size_t n = 1 + mutations.below(4); n > 0; --n) {
    const size_t at = mutations.below(bytes.size() + 1), length = std::min(mutations.below(16), bytes.size() - at);
    const auto begin = bytes.begin() + static_cast<ptrdiff_t>(at), end = begin + static_cast<ptrdiff_t>(length);
    switch (mutations.below(4)) {
      case 0:
        std::generate(begin, end, [] { return static_cast<uint8_t>(mutations.next()); });
        break;
      case 1:
        bytes.erase(begin, end);
        break;
      case 2:
        bytes.insert(begin, static_cast<uint8_t>(mutations.next()));
        break;
      default: {
        const Bytes part(begin, end);
        bytes.insert(begin, part.begin(), part.end());
      }
    }
  }
  const size_t kept = std::min(bytes.size(), max_size);
  std::copy_n(bytes.begin(), kept, data);
  return kept;
}

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM}) std::signal(signal, keep);
  mutations = Random(options.seed);
  uint64_t done = 0;
  for (const Bytes& input : options.corpus) {
    run(input, options.timeout);
    ++done;
  }
  for (; done < options.runs && !options.corpus.empty(); ++done) run(mutated(options), options.timeout);
  std::printf("Done %llu runs\n", static_cast<unsigned long long>(done));
}
