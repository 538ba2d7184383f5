#include "routines/patterns/norm.h"

#include "base/check.h"
#include "routines/gpu/eltwise/steps.h"
#include "routines/gpu/norm/families.h"
#include "routines/gpu/reduce/rows.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::Op;

namespace {

constexpr int64_t kMaxRowChannels = 1 << 15;

struct NormForm {
  bool centred = true;
  bool per_channel = false;  // scale and bias hold one number for each `span` elements of the row
  bool scale = false, bias = false, mean = false, deviation = false;
  double epsilon = 1e-5;
};

constexpr auto add = [](const Expr& a, const Expr& b) { return a + b; };

kernel::Kernel norm_kernel(const NormForm& f, const RowSchedule& schedule) {
  RowKernel k("norm", {}, schedule);
  Builder& b = k.builder();
  const Expr channels = f.per_channel ? b.size("channels", 1, kMaxRowChannels) : Expr();
  const Expr groups = f.per_channel ? b.size("groups", 1, kMaxRowChannels) : Expr();      // rows of an image
  const Expr in_group = f.per_channel ? b.size("in_group", 1, kMaxRowChannels) : Expr();  // channels of a row
  const Expr span = f.per_channel ? b.size("span", 1, 1 << 28) : Expr();
  const Expr elements = f.per_channel ? channels : k.along;
  const auto input = [&](const char* name, bool wanted) {
    return wanted ? std::optional(b.input(name, DType::Float32, elements)) : std::nullopt;
  };
  const auto scale = input("scale", f.scale), bias = input("bias", f.bias);
  const Array y = b.output("y", DType::Float32, k.outer * k.along);
  const auto statistic = [&](const char* name, bool wanted) {
    return wanted ? std::optional(b.output(name, DType::Float32, k.outer)) : std::nullopt;
  };
  const auto means = statistic("mean", f.mean), deviations = statistic("deviation", f.deviation);
  return k.write([&](Walk& walk) {
    const auto in = [](const Expr& value, const Expr& x) {
      return x->type.lanes == 1 ? value : broadcast(value, x->type.lanes);
    };
    const Expr n = b.let("n", cast(walk.along, DType::Float32));
    Expr mean = kernel::real(0);
    if (f.centred) {
      mean = b.let("mean", walk.reduce(
                               kernel::real(0), [](const Expr& x, const Expr&) { return x; }, add) /
                               n);
    }
    const Expr squares = walk.reduce(
        kernel::real(0),
        [&](const Expr& x, const Expr&) {
          if (!f.centred) return x * x;
          const Expr d = b.let("d", x - in(mean, x));
          return d * d;
        },
        add);
    const Expr factor = b.let("factor", kernel::real(1) / call(Op::Sqrt, squares / n + kernel::real(f.epsilon)));
    const auto normal = [&](const Expr& x) { return (f.centred ? x - in(mean, x) : x) * in(factor, x); };
    if (!f.per_channel) {
      walk.each([&](const Expr& x, const Expr& at, const Expr& index) {
        const int lanes = x->type.lanes;
        Expr value = normal(x);
        if (scale) value = value * scale->at(at, lanes);
        if (bias) value = value + bias->at(at, lanes);
        y.at(index, lanes) = value;
      });
    } else {
      // The first channel of the row, and how far into a channel's span an element lies.
      const Expr first = b.let("first", walk.row % groups * in_group);
      const auto of_channel = [&](const Expr& x, const Expr& channel) {
        Expr value = normal(x);
        if (scale) value = value * in((*scale)[channel], x);
        if (bias) value = value + in((*bias)[channel], x);
        return value;
      };
      walk.each([&](const Expr& x, const Expr& at, const Expr& index) {
        const int lanes = x->type.lanes;
        const Expr channel = b.let("channel", (first + at / span) % channels);
        if (lanes == 1) {
          y[index] = of_channel(x, channel);
          return;
        }
        b.when(
            at % span <= span - lanes, [&] { y.at(index, lanes) = of_channel(x, channel); },
            [&] {
              for (int i = 0; i < lanes; ++i) {
                const Expr own = b.let("own", (first + (at + i) / span) % channels);
                y[index + i] = of_channel(lane(x, i), own);
              }
            });
      });
    }
    walk.once([&] {
      if (means) (*means)[walk.row] = mean;
      if (deviations) (*deviations)[walk.row] = factor;
    });
  });
}

}  // namespace

std::vector<std::string_view> norm_roots() {
  return {"LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization"};
}

std::optional<Made> read_norm(const Workload& workload, const BasicOptions& options, std::string* why) {
  const Node& node = workload.root();
  if (options.together != 1) return not_made(why, "it takes plain arrays");
  if (auto reason = reject_norm(workload, DType::Float32)) return not_made(why, *reason);
  if (workload.inputs.size() != node.inputs.size()) return not_made(why, "an input is used twice");
  const Shape& shape = node.inputs.front()->shape();
  NormForm f;
  f.per_channel = node.op == "InstanceNormalization" || node.op == "GroupNormalization";
  f.centred = node.op != "RMSNormalization";
  f.scale = node.inputs.size() > 1;
  f.bias = node.inputs.size() > 2;
  f.mean = workload.outputs.size() > 1;
  f.deviation = workload.outputs.size() > 2;
  f.epsilon = node.float_attr("epsilon", 1e-5);
  const int rank = shape.rank();
  const int64_t given = node.int_attr("axis", -1),
                groups = node.op == "GroupNormalization" ? node.int_attr("num_groups", 1) : 0;
  const int first = static_cast<int>(given < 0 ? given + rank : given);
  const auto sizes = [per_channel = f.per_channel, first, groups](const Dims& dims) {
    if (!per_channel) return row_sizes(dims, {first, static_cast<int>(dims.size()) - 1});
    const int64_t count = groups > 0 ? groups : dims[1];
    RowSizes s = row_sizes(dims, {1, static_cast<int>(dims.size()) - 1});
    s.outer *= count;
    s.along = count == 0 ? 0 : s.along / count;
    return s;
  };
  const RowSizes hint = sizes(shape.hint_dims());
  const RowSchedule schedule = row_schedule({}, hint, options);
  Made made;
  for (size_t i = 0; i < node.inputs.size(); ++i) made.inputs.push_back(static_cast<int>(i));
  made.flops = 8 * static_cast<double>(shape.element_count().hint());
  const auto launches = [=](std::span<const Dims> shapes) {
    const RowSizes s = sizes(shapes[0]);
    Launches all;
    if (s.outer * s.along == 0) return all;
    KernelLaunch launch{0, row_arguments({}, schedule, s.outer, s.along, 1)};
    // x is declared before the sizes of the channels.
    if (f.per_channel) {
      const int64_t channels = shapes[0][1], count = groups > 0 ? groups : channels;
      for (const int64_t size : {channels, count, channels / count}) launch.arguments.emplace_back(size);
      launch.arguments.emplace_back(row_sizes(shapes[0], {2, static_cast<int>(shapes[0].size()) - 1}).along);
    }
    for (size_t i = 1; i < shapes.size(); ++i) launch.arguments.emplace_back(Operand{static_cast<int>(i)});
    all.launches.push_back(std::move(launch));
    return all;
  };
  made.program = [=, &node] {
    std::vector<kernel::Kernel> kernels;
    kernels.push_back(norm_kernel(f, schedule));
    return make_program(std::move(kernels), launches);
  };
  return made;
}

}  // namespace neo::gpu
