#include <limits>

#include "base/check.h"
#include "routines/gpu/eltwise/steps.h"
#include "routines/gpu/reduce/families.h"
#include "routines/gpu/reduce/rows.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::Op;

namespace {

kernel::Kernel softmax_kernel(bool logarithm, const RowForm& form, const RowSchedule& schedule) {
  RowKernel k(logarithm ? "log_softmax" : "softmax", form, schedule);
  Builder& b = k.builder();
  const Array y = b.output("y", DType::Float32, form.is_last ? k.outer * k.along : k.outer * k.along * k.inner);
  return k.write([&](Walk& walk) {
    const auto in = [](const Expr& value, const Expr& x) {
      return value->type.lanes == x->type.lanes ? value : broadcast(value, x->type.lanes);
    };
    const Expr top = walk.reduce(
        kernel::real(-std::numeric_limits<double>::infinity()), [](const Expr& x, const Expr&) { return x; },
        [](const Expr& a, const Expr& c) { return max_nan(a, c); });
    const Expr sum = walk.reduce(
        kernel::real(0), [&](const Expr& x, const Expr&) { return call(Op::Exp, x - in(top, x)); },
        [](const Expr& a, const Expr& c) { return a + c; });
    const Expr scale = b.let("scale", logarithm ? call(Op::Log, sum) : walk.number(1) / sum);
    walk.each([&](const Expr& x, const Expr&, const Expr& at) {
      const Expr shifted = x - in(top, x);
      y.at(at, x->type.lanes) = logarithm ? shifted - in(scale, x) : call(Op::Exp, shifted) * in(scale, x);
    });
  });
}

}  // namespace

std::vector<std::string_view> softmax_roots() {
  return {"Softmax", "LogSoftmax"};
}

std::optional<Made> read_softmax(const Workload& workload, const BasicOptions& options, std::string* why) {
  const Node& node = workload.root();
  const Value* x = node.inputs.front();
  if (options.together != 1) return not_made(why, "it takes plain arrays");
  if (!x->type.is_tensor() || x->dtype() != DType::Float32 || !x->shape().has_rank() || x->shape().rank() == 0) {
    return not_made(why, "the input is not a float32 tensor of known rank");
  }
  const int rank = x->shape().rank();
  const int64_t given = node.int_attr("axis", -1);
  const int axis = static_cast<int>(given < 0 ? given + rank : given);
  const RowForm form{axis == rank - 1};
  const AxisRun run{axis, axis};
  const RowSchedule schedule = row_schedule(form, row_sizes(x->shape().hint_dims(), run), options);
  Made made;
  made.inputs = {0};
  made.flops = 30 * static_cast<double>(x->shape().element_count().hint());
  const auto launches = [=](std::span<const Dims> shapes) {
    const RowSizes s = row_sizes(shapes[0], run);
    Launches all;
    if (s.outer * s.inner * s.along == 0) return all;
    KernelLaunch launch{0, row_arguments(form, schedule, s.outer, s.along, s.inner)};
    launch.arguments.emplace_back(Operand{1});
    all.launches.push_back(std::move(launch));
    return all;
  };
  made.program = [=, &node] {
    std::vector<kernel::Kernel> kernels;
    kernels.push_back(softmax_kernel(node.op == "LogSoftmax", form, schedule));
    return make_program(std::move(kernels), launches);
  };
  return made;
}

}  // namespace neo::gpu
