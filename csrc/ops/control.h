#pragma once

#include <span>
#include <vector>

#include "ops/op.h"

namespace neo {

// If, Loop and Scan: their inputs and outputs, counted from the node and checked against its bodies (a Model error that
// names the node where they do not fit).
struct LoopSignature {
  size_t carried = 0;   // values from one iteration to the next
  size_t scanned = 0;   // Scan: inputs taken apart along an axis
  size_t captured = 0;  // values of the outer graph, the same in every iteration
  size_t stacked = 0;   // outputs collected over the iterations
};
LoopSignature loop_signature(const Node& node);
LoopSignature scan_signature(const Node& node);
void check_if(const Node& node);

// The axis and direction of each of `count` values of Scan, from the attributes `axes` and `directions`.
struct ScanAxis {
  int64_t axis = 0;
  bool reverse = false;
};
std::vector<ScanAxis> scan_axes(const Node& node, std::string_view axes, std::string_view directions, size_t count);

// Evaluates If, Loop and Scan for evaluate_node.
std::vector<HostValue> evaluate_control(const Node& node, const OpRegistry& ops, std::span<const HostValue> inputs);

// Counts how deep bodies nest while one is inferred or evaluated; too deep is an Unsupported error at the node.
class BodyDepth {
 public:
  explicit BodyDepth(const Node& node);
  ~BodyDepth();
  BodyDepth(const BodyDepth&) = delete;
  BodyDepth& operator=(const BodyDepth&) = delete;
};

// Input and output counts of a node against its operator; Model errors.
void check_arity(const Node& node, const Op& op);

// Runs f; an error that does not say where it is gets the node's place, exhausted memory becomes a Memory error.
template <class F>
auto at_node(const Node& node, const F& f) {
  try {
    return f();
  } catch (const Error& e) {
    const std::string message = e.what();
    if (message.find(" - at ") == std::string::npos && e.kind() != ErrorKind::Internal) fail_at(e, node.place());
    fail_again(e);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::Memory, node.op, "there is no memory left - at " + node.place());
  } catch (const std::length_error&) {
    fail(ErrorKind::Memory, node.op, "there is no memory left - at " + node.place());
  }
}

}  // namespace neo
