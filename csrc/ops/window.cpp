#include "ops/window.h"

#include <algorithm>

#include "ops/sizes.h"

namespace neo {

namespace {

std::vector<int64_t> axis_values(const Node& node, std::string_view key, int count, int64_t fallback,
                                 int64_t smallest) {
  auto values = node.ints_attr(key);
  if (values.empty()) values.assign(static_cast<size_t>(count), fallback);
  NEO_CHECK(static_cast<int>(values.size()) == count, Model, node.op, "attribute ", key,
            " must have one value per spatial axis", key == "pads" ? " and end" : "", ". Got ", values.size(),
            ", expected ", count, " - at ", node.place());
  for (const int64_t value : values) {
    NEO_CHECK(value >= smallest && value <= kMaxExtent, Model, node.op, "attribute ", key, " must be at least ",
              smallest, ". Got ", value, " - at ", node.place());
  }
  return values;
}

}  // namespace

AutoPad read_auto_pad(const Node& node) {
  const std::string text = node.string_attr("auto_pad", "NOTSET");
  if (text == "SAME_UPPER") return AutoPad::SameUpper;
  if (text == "SAME_LOWER") return AutoPad::SameLower;
  NEO_CHECK(text == "NOTSET" || text == "VALID" || text.empty(), Model, node.op,
            "attribute auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER. Got \"", text, "\" - at ",
            node.place());
  return AutoPad::NotSet;
}

Window read_window(const Node& node, int spatial_rank) {
  Window window;
  if (!node.ints_attr("kernel_shape").empty()) window.kernel = axis_values(node, "kernel_shape", spatial_rank, 1, 1);
  window.strides = axis_values(node, "strides", spatial_rank, 1, 1);
  window.dilations = axis_values(node, "dilations", spatial_rank, 1, 1);
  window.pads = axis_values(node, "pads", 2 * spatial_rank, 0, 0);
  window.auto_pad = read_auto_pad(node);
  if (node.string_attr("auto_pad", "NOTSET") == "VALID") window.pads.assign(window.pads.size(), 0);
  window.ceil_mode = node.int_attr("ceil_mode", 0) != 0;
  return window;
}

Dim window_extent(const Window& window, int axis, const Dim& kernel) {
  return (kernel - 1) * Dim(window.dilations[static_cast<size_t>(axis)]) + 1;
}

Dim window_output(const Window& window, int axis, const Dim& kernel, const Dim& input) {
  const auto i = static_cast<size_t>(axis);
  const Dim stride = window.strides[i];
  const Dim extent = window_extent(window, axis, kernel);
  switch (window.auto_pad) {
    case AutoPad::SameUpper:
    case AutoPad::SameLower:
      return ceildiv(input, stride);
    case AutoPad::NotSet:
      break;
  }
  const Dim begin = window.pads[i];
  const Dim free = input + begin + Dim(window.pads[i + window.strides.size()]) - extent;
  if (!window.ceil_mode) return floordiv(free, stride) + 1;
  // A window that would begin in the padding at the end is left out.
  return smaller(ceildiv(free, stride) + 1, ceildiv(input + begin, stride));
}

int64_t window_pad_total(const Window& window, int axis, int64_t kernel, int64_t input) {
  const auto i = static_cast<size_t>(axis);
  switch (window.auto_pad) {
    case AutoPad::NotSet:
      return window.pads[i] + window.pads[i + window.strides.size()];
    default:
      break;
  }
  const int64_t output = window_output(window, axis, kernel, input).value();
  const int64_t extent = window_extent(window, axis, kernel).value();
  return std::max<int64_t>(0, (output - 1) * window.strides[i] + extent - input);
}

int64_t window_pad_begin(const Window& window, int axis, int64_t kernel, int64_t input) {
  const int64_t total = window_pad_total(window, axis, kernel, input);
  switch (window.auto_pad) {
    case AutoPad::NotSet:
      return window.pads[static_cast<size_t>(axis)];
    case AutoPad::SameLower:
      return total - total / 2;
    default:
      return total / 2;
  }
}

WindowSizes window_sizes(const ReferenceContext& ctx, const Window& window, const Dims& kernel, const Dims& input) {
  WindowSizes sizes{.input = input,
                    .kernel = kernel,
                    .output = {},
                    .strides = window.strides,
                    .dilations = window.dilations,
                    .pads_begin = {}};
  for (int axis = 0; axis < sizes.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    const int64_t output = window_output(window, axis, kernel[i], input[i]).value();
    ctx.check(output >= 0, str("the window must fit into the padded input. Got input ", to_string(input), ", kernel ",
                               to_string(kernel)));
    sizes.output.push_back(output);
    sizes.pads_begin.push_back(window_pad_begin(window, axis, kernel[i], input[i]));
  }
  return sizes;
}

OutputRange valid_outputs(const WindowSizes& sizes, int axis, int64_t tap) {
  const auto i = static_cast<size_t>(axis);
  const int64_t stride = sizes.strides[i];
  // Output o reads input o * stride + offset.
  const int64_t offset = tap * sizes.dilations[i] - sizes.pads_begin[i];
  const int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t last = sizes.input[i] - 1 - offset;
  const int64_t end = last < 0 ? 0 : std::min(sizes.output[i], last / stride + 1);
  return {begin, std::max(begin, end)};
}

void for_each_run(const WindowSizes& sizes, const Dims& tap,
                  const std::function<void(int64_t input, int64_t output, int64_t count)>& body) {
  const int rank = sizes.rank();
  if (rank == 0) return body(0, 0, 1);
  std::vector<OutputRange> ranges;
  for (int axis = 0; axis < rank; ++axis) {
    ranges.push_back(valid_outputs(sizes, axis, tap[static_cast<size_t>(axis)]));
    if (ranges.back().begin == ranges.back().end) return;
  }
  Dims position;
  for (const OutputRange& range : ranges) position.push_back(range.begin);
  const int last = rank - 1;
  for (;;) {
    int64_t input = 0;
    int64_t output = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
      input =
          input * sizes.input[i] + position[i] * sizes.strides[i] + tap[i] * sizes.dilations[i] - sizes.pads_begin[i];
      output = output * sizes.output[i] + position[i];
    }
    body(input, output, ranges.back().end - ranges.back().begin);
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      const auto i = static_cast<size_t>(axis);
      if (++position[i] < ranges[i].end) break;
      position[i] = ranges[i].begin;
    }
    if (axis < 0) return;
  }
}

}  // namespace neo
