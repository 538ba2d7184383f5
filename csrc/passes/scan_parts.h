#pragma once

#include <vector>

#include "passes/pass.h"

namespace neo {

// The operands of a Loop or a Scan, each beside what stands for it in the body.
struct ScanParts {
  struct Carried {
    Value* initial = nullptr;
    Value* inner = nullptr;
    Value* next = nullptr;    // in the body
    Value* result = nullptr;  // null: nobody reads it
  };
  struct Scanned {
    Value* whole = nullptr;
    Value* inner = nullptr;
    int64_t axis = 0;
    bool reverse = false;
  };
  struct Captured {
    Value* outer = nullptr;
    Value* inner = nullptr;
  };
  struct Collected {
    Value* inner = nullptr;
    Value* result = nullptr;  // null: nobody reads it
    int64_t axis = 0;
    bool reverse = false;
  };
  std::vector<Carried> carried;
  std::vector<Scanned> scanned;
  std::vector<Captured> captured;
  std::vector<Collected> collected;
};

ScanParts read_loop_parts(const Node& loop);
ScanParts read_scan_parts(const Node& scan);
// Puts a Scan of these parts before a node, whose body it takes over and whose results are read off the Scan from then
// on; none where nobody reads a result. The node is left to be erased.
Node* replace_by_scan(Graph& graph, Node& node, const ScanParts& parts, const PassContext& context);

}  // namespace neo
