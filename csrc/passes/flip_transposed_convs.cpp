#include <algorithm>
#include <cstring>
#include <limits>

#include "base/int_math.h"
#include "ops/window.h"
#include "passes/pattern.h"
#include "passes/quantization.h"

namespace neo {
namespace {

bool is_same(const Window& window) {
  return window.auto_pad == AutoPad::SameUpper || window.auto_pad == AutoPad::SameLower;
}

// The padding that the ConvTranspose takes off at both ends of an axis; none where it depends on a size that is not a
// constant.
struct Trimmed {
  int64_t begin, end;
};
std::optional<Trimmed> trimmed(const Node& node, const Window& window, int axis, int64_t extra, int64_t reach) {
  const auto i = static_cast<size_t>(axis);
  const bool has_shape = !node.ints_attr("output_shape").empty();
  if (!has_shape && !is_same(window)) return Trimmed{window.pads[i], window.pads[i + window.strides.size()]};
  const Dim steps = (node.inputs[0]->shape()[axis + 2] - Dim(1)) * Dim(window.strides[i]);
  const Dim total = steps + Dim(1 + extra + reach) - node.outputs[0]->shape()[axis + 2];
  if (!total.is_constant()) return std::nullopt;
  // A larger output has nothing from any tap at its end.
  const int64_t all = total.value(), taken = std::max<int64_t>(0, all);
  const int64_t begin = window.auto_pad == AutoPad::SameUpper ? taken / 2 : taken - taken / 2;
  return Trimmed{begin, all - begin};
}

// The pads of the convolution that computes the same; none where there is none.
std::optional<std::vector<int64_t>> flipped_pads(const Node& node, const Window& window, const Dims& weight) {
  const size_t axes = window.strides.size();
  const std::vector<int64_t> extra = node.ints_attr("output_padding", std::vector<int64_t>(axes, 0));
  std::vector<int64_t> pads(2 * axes);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = (weight[i + 2] - 1) * window.dilations[i];
    const auto off = trimmed(node, window, static_cast<int>(i), extra[i], reach);
    if (!off) return std::nullopt;
    pads[i] = reach - off->begin;
    // The rest that a given shape leaves includes the padding of the output.
    pads[i + axes] = reach + extra[i] - off->end;
    if (pads[i] < 0 || pads[i + axes] < 0) return std::nullopt;
  }
  return pads;
}

// I O/g K... to O I/g K... with the taps of every filter in the opposite order.
Tensor flipped_weights(const Tensor& weight, int64_t groups) {
  const Dims& dims = weight.dims();
  const int64_t ic = dims[0] / groups, oc = dims[1], taps = ic * oc == 0 ? 0 : weight.size() / (dims[0] * oc);
  Dims turned = dims;
  turned[0] = oc * groups;
  turned[1] = ic;
  Tensor out(weight.dtype(), turned);
  const auto item = static_cast<size_t>(item_bytes(weight.dtype()));
  const auto* from = static_cast<const std::byte*>(weight.data());
  auto* to = static_cast<std::byte*>(out.data());
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t o = 0; o < oc; ++o) {
      for (int64_t i = 0; i < ic; ++i) {
        const std::byte* filter = from + static_cast<size_t>(((g * ic + i) * oc + o) * taps) * item;
        for (int64_t t = taps; t-- > 0; to += item) std::memcpy(to, filter + static_cast<size_t>(t) * item, item);
      }
    }
  }
  return out;
}

// Whether each result is a product of one pixel, which multiply_single_pixels() makes of it.
bool is_of_one_pixel(const Node& node) {
  const Shape& x = node.inputs[0]->shape();
  for (int axis = 2; axis < x.rank(); ++axis) {
    if (!x[axis].is(1)) return false;
  }
  return true;
}

// The results along one axis of a transposed convolution, by phase of its stride. They are computed from `cut`
// positions before the first one on: result stride * u + r - cut is one of phase r, whose taps begin at element u +
// first of x.
struct Phases {
  int64_t cut = 0;
  int64_t first = 0;
  std::vector<std::vector<int64_t>> taps;  // by phase and place of the convolution's kernel; -1: none
  int64_t pad_begin = 0, pad_end = 0;      // of the convolution
  int64_t rest = 0;                        // results behind the last one

