#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "capi/handles.h"
#include "capi/neo.h"
#include "exec/plan.h"
#include "runtime/module.h"
#include "saved/file_bytes.h"

namespace neo::capi {

// An input or output as neo_info shows it. Stays where it is.
class Described {
 public:
  Described(const std::string& name, const Type& type);
  Described(const Described&) = delete;
  Described& operator=(const Described&) = delete;
  const neo_info& shown() const { return shown_; }

 private:
  std::string name_;
  std::string type_;
  std::vector<int64_t> dims_;
  std::vector<int64_t> hints_;
  std::vector<std::string> texts_;
  std::vector<const char*> symbols_;
  neo_info shown_ = {};
};

struct Signature {
  explicit Signature(const Plan& plan);
  std::vector<std::unique_ptr<const Described>> inputs;
  std::vector<std::unique_ptr<const Described>> outputs;
  std::map<std::string, std::string> notes;
};

// The object behind a neo_module.
struct LoadedModule {
  std::shared_ptr<Module> module;
  std::shared_ptr<const Signature> signature;  // shared by the same module on other numbers of threads
};

using ModuleHandles = Handles<neo_module, LoadedModule>;
ModuleHandles& modules();

// A handle of the module in a file; `place` is what errors name.
neo_module* load(const FileBytes& file, const std::string& place, int threads, const Quota& quota = {});

}  // namespace neo::capi
