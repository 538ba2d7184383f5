// A saved module: it is loaded, and what loads runs on synthetic inputs, all within a quota.

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/budget.h"
#include "base/check.h"
#include "exec/executors.h"
#include "fuzz/counts.h"
#include "fuzz/envelope.h"
#include "fuzz/synthetic.h"
#include "ops/op.h"
#include "runtime/run.h"
#include "saved/safetensors.h"
#include "saved/saved.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace neo::fuzz {
namespace {

constexpr Quota kQuota = {.bytes = int64_t{64} << 20, .seconds = 0.25};

Reached load_and_run(std::span<const std::byte> bytes, Random& random) {
  const FileBytes file = copy_bytes(bytes);
  try {
    read_safetensors(file.bytes);
  } catch (const Error&) {
    return Reached::Nothing;
  }
  SavedModule module;
  try {
    module = load_module(file, "bytes", standard_ops(), standard_routines(), kQuota);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Internal) std::abort();
    return Reached::Envelope;
  }
  try {
    Run run(module.plan, std::make_shared<BindingCache>(), kQuota);
    SerialTeam team;
    OneExecutor alone(team);
    std::vector<HostValue> inputs;
    {
      const BudgetScope scope(std::make_shared<Budget>(kQuota));
      inputs = synthetic_inputs(*module.plan, random);
    }
    run.call(inputs, alone);
    run.call(inputs, alone);
    return Reached::Ran;
  } catch (const Error&) {
    return Reached::Loaded;
  }
}

uint64_t hash(const uint8_t* data, size_t size) {
  uint64_t h = 0xCBF29CE484222325u;
  for (size_t i = 0; i < size; ++i) h = (h ^ data[i]) * 0x100000001B3u;
  return h;
}

size_t put(const std::string& file, uint8_t* data, size_t size, size_t max_size) {
  if (file.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(file.begin(), file.end(), data);
  return file.size();
}

}  // namespace
}  // namespace neo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neo::fuzz::Random random(neo::fuzz::hash(data, size));
  neo::fuzz::count(neo::fuzz::load_and_run({reinterpret_cast<const std::byte*>(data), size}, random));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  neo::fuzz::Random random(seed);
  if (random.one_in(20)) return LLVMFuzzerMutate(data, size, max_size);
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  return neo::fuzz::put(neo::fuzz::mutate_module(file, {}, random), data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                            uint8_t* out, size_t max_size, unsigned int seed) {
  neo::fuzz::Random random(seed);
  const std::string_view file(reinterpret_cast<const char*>(a), a_size),
      donor(reinterpret_cast<const char*>(b), b_size);
  const std::string crossed = neo::fuzz::mutate_module(file, donor, random);
  const size_t size = std::min(crossed.size(), max_size);
  std::copy_n(crossed.begin(), size, out);
  return size;
}
