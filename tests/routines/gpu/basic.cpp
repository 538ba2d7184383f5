#include <algorithm>

#include "base/check.h"
#include "programs.h"
#include "routines/gpu/basic/read_family.h"
#include "routines/gpu/eltwise/steps.h"
#include "routines/gpu/movement/copy.h"
#include "routines/gpu/movement/made.h"
#include "routines/patterns/compile_program.h"

namespace neo::gpu::tests {
namespace {

// The program of a workload's text, of the first family that takes it.
std::unique_ptr<Program> make_basic(const Choice& choice) {
  const ParsedWorkload parsed = parse_workload(choice.word("workload"), standard_ops());
  const BasicOptions options{static_cast<int>(choice.number("lanes", 8)),
                             static_cast<int>(choice.number("threads", 16)), choice.number("together", 1),
                             choice.number("few_rows", 0)};
  std::string reasons;
  for (const Family& family : basic_families()) {
    const auto roots = family.roots();
    if (std::find(roots.begin(), roots.end(), parsed.workload.root().op) == roots.end()) continue;
    std::string why;
    if (auto made = read_family(family, parsed.workload, options, &why)) return made->program();
    reasons += str(family.name, ": ", why, "; ");
  }
  fail(ErrorKind::Model, "programs", str("a family must take the workload. Got ", reasons));
}

// One kernel that writes the results of several workloads of one run-time input, row after row.
std::unique_ptr<Program> make_steps(const Choice& choice) {
  kernel::Builder b("eltwise_steps");
  const kernel::Expr n = b.size("n", 1, 1024);
  const std::string& texts = choice.word("workloads");
  const int64_t rows = std::count(texts.begin(), texts.end(), '\n');
  const int lanes = static_cast<int>(choice.number("lanes"));
  const kernel::Array x = b.input("x", DType::Float32, n), y = b.output("y", DType::Float32, n * rows);
  const kernel::Expr at = b.let("at", b.group(0, "gx", n / lanes) * lanes);
  b.when(at + lanes <= n, [&] {
    const kernel::Expr value = b.let("value", x.at(at, lanes));
    size_t begin = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const size_t end = texts.find('\n', begin);
      const ParsedWorkload parsed = parse_workload(texts.substr(begin, end - begin), standard_ops());
      const CompiledEltwise compiled = *compile_eltwise(parsed.workload, nullptr);
      y.at(n * row + at, lanes) = apply_step(b, compiled.program.step[0], value);
      begin = end + 1;
    }
  });
  std::vector<kernel::Kernel> kernels;
  kernels.push_back(b.finish());
  return make_program(std::move(kernels), [](std::span<const Dims> shapes) {
    return Launches{{}, {{0, {shapes[0][0], Operand{0}, Operand{1}}}}};
  });
}

// One value from a layout into another.
std::unique_ptr<Program> make_layouts(const Choice& choice) {
  Dims dims;
  for (int i = 0; choice.numbers.contains("d" + std::to_string(i)); ++i)
    dims.push_back(choice.number("d" + std::to_string(i)));
  const auto problem =
      layout_copy(DType::Float32, Layout::parse(choice.word("from")), Layout::parse(choice.word("to")), dims, false);
  return make_copy(problem, {8, 8, 1, 16});
}

const Registered basic("basic", make_basic), layouts("copy_layouts", make_layouts), steps("eltwise_steps", make_steps);

}  // namespace
}  // namespace neo::gpu::tests