  int64_t kernel() const { return std::ssize(taps.front()); }

  static Phases of(int64_t kernel, int64_t stride, const Trimmed& off, int64_t extra) {
    // Cut where that leaves a kernel of fewer taps.
    const Phases whole(kernel, stride, off, extra, 0), moved(kernel, stride, off, extra, off.begin % stride);
    return whole.kernel() <= moved.kernel() ? whole : moved;
  }

 private:
  Phases(int64_t kernel, int64_t stride, const Trimmed& off, int64_t extra, int64_t cut_begin) : cut(cut_begin) {
    const int64_t begin = off.begin - cut;
    int64_t last = begin / stride;
    first = last;
    const auto each_tap = [&](const auto& take) {
      for (int64_t r = 0; r < stride; ++r) {
        for (int64_t k = (r + begin) % stride; k < kernel; k += stride) take(r, k, (r + begin - k) / stride);
      }
    };
    each_tap([&](int64_t, int64_t, int64_t at) {
      first = std::min(first, at);
      last = std::max(last, at);
    });
    taps.assign(static_cast<size_t>(stride), std::vector<int64_t>(static_cast<size_t>(last - first + 1), -1));
    each_tap(
        [&](int64_t r, int64_t k, int64_t at) { taps[static_cast<size_t>(r)][static_cast<size_t>(at - first)] = k; });
    // Beyond stride results for each element of the input.
    const int64_t more = kernel - stride - off.begin - off.end + extra + cut;
    const int64_t steps = more >= 0 ? ceil_div(more, stride) : -(-more / stride);
    rest = steps * stride - more;
    pad_begin = -first;
    pad_end = steps + last;
  }
};

// The number of channels of the weights times phases, rows before columns, that one of them has: phase by phase, whose
// channels stay neighbours, but in groups, which each have all of the phases of their channels.
int64_t phase_channel(int64_t channel, int64_t channels, int64_t phase, int64_t phases, int64_t groups) {
  return groups == 1 ? phase * channels + channel : channel * phases + phase;
}

// The elements of `count` channels, of which several groups may have the same, for each phase.
Tensor by_phase(const Tensor& of_channel, int64_t count, int64_t phases, int64_t groups) {
  Tensor out(of_channel.dtype(), {count * phases});
  const auto item = static_cast<size_t>(item_bytes(of_channel.dtype()));
  const auto* from = static_cast<const std::byte*>(of_channel.data());
  for (int64_t i = 0; i < count * phases; ++i) {
    const int64_t to = phase_channel(i / phases, count, i % phases, phases, groups);
    std::memcpy(static_cast<std::byte*>(out.data()) + static_cast<size_t>(to) * item,
                from + static_cast<size_t>(i / phases % of_channel.size()) * item, item);
  }
  return out;
}

// I O/g H W as codes to (O * phases) I/g H' W'; `zero` has one code for each of the O/g or for all.
Tensor phase_weights(const Tensor& weight, const Tensor* zero, int64_t groups, const Phases& rows,
                     const Phases& columns) {
  const Dims& dims = weight.dims();
  const int64_t ic = dims[0] / groups, oc = dims[1];
  const int64_t phases = std::ssize(rows.taps) * std::ssize(columns.taps);
  Tensor out(weight.dtype(), {oc * groups * phases, ic, rows.kernel(), columns.kernel()});
  const auto* from = static_cast<const uint8_t*>(weight.data());
  const auto* zeros = zero ? static_cast<const uint8_t*>(zero->data()) : nullptr;
  const int64_t filter_size = ic * rows.kernel() * columns.kernel();
  for (int64_t channel = 0; channel < oc * groups; ++channel) {
    const int64_t o = channel % oc, group = channel / oc;
    const uint8_t nothing = zeros ? zeros[zero->size() == 1 ? 0 : o] : 0;
    int64_t phase = 0;
    for (const std::vector<int64_t>& row_taps : rows.taps) {
      for (const std::vector<int64_t>& column_taps : columns.taps) {
        const int64_t place = phase_channel(channel, oc * groups, phase++, phases, groups);
        auto* to = static_cast<uint8_t*>(out.data()) + place * filter_size;
        for (int64_t i = 0; i < ic; ++i) {
          const uint8_t* filter = from + ((group * ic + i) * oc + o) * dims[2] * dims[3];
          for (const int64_t row : row_taps) {
            for (const int64_t column : column_taps)
              *to++ = row < 0 || column < 0 ? nothing : filter[row * dims[3] + column];
          }
        }
      }
    }
  }
  return out;
}

