#include "routines/patterns/conv_problem.h"

#include <algorithm>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/patterns/float_tensor.h"

namespace neo {
namespace {

bool all_are(const std::vector<int64_t>& list, int64_t wanted) {
  return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == wanted; });
}

bool is_pool_of_pairs(const Node& node) {
  constexpr int kAxes = 2;
  if (node.op != "MaxPool" || node.outputs.size() != 1 || node.has_attr("clamp_min") || node.has_attr("clamp_max"))
    return false;
  const Shape& x = node.inputs.front()->shape();
  if (!x.has_rank() || x.rank() != kAxes + 2) return false;
  const Window w = read_window(node, kAxes);
  return w.auto_pad == AutoPad::NotSet && all_are(w.pads, 0) && !w.ceil_mode && all_are(w.kernel, 2) &&
         all_are(w.strides, 2) && all_are(w.dilations, 1);
}

}  // namespace

bool read_conv_geometry(const Node& node, const Shape& weight, ConvGeometry& g) {
  g.transposed = node.op == "ConvTranspose";
  g.axes = weight.rank() - 2;
  g.groups = node.int_attr("group", 1);
  g = g.of_weight(weight.hint_dims());
  g.window = read_window(node, g.axes);
  if (g.transposed) {
    g.output_padding = node.ints_attr("output_padding", std::vector<int64_t>(static_cast<size_t>(g.axes), 0));
    const bool same = g.window.auto_pad == AutoPad::SameUpper || g.window.auto_pad == AutoPad::SameLower;
    g.pads_from_output = same || !node.ints_attr("output_shape").empty();
  }
  for (int i = 0; i < weight.rank(); ++i) {
    if (!weight[i].is_constant() || weight[i].value() < 1) return false;
  }
  return true;
}

ConvGeometry ConvGeometry::of_weight(const Dims& weight) const {
  ConvGeometry g = *this;
  g.ic = transposed ? weight[0] : weight[1] * groups;
  g.oc = transposed ? weight[1] * groups : weight[0];
  for (int i = 0; i < axes; ++i) g.kernel[3 - axes + i] = weight[static_cast<size_t>(i) + 2];
  return g;
}

int64_t ConvGeometry::pad_begin(int axis, int64_t input, int64_t output) const {
  const auto i = static_cast<size_t>(axis);
  const int64_t k = kernel[3 - axes + axis];
  if (!transposed) return window_pad_begin(window, axis, k, input);
  if (!pads_from_output) return window.pads[i];
  const int64_t whole = window.strides[i] * (input - 1) + output_padding[i] + (k - 1) * window.dilations[i] + 1;
  const int64_t total = std::max<int64_t>(0, whole - output);
  return window.auto_pad == AutoPad::SameUpper ? total / 2 : total - total / 2;
}

bool ConvGeometry::is_sampling_pointwise() const {
  return !transposed && groups == 1 && taps() == 1 && all_are(window.pads, 0);
}

bool ConvGeometry::is_pointwise() const {
  return is_sampling_pointwise() && all_are(window.strides, 1);
}

Dims ConvGeometry::output(const Dims& x) const {
  NEO_ASSERT(!transposed);
  Dims y = x;
  y[1] = oc;
  for (int axis = 0; axis < axes; ++axis) {
    const auto i = static_cast<size_t>(axis + 2);
    y[i] = std::max<int64_t>(0, window_output(window, axis, kernel[3 - axes + axis], x[i]).value());
  }
  return y;
}

Dims ConvGeometry::results(Dims y) const {
  for (size_t i = 2; i < y.size() && pools; ++i) y[i] *= 2;
  return y;
}

ConvShape ConvGeometry::shape(const Dims& x, const Dims& output) const {
  NEO_ASSERT(axes == 1 || axes == 2);
  const Dims y = results(output);
  const bool plane = axes == 2;
  const auto last = static_cast<size_t>(axes - 1);
  ConvShape s;
  s.n = x[0];
  s.groups = groups;
  s.ic = ic;
  s.oc = oc;
  s.iw = x.back();
  s.ow = y.back();
  s.kw = kernel[2];
  s.stride_w = window.strides[last];
  s.dilation_w = window.dilations[last];
  s.pad_left = pad_begin(axes - 1, s.iw, s.ow);
  if (plane) {
    s.ih = x[2];
    s.oh = y[2];
    s.kh = kernel[1];
    s.stride_h = window.strides[0];
    s.dilation_h = window.dilations[0];
    s.pad_top = pad_begin(0, s.ih, s.oh);
  }
  return s;
}

