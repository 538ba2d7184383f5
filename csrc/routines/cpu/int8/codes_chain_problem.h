#pragma once

#include <optional>
#include <string>
#include <vector>

#include "routines/cpu/int8/codes_chain.h"
#include "routines/cpu/int8/int8_problem.h"

namespace neo {

// Which convolutions a chain has beside the depthwise one.
struct CodesChainForm {
  bool expands = false, projects = false;
};

// Groups of that form that end in `root`: each convolution with what match_int8_products() has around it. Only the next
// one reads the codes between two.
std::vector<Workload> match_codes_chains(const Node& root, CodesChainForm form, const Graph::Users& users,
                                         const Graph& graph);

// A group that match_codes_chains() made, as a routine sees it.
struct CodesChainProblem {
  std::optional<Int8Problem> expand, project;
  Int8Problem depthwise;

  // None, with the reason, where no routine takes it.
  static std::optional<CodesChainProblem> read(const Workload& workload, std::string* why);

  const Int8Problem& first() const { return expand ? *expand : depthwise; }
  const Int8Problem& last() const { return project ? *project : depthwise; }
  const Value* residual() const { return project ? project->product.residual : nullptr; }
  // Dims of the chain's input and output; `codes`: of a word.
  CodesChainShape shape(const Dims& x, const Dims& y, int64_t codes) const;
  // Whether the codes between depthwise convolution and projection are held as bytes that count from 0 on.
  bool flips_strip(int64_t codes) const;
};

// Whether the function behind a product is a HardSwish between two grids.
bool is_hard_swish(const Int8Problem& problem);
// It without a table, where that gives what the table has of every code.
std::optional<CodesHardSwish> read_hard_swish(const Int8Problem& problem, const CodeTable& table);

}  // namespace neo
