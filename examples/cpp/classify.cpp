// classify MODULE INPUT [INPUT...]: runs a saved module with one input and one output on the raw bytes of every file,
// each on a thread of its own, and prints the largest number that each gives: "file: class score". Sizes that are open
// are taken to be 1.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <neo.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string classify(const neo::Module& module, const std::string& path) {
  const neo_info& info = module.input(0);
  std::vector<int64_t> dims(info.dims, info.dims + std::max(info.rank, 0));
  std::replace_if(
      dims.begin(), dims.end(), [](int64_t size) { return size < 0; }, 1);
  const std::vector<char> image = read_file(path);
  const neo::Results results = module.call(
      {{.dtype = info.dtype, .rank = info.rank, .dims = dims.data(), .data = image.data(), .bytes = image.size()}});
  const std::span<const float> scores = results.get<float>(0);
  const auto best = std::max_element(scores.begin(), scores.end());
  return path + ": " + std::to_string(best - scores.begin()) + " " + std::to_string(*best);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw std::runtime_error("usage: classify MODULE INPUT [INPUT...]");
  const neo::Module module(argv[1]);
  const std::vector<std::string> paths(argv + 2, argv + argc);
  std::vector<std::string> lines(paths.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < paths.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          lines[i] = classify(module, paths[i]);
        } catch (const std::exception& error) {
          lines[i] = paths[i] + ": " + error.what();
        }
      });
    }
  }
  for (const std::string& line : lines) std::puts(line.c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "classify: %s\n", error.what());
  return 1;
}
