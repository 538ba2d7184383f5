#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "routines/gpu/program.h"
#include "routines/routine.h"

// Programs of the GPU routines by name, each made from numbers and words: what the tests run without a model.
namespace neo::gpu::tests {

struct Choice {
  std::map<std::string, int64_t> numbers;
  std::map<std::string, std::string> words;

  int64_t number(const std::string& name) const;  // asserts that it was given
  int64_t number(const std::string& name, int64_t otherwise) const;
  const std::string& word(const std::string& name) const;
  Schedule schedule() const;  // every number by its name
};
using Maker = std::function<std::unique_ptr<Program>(const Choice&)>;

// Put into the table before main() by each family's file.
struct Registered {
  Registered(std::string name, Maker maker);
};

}  // namespace neo::gpu::tests