// The constant codes behind a DequantizeLinear by scales of none or of the output channels of a transposed convolution.
const Node* weight_codes(const Value* weight) {
  const Node* source = made_by(weight, "DequantizeLinear");
  if (!source || !source->inputs[0]->constant || !is_byte(source->inputs[0]->dtype())) return nullptr;
  const Tensor& codes = *source->inputs[0]->constant;
  const Value* scale = source->inputs[1];
  const Value* zero = source->input(2);
  if (codes.rank() != 4 || !scale->constant || (zero && !zero->constant) || source->int_attr("block_size", 0) != 0 ||
      (zero && zero->constant->size() != scale->constant->size()))
    return nullptr;
  const bool by_channel = scale->constant->size() == codes.dims()[1] && source->int_attr("axis", 1) == 1;
  return scale->constant->size() == 1 || by_channel ? source : nullptr;
}

// The node that rounds the results of a convolution to bytes, and the nodes `between`, which compute element by
// element; null where nothing rounds them.
const Node* rounding_behind(const Rewriter& rewriter, const Node& node, std::vector<Node*>& between) {
  const Node* last = &node;
  while (Node* reader = rewriter.only_reader(last->outputs.front())) {
    const bool is_first = reader->inputs[0] == last->outputs.front();
    if (reader->op == "QuantizeLinear" && is_first)
      return read_grid(reader->outputs.front()->dtype(), reader->inputs[1], reader->input(2)) ? reader : nullptr;
    if (!is_first || !(bounds_of(*reader) || reader->op == "LeakyRelu")) return nullptr;
    between.push_back(reader);
    last = reader;
  }
  return nullptr;
}

