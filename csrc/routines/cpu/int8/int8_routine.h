#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "routines/cpu/int8/int8_problem.h"

namespace neo {

// The base of routines of products of 8-bit codes by constants: the groups that they share (patterns/int8_product.h).
class Int8Routine : public Routine {
 public:
  std::vector<std::string_view> roots() const final;
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const final;
  std::optional<std::string> rejects(const Workload& workload, const Target& target) const final;

 protected:
  // The products that a group begins with; convolutions by default.
  virtual std::span<const std::string_view> products() const;
  // rejects() once the problem is read.
  virtual std::optional<std::string> rejects_problem(const Int8Problem& problem, const Target& target) const = 0;
};

}  // namespace neo