Im2colConvShape ConvGeometry::panel_shape(const Dims& x, const Dims& y) const {
  Im2colConvShape s;
  s.n = x[0];
  s.groups = groups;
  s.ic = ic;
  s.oc = oc;
  s.transposed = transposed;
  for (int axis = 0; axis < axes; ++axis) {
    const int to = 3 - axes + axis;
    const auto i = static_cast<size_t>(axis);
    s.in[to] = x[i + 2];
    s.out[to] = y[i + 2];
    s.kernel[to] = kernel[to];
    s.stride[to] = window.strides[i];
    s.dilation[to] = window.dilations[i];
    s.pad[to] = pad_begin(axis, s.in[to], s.out[to]);
  }
  return s;
}

Dims ConvProblem::x_hint() const {
  return x->shape().hint_dims();
}

Dims ConvProblem::y_hint() const {
  return y->shape().hint_dims();
}

ConvShape ConvProblem::hint_shape() const {
  return geometry.shape(x_hint(), y_hint());
}

Im2colConvShape ConvProblem::hint_panel_shape() const {
  return geometry.panel_shape(x_hint(), y_hint());
}

ConvShape ConvProblem::unit_shape() const {
  const Dims ones(static_cast<size_t>(rank()), 1);
  return geometry.shape(ones, ones);
}

Im2colConvShape ConvProblem::unit_panel_shape() const {
  const Dims ones(static_cast<size_t>(rank()), 1);
  return geometry.panel_shape(ones, ones);
}

double ConvProblem::traffic_bytes(int64_t x_block, int64_t y_block) const {
  const auto bytes = [](Dims dims, int64_t block) {
    dims[1] = ceil_div(dims[1], block) * block;
    double count = 4;
    for (int64_t d : dims) count *= static_cast<double>(d);
    return count;
  };
  return bytes(x_hint(), x_block) + (epilogue.residual ? 2 : 1) * bytes(geometry.results(y_hint()), y_block);
}

std::vector<Workload> match_pooled_conv(const Node& root, const Graph::Users& users, const Graph& graph) {
  if (!is_pool_of_pairs(root)) return {};
  const Value* input = root.inputs.front();
  const Node* conv = input->producer;
  if (!conv || conv->op != "Conv" || !read_only_by_one(input, users, graph)) return {};
  return {Workload::of({conv, &root})};
}

std::optional<ConvProblem> read_conv(const Workload& workload, std::string* why, bool takes_open, DType dtype) {
  const auto reject = [&](std::string reason) {
    if (why) *why = std::move(reason);
    return std::nullopt;
  };
  const Node& node = *workload.nodes.front();
  ConvProblem p;
  p.x = node.inputs[0];
  p.weight = node.inputs[1];
  p.bias = node.input(2);
  p.y = workload.outputs.front();
  p.geometry.pools = workload.root().op == "MaxPool";
  p.epilogue = read_epilogue(workload);
  for (const Value* v : workload.inputs) {
    if (!is_float_tensor(v, dtype)) return reject(str("an input is not a ", name(dtype), " tensor of known rank"));
  }
  // The residual may be the input itself; any other operand has a role of its own.
  const Value* residual = p.epilogue.residual;
  const bool shared = p.weight == p.x || (p.bias && (p.bias == p.x || p.bias == p.weight)) ||
                      (residual && (residual == p.weight || residual == p.bias));
  if (shared) return reject("one value is two operands");
  if (p.x->shape().rank() < 3 || p.x->shape().rank() > 5) return reject("not one, two or three spatial axes");
  const bool knows_weight = read_conv_geometry(node, p.weight->shape(), p.geometry);
  const bool knows_channels = p.x->shape()[1].is_constant() && p.y->shape()[1].is_constant();
  if (takes_open && !p.weight->constant && p.geometry.groups == 1) return p;
  if (!knows_channels) return reject("the channels are not constants");
  if (!knows_weight) return reject("a size of the weights is not a positive constant");
  if (p.geometry.ic % p.geometry.groups != 0 || p.geometry.oc % p.geometry.groups != 0) {
    return reject("the groups do not divide the channels");
  }
  return p;
}

const char* reject_run_time_weights(const ConvProblem& problem) {
  if (!problem.weight->constant) return "the weights are not constants";
  if (problem.bias && !problem.bias->constant) return "the bias is not a constant";
  return nullptr;
}

}  // namespace neo
