#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "routines/routine.h"

namespace neo {

// The schedules that a routine can be given for one workload: the points of a grid of parameters that its constraint
// allows. A point is a number in [0, size()), so that there is none for a schedule that is invalid.
class Space {
 public:
  struct Parameter {
    std::string name;
    std::vector<int64_t> values;  // distinct; 0 is automatic, and left out of a schedule
  };
  // Whether values, one per parameter in their order, make a schedule of their own.
  using Constraint = std::function<bool(std::span<const int64_t>)>;

  // Nothing to choose: the empty schedule alone.
  Space();
  explicit Space(std::vector<Parameter> parameters, const Constraint& allows = {});

  const std::vector<Parameter>& parameters() const { return parameters_; }
  int64_t size() const { return static_cast<int64_t>(codes_.size()); }

  Schedule at(int64_t point) const;
  // The values of its parameters, in their order.
  std::vector<int64_t> values(int64_t point) const;
  std::optional<int64_t> find(const Schedule& schedule) const;
  // A point that differs in one parameter; the same one where there is none.
  int64_t mutate(int64_t point, std::mt19937_64& random) const;

 private:
  std::optional<int64_t> point_of(int64_t code) const;

  std::vector<Parameter> parameters_;
  std::vector<int64_t> codes_;  // mixed-radix numbers of the grid's points that are allowed, ascending
};

// 0, and then how many units a part may have where `units` are cut into 1, 2, 3, 4, 6, 8, 12, ... parts of which no two
// agree, `most` parts at most. `automatic` is what 0 stands for, and not listed again.
std::vector<int64_t> part_sizes(int64_t units, int64_t most, int64_t automatic);

// The value of a parameter; 0 where the schedule leaves it out.
int64_t value_of(const Schedule& schedule, std::string_view name);

}  // namespace neo
