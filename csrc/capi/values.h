#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "capi/neo.h"
#include "ir/tensor.h"

namespace neo::capi {

// The number that a caller left in an enumeration, which may be none of its values.
template <class Enum>
int number_of(const Enum& value) {
  int number = 0;
  static_assert(sizeof value == sizeof number);
  std::memcpy(&number, &value, sizeof number);
  return number;
}

// The name of a neo_dtype; "undefined" for a number that is none.
const char* dtype_name(int number);

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