bool convolve_phases(Rewriter& rewriter, Node& node) {
  const Node* source = made_by(node.inputs[0], "DequantizeLinear");
  const Node* codes = weight_codes(node.inputs[1]);
  if (!source || !codes || !read_grid(source->inputs[0]->dtype(), source->inputs[1], source->input(2))) return false;
  const Value* bias = node.input(2);
  if (bias && (!bias->constant || bias->dtype() != DType::Float32)) return false;
  std::vector<Node*> between;
  const Node* rounding = rounding_behind(rewriter, node, between);
  const Tensor& weight = *codes->inputs[0]->constant;
  const Window window = read_window(node, 2);
  const int64_t groups = node.int_attr("group", 1), stride = window.strides[0];
  if (!rounding || weight.size() == 0 || weight.dims()[0] % groups != 0 || window.strides[1] != stride ||
      window.dilations != std::vector<int64_t>{1, 1})
    return false;
  const std::vector<int64_t> extra = node.ints_attr("output_padding", {0, 0});
  std::vector<Phases> axes;
  for (int axis = 0; axis < 2; ++axis) {
    const auto i = static_cast<size_t>(axis);
    const auto off = trimmed(node, window, axis, extra[i], weight.dims()[i + 2] - 1);
    if (!off || off->begin < 0) return false;
    axes.push_back(Phases::of(weight.dims()[i + 2], stride, *off, extra[i]));
    if (axes[i].pad_begin < 0 || axes[i].pad_end < 0) return false;
  }
  const Phases &rows = axes[0], &columns = axes[1];
  // Products by codes take a fraction of the time of others.
  constexpr int64_t kFaster = 4;
  const int64_t phases = stride * stride, channels = weight.dims()[1] * groups;
  if (phases * rows.kernel() * columns.kernel() > kFaster * weight.dims()[2] * weight.dims()[3]) return false;

  const Value* zero = codes->input(2);
  const auto constant = [&](const Value* like, Tensor tensor) {
    return rewriter.add_constant(like->name, std::move(tensor));
  };
  const auto spread = [&](const Value* v) {
    const Tensor& tensor = *v->constant;
    return constant(v, tensor.size() == 1 ? tensor.reshaped({}) : by_phase(tensor, channels, phases, groups));
  };
  std::vector<Value*> operands{
      constant(codes->inputs[0], phase_weights(weight, zero ? &*zero->constant : nullptr, groups, rows, columns)),
      spread(codes->inputs[1])};
  if (zero) operands.push_back(spread(zero));
  std::vector<Value*> inputs{node.inputs[0],
                             rewriter.insert(&node, "DequantizeLinear", operands, {{"axis", int64_t{0}}})};
  if (bias) inputs.push_back(constant(bias, by_phase(*bias->constant, channels, phases, groups)));
  Attrs attrs = {{"group", groups},
                 {"pads", std::vector<int64_t>{rows.pad_begin, columns.pad_begin, rows.pad_end, columns.pad_end}}};
  for (const char* bound : {"clamp_min", "clamp_max"}) {
    if (const auto it = node.attrs.find(bound); it != node.attrs.end()) attrs.insert(*it);
  }
  Value* y = rewriter.insert(&node, "Conv", inputs, std::move(attrs));
  y->producer->name = node.name;
  for (const Node* step : between) {
    std::vector<Value*> read = step->inputs;
    read[0] = y;
    y = rewriter.insert(&node, step->op, read, step->attrs);
  }
  std::vector<Value*> read = rounding->inputs;
  read[0] = y;
  y = rewriter.insert(&node, "QuantizeLinear", read, rounding->attrs);
  const std::string order = groups == 1 ? "DCR" : "CRD";
  if (stride > 1) y = rewriter.insert(&node, "DepthToSpace", {y}, {{"blocksize", stride}, {"mode", order}});
  if (rows.cut + columns.cut + rows.rest + columns.rest > 0) {
    constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
    const auto end = [&](const Phases& axis) { return axis.rest > 0 ? -axis.rest : kEnd; };
    const std::string& name = rounding->outputs.front()->name;
    y = rewriter.insert(
        &node, "Slice",
        {y, rewriter.add_ints(name + ".starts", {rows.cut, columns.cut}),
         rewriter.add_ints(name + ".ends", {end(rows), end(columns)}), rewriter.add_ints(name + ".axes", {2, 3})});
  }
  rewriter.replace(rounding->outputs.front(), y);
  return true;
}

bool flip_in_body(Graph& graph, const PassContext& context) {
  Rewriter rewriter(graph, context);
  for (Node* node : rewriter.nodes()) {
    if (node->op != "ConvTranspose") continue;
    if (rewriter.is_retired(node) || convolve_phases(rewriter, *node)) continue;
    const Value* weight = node->inputs[1];
    if (!weight->constant || !node->inputs[0]->shape().has_rank() || is_of_one_pixel(*node)) continue;
    const Dims& dims = weight->constant->dims();
    const Window window = read_window(*node, static_cast<int>(dims.size()) - 2);
    if (std::any_of(window.strides.begin(), window.strides.end(), [](int64_t s) { return s != 1; })) continue;
    const int64_t groups = node->int_attr("group", 1);
    const auto pads = flipped_pads(*node, window, dims);
    if (!pads || dims[0] % groups != 0) continue;
    Attrs attrs = {{"group", groups}, {"dilations", window.dilations}, {"pads", *pads}};
    for (const char* bound : {"clamp_min", "clamp_max"}) {
      if (const auto it = node->attrs.find(bound); it != node->attrs.end()) attrs.insert(*it);
    }
    std::vector<Value*> operands = node->inputs;
    operands[1] = rewriter.add_constant(weight->name, flipped_weights(*weight->constant, groups));
    Value* y = rewriter.insert(node, "Conv", operands, std::move(attrs));
    y->producer->name = node->name;
    rewriter.replace(node->outputs.front(), y);
  }
  return rewriter.finish();
}

}  // namespace

// A transposed convolution of stride one is a convolution with its weights turned round. One of codes that is rounded
// to codes is a convolution with channels for each phase of the stride, whose codes are then put into their places.
bool flip_transposed_convs(Graph& graph, const PassContext& context) {
  return for_each_body(graph, [&](Graph& g) { return flip_in_body(g, context); });
}

}  // namespace neo
