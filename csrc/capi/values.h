#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "capi/neo.h"
#include "ir/tensor.h"

namespace neo::capi {

// A caller's value. Memory that is dense and aligned is not copied: `owner` marks it.
HostValue to_host(const neo_tensor& value, const std::shared_ptr<void>& owner, const std::string& place);

// Copies what `owner` marks, so that a result outlives the call's inputs.
void detach(HostValue& value, const std::shared_ptr<void>& owner);

// Values as neo.h shows them.
class Results {
 public:
  explicit Results(std::vector<HostValue> values);
  std::span<const neo_tensor> shown() const { return shown_; }

 private:
  neo_tensor show(const HostValue& value);

  std::vector<HostValue> values_;
  std::vector<neo_tensor> shown_;
  std::deque<std::vector<neo_tensor>> items_;
  std::deque<std::vector<neo_string>> strings_;
};

}  // namespace neo::capi
