#pragma once

#include <memory>

#include "base/fork_safe_mutex.h"
#include "exec/step.h"
#include "ops/op.h"
#include "routines/routine.h"

namespace neo {

// A step on the host that computes the candidate's node, of which it keeps a copy.
class NodeStep : public HostStep {
 public:
  NodeStep(const Candidate& candidate, const OpRegistry& ops);
  void run(std::span<const HostValue> inputs, std::span<HostValue> outputs, Team& team) const final;

 protected:
  // An input that the candidate does not read is an undefined tensor.
  virtual void compute(ReferenceContext& ctx, Team& team) const = 0;
  const Node& node() const { return *node_; }

 private:
  void check(std::span<const HostValue> inputs) const;

  std::shared_ptr<const Graph> holder_;
  const Node* node_ = nullptr;
  const OpRegistry& ops_;
  std::vector<int> argument_of_input_;
  bool is_open_ = false;  // an input's rank is found out when it runs
  mutable ForkSafeMutex mutex_;
  mutable std::vector<int64_t> passed_;
};

// Computes one node as an op's reference does.
using NodeFunction = void (*)(ReferenceContext&);

// A NodeStep that computes by a function.
std::unique_ptr<Step> make_node_step(const Candidate& candidate, const OpRegistry& ops, NodeFunction function);

}  // namespace neo
