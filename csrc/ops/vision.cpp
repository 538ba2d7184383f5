#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/budget.h"
#include "ops/boxes.h"
#include "ops/col2im.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/roi_align.h"
#include "ops/sizes.h"

namespace neo {

namespace {

// NonMaxSuppression

void infer_non_max_suppression(InferContext& ctx) {
  ctx.check_rank(0, 3);
  ctx.check_rank(1, 3);
  Range range;
  if (ctx.ranked(0) && ctx.ranked(1)) {
    ctx.require_equal(ctx.shape(0)[0], ctx.shape(1)[0], "boxes and scores must have one batch size");
    ctx.require_equal(ctx.shape(0)[1], ctx.shape(1)[2], "boxes and scores must have one number of boxes");
    ctx.require_equal(ctx.shape(0)[2], 4, "a box must have four coordinates");
    const auto limit = scalar_contents(ctx, 2);
    const Dim per_class = limit && limit->is_constant() ? smaller(larger(*limit, 0), ctx.shape(0)[1]) : ctx.shape(0)[1];
    range.hi = (ctx.shape(1)[0] * ctx.shape(1)[1] * per_class).range().hi;
  }
  ctx.set_output(0, DType::Int64, Shape({ctx.fresh("selected", range), 3}));
}

std::vector<Box> read_boxes(const std::vector<double>& numbers, bool centered) {
  std::vector<Box> boxes;
  for (size_t i = 0; i + 3 < numbers.size(); i += 4) {
    const auto a = static_cast<float>(numbers[i]);
    const auto b = static_cast<float>(numbers[i + 1]);
    const auto c = static_cast<float>(numbers[i + 2]);
    const auto d = static_cast<float>(numbers[i + 3]);
    if (centered) {
      boxes.push_back({a - c / 2, a + c / 2, b - d / 2, b + d / 2});
    } else {
      boxes.push_back({std::min(b, d), std::max(b, d), std::min(a, c), std::max(a, c)});
    }
  }
  return boxes;
}

void reference_non_max_suppression(ReferenceContext& ctx) {
  const Dims& dims = ctx.input(0).dims();
  const Dims& score_dims = ctx.input(1).dims();
  ctx.check(dims.size() == 3 && score_dims.size() == 3 && dims[2] == 4 && dims[0] == score_dims[0] &&
                dims[1] == score_dims[2],
            str("boxes and scores must fit. Got ", to_string(dims), " and ", to_string(score_dims)));
  const auto given = [&](int input) { return ctx.has_input(input) && ctx.input(input).size() > 0; };
  const int64_t limit = given(2) ? std::max<int64_t>(0, scalar_int(ctx, 2)) : 0;
  const auto iou_threshold = given(3) ? static_cast<float>(scalar_double(ctx, 3)) : 0.0F;
  const double score_threshold = given(4) ? scalar_double(ctx, 4) : -std::numeric_limits<double>::infinity();
  const auto boxes = read_boxes(ctx.doubles(0), ctx.node().int_attr("center_point_box", 0) != 0);
  const auto scores = ctx.doubles(1);
  const auto count = static_cast<size_t>(dims[1]);
  std::vector<int64_t> selected;
  for (int64_t batch = 0; batch < score_dims[0]; ++batch) {
    const Box* image = boxes.data() + static_cast<size_t>(batch) * count;
    for (int64_t c = 0; c < score_dims[1]; ++c) {
      const double* score = scores.data() + static_cast<size_t>(batch * score_dims[1] + c) * count;
      std::vector<size_t> order;
      for (size_t i = 0; i < count; ++i) {
        checkpoint();
        if (score[i] >= score_threshold) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score[a] > score[b]; });
      std::vector<size_t> kept;
      for (const size_t i : order) {
        checkpoint();
        if (static_cast<int64_t>(kept.size()) >= limit) break;
        const bool hidden = std::any_of(kept.begin(), kept.end(), [&](size_t k) {
          return intersection_over_union(image[i], image[k]) > iou_threshold;
        });
        if (!hidden) kept.push_back(i);
      }
      for (const size_t i : kept) selected.insert(selected.end(), {batch, c, static_cast<int64_t>(i)});
    }
  }
  store_ints(ctx.output(0, DType::Int64, {static_cast<int64_t>(selected.size() / 3), 3}), selected);
}

Work work_non_max_suppression(const Node& node) {
  Work work;
  for (const Value* input : node.inputs) {
    if (input == nullptr || !input->shape().has_rank()) continue;
    work.bytes = work.bytes + input->shape().element_count() * Dim(item_bytes(input->dtype()));
  }
  const Value* scores = node.input(1);
  if (scores != nullptr && scores->shape().has_rank()) work.flops = scores->shape().element_count() * Dim(64);
  return work;
}

// RoiAlign (Mask R-CNN, section 3). Mode max takes the largest weighted pixel of all samples, not the largest sample:
// the reference data of ONNX's tests fix that.

bool is_half_pixel(const Node& node) {
  const std::string mode = node.string_attr("coordinate_transformation_mode", "half_pixel");
  NEO_CHECK(mode == "half_pixel" || mode == "output_half_pixel", Model, node.op,
            "coordinate_transformation_mode must be half_pixel or output_half_pixel. Got \"", mode, "\" - at ",
            node.place());
  return mode == "half_pixel";
}

// Samples of a cell along an axis.
constexpr int64_t kMaxSampling = 1024;

void infer_roi_align(InferContext& ctx) {
  takes_roi_maximum(ctx.node());
  is_half_pixel(ctx.node());
  const int64_t sampling = ctx.node().int_attr("sampling_ratio", 0);
  ctx.check(sampling >= 0 && sampling <= kMaxSampling,
            str("sampling_ratio must be 0 to ", kMaxSampling, ". Got ", sampling));
  ctx.check_rank(0, 4);
  ctx.check_rank(1, 2);
  ctx.check_rank(2, 1);
  Dim count = ctx.ranked(1) ? ctx.shape(1)[0] : ctx.fresh("rois");
  if (ctx.ranked(2)) count = unify(ctx, count, ctx.shape(2)[0], "rois and batch_indices must have one length");
  if (ctx.ranked(1)) ctx.require_equal(ctx.shape(1)[1], 4, "a region must have four coordinates");
  const Dim channels = ctx.ranked(0) ? ctx.shape(0)[1] : ctx.fresh("channels");
  ctx.set_output(
      0, ctx.dtype(0),
      Shape({count, channels, ctx.node().int_attr("output_height", 1), ctx.node().int_attr("output_width", 1)}));
}

Bilinear bilinear_at(double y, double x, int64_t height, int64_t width) {
  Bilinear sample;
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return sample;
  const auto split = [](double at, int64_t size) {
    const double inside = std::clamp(at, 0.0, static_cast<double>(size - 1));
    const auto low = static_cast<int64_t>(inside);
    return std::tuple(low, std::min(low + 1, size - 1), inside - static_cast<double>(low));
  };
  const auto [y0, y1, fy] = split(y, height);
  const auto [x0, x1, fx] = split(x, width);
  return {{y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1},
          {(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx}};
}

void reference_roi_align(ReferenceContext& ctx) {
  const bool max_mode = takes_roi_maximum(ctx.node());
  const Tensor& x = ctx.input(0);
  const Dims& dims = x.dims();
  const int64_t cells = ctx.node().int_attr("output_height", 1) * ctx.node().int_attr("output_width", 1);
  const auto pixels = ctx.doubles(0);
  std::vector<double> result;
  for_each_roi_cell(ctx, [&](int64_t r, int64_t batch, int64_t cell, std::span<const Bilinear> samples) {
    const int64_t channels = dims[1], plane = dims[2] * dims[3];
    if (result.empty()) result = make_scratch<double>(ctx.input(2).size() * channels * cells);
    for (int64_t c = 0; c < channels; ++c) {
      const double* image = pixels.data() + (batch * channels + c) * plane;
      double value = 0;
      for (size_t s = 0; s < samples.size(); ++s) {
        const Bilinear& sample = samples[s];
        double sum = 0;
        double largest = sample.weights[0] * image[sample.positions[0]];
        for (int k = 0; k < 4; ++k) {
          const double weighted = sample.weights[k] * image[sample.positions[k]];
          sum += weighted;
          largest = std::max(largest, weighted);
        }
        value = !max_mode ? value + sum : s == 0 ? largest : std::max(value, largest);
      }
      if (!max_mode && !samples.empty()) value /= static_cast<double>(samples.size());
      result[static_cast<size_t>((r * channels + c) * cells + cell)] = value;
    }
  });
  const Tensor& out = ctx.output(
      0, x.dtype(),
      {ctx.input(2).size(), dims[1], ctx.node().int_attr("output_height", 1), ctx.node().int_attr("output_width", 1)});
  store_doubles(out, result);
}

Work work_roi_align(const Node& node) {
  Work work = movement_work(node);
  const Value* y = node.output(0);
  if (y == nullptr || !y->shape().has_rank()) return work;
  const int64_t sampling = std::max<int64_t>(2, node.int_attr("sampling_ratio", 0));
  work.flops = y->shape().element_count() * Dim(8 * sampling * sampling);
  return work;
}

// MaxRoiPool (Fast R-CNN, section 2.1)

// A message takes longer to make than the regions that need none.
[[noreturn]] void fail_region(const ReferenceContext& ctx, const std::string& size) {
  ctx.fail(ErrorKind::Shape, "a region must be of a finite size. Got " + size);
}

void infer_max_roi_pool(InferContext& ctx) {
  ctx.check_rank(0, 4);
  ctx.check_rank(1, 2);
  const auto pooled = ctx.node().ints_attr("pooled_shape");
  ctx.check(pooled.size() == 2 && pooled[0] > 0 && pooled[1] > 0,
            str("pooled_shape must be two positive sizes. Got ", to_string(pooled)));
  if (ctx.ranked(1)) ctx.require_equal(ctx.shape(1)[1], 5, "a region must have a batch index and four coordinates");
  ctx.set_output(0, ctx.dtype(0),
                 Shape({ctx.ranked(1) ? ctx.shape(1)[0] : ctx.fresh("rois"),
                        ctx.ranked(0) ? ctx.shape(0)[1] : ctx.fresh("channels"), pooled[0], pooled[1]}));
}

void reference_max_roi_pool(ReferenceContext& ctx) {
  const auto regions = max_roi_bins(ctx);
  const Tensor& x = ctx.input(0);
  const Dims& dims = x.dims();
  const auto pixels = ctx.doubles(0);
  std::vector<double> result;
  for (const RoiBins& region : regions) {
    for (int64_t c = 0; c < dims[1]; ++c) {
      const double* image = pixels.data() + (region.image * dims[1] + c) * dims[2] * dims[3];
      for (const IndexRange rows : region.rows) {
        for (const IndexRange columns : region.columns) {
          const bool empty = rows.size() <= 0 || columns.size() <= 0;
          double value = empty ? 0 : -std::numeric_limits<double>::infinity();
          for (int64_t row = rows.begin; row < rows.end; ++row) {
            checkpoint();
            for (int64_t column = columns.begin; column < columns.end; ++column)
              value = std::max(value, image[row * dims[3] + column]);
          }
          result.push_back(value);
        }
      }
    }
  }
  const auto pooled = ctx.node().ints_attr("pooled_shape");
  store_doubles(ctx.output(0, x.dtype(), {std::ssize(regions), dims[1], pooled[0], pooled[1]}), result);
}

// DepthToSpace, SpaceToDepth

bool is_depth_first(const Node& node) {
  const std::string mode = node.string_attr("mode", "DCR");
  NEO_CHECK(mode == "DCR" || mode == "CRD", Model, node.op, "mode must be DCR or CRD. Got \"", mode, "\" - at ",
            node.place());
  return mode == "DCR";
}

int64_t block_size(const Node& node) {
  const int64_t block = node.int_attr("blocksize", 0);
  NEO_CHECK(block > 0 && block < (int64_t{1} << 20), Model, node.op, "blocksize must be positive. Got ", block,
            " - at ", node.place());
  return block;
}

void infer_space_and_depth(InferContext& ctx) {
  is_depth_first(ctx.node());
  const int64_t block = block_size(ctx.node());
  ctx.check_rank(0, 4);
  if (!ctx.ranked(0)) return ctx.set_output(0, ctx.dtype(0), Shape(fresh_dims(ctx, 4, "block")));
  const Shape& x = ctx.shape(0);
  if (ctx.node().op == "DepthToSpace") {
    ctx.require_divides(block * block, x[1], "blocksize squared must divide the channels");
    return ctx.set_output(0, ctx.dtype(0),
                          Shape({x[0], floordiv(x[1], block * block), x[2] * Dim(block), x[3] * Dim(block)}));
  }
  ctx.require_divides(block, x[2], "blocksize must divide the height");
  ctx.require_divides(block, x[3], "blocksize must divide the width");
  ctx.set_output(0, ctx.dtype(0),
                 Shape({x[0], x[1] * Dim(block * block), floordiv(x[2], block), floordiv(x[3], block)}));
}

void reference_space_and_depth(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const int64_t block = block_size(ctx.node());
  const bool depth_first = is_depth_first(ctx.node());
  ctx.check(x.rank() == 4, str("the input must have a rank of 4. Got ", to_string(x.dims())));
  const bool to_space = ctx.node().op == "DepthToSpace";
  // The deep side is [n, depth, rows, columns] blocks of block x block; the wide side has them unfolded.
  const int64_t n = x.dims()[0];
  const int64_t depth = to_space ? x.dims()[1] / (block * block) : x.dims()[1];
  const int64_t rows = to_space ? x.dims()[2] : x.dims()[2] / block;
  const int64_t columns = to_space ? x.dims()[3] : x.dims()[3] / block;
  const Dims wide{n, depth, rows * block, columns * block};
  const Dims deep{n, depth * block * block, rows, columns};
  ctx.check(x.dims() == (to_space ? deep : wide),
            str("blocksize must divide the input. Got ", block, " for ", to_string(x.dims())));
  const Tensor& y = ctx.output(0, x.dtype(), to_space ? wide : deep);
  // Axes n, depth, row, row in block, column, column in block.
  const Dims box{n, depth, rows, block, columns, block};
  const StridedView in_wide{0, dense_strides(box)};
  const int64_t plane = rows * columns;
  const int64_t channel = depth_first ? plane : block * block * plane;
  const int64_t inside = depth_first ? depth * plane : plane;
  const StridedView in_deep{0, {depth * block * block * plane, channel, columns, block * inside, 1, inside}};
  copy_strided(x.dtype(), box, x.data(), to_space ? in_deep : in_wide, y.data(), to_space ? in_wide : in_deep);
}

// Col2Im

void infer_col2im(InferContext& ctx) {
  ctx.check_rank(0, 3);
  const auto image = shape_contents(ctx, 1);
  const auto block = shape_contents(ctx, 2);
  const auto count = constant_length(ctx, 1);
  const Dim batch = ctx.ranked(0) ? ctx.shape(0)[0] : ctx.fresh("batch");
  Dim channels;
  if (ctx.ranked(0) && block) {
    const Dim taps = product(*block);
    ctx.require_divides(taps, ctx.shape(0)[1], "the block must divide the rows of the input");
    channels = floordiv(ctx.shape(0)[1], taps);
  } else {
    channels = ctx.fresh("channels");
  }
  if (!image && !count) return ctx.set_output(0, ctx.dtype(0), Shape());
  std::vector<Dim> dims = image ? *image : fresh_dims(ctx, *count, "image");
  dims.insert(dims.begin(), {batch, channels});
  ctx.set_output(0, ctx.dtype(0), Shape(std::move(dims)));
}

void reference_col2im(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const ImageBlocks blocks = image_blocks(ctx);
  const size_t rank = blocks.image.size();
  const int64_t plane = element_count(blocks.image), count = element_count(blocks.positions);
  const auto columns = ctx.doubles(0);
  auto result = make_scratch<double>(element_count(blocks.output), 0.0);
  const Dims image_strides = dense_strides(blocks.image);
  size_t next = 0;
  for (int64_t channel = 0; x.size() > 0 && channel < blocks.output[0] * blocks.output[1]; ++channel) {
    std::vector<int64_t> tap(rank, 0);
    do {
      std::vector<int64_t> position(rank, 0);
      for (int64_t b = 0; b < count; ++b) {
        int64_t to = channel * plane;
        bool inside = true;
        for (size_t a = 0; inside && a < rank; ++a) {
          const int64_t at = blocks.place(a, position[a], tap[a]);
          inside = at >= 0 && at < blocks.image[a];
          if (inside) to += at * image_strides[a];
        }
        if (inside) result[static_cast<size_t>(to)] += columns[next];
        ++next;
        next_index(position, blocks.positions);
      }
    } while (next_index(tap, blocks.block));
  }
  store_doubles(ctx.output(0, x.dtype(), blocks.output), result);
}

}  // namespace

std::vector<RoiBins> max_roi_bins(const ReferenceContext& ctx) {
  const Dims &dims = ctx.input(0).dims(), &roi_dims = ctx.input(1).dims();
  ctx.check(dims.size() == 4 && roi_dims.size() == 2 && roi_dims[1] == 5,
            str("X and rois must fit. Got ", to_string(dims), " and ", to_string(roi_dims)));
  const auto pooled = ctx.node().ints_attr("pooled_shape");
  const double scale = ctx.node().float_attr("spatial_scale", 1);
  const auto rounded = [&](double coordinate) {
    const double at = std::round(coordinate * scale);
    if (!(std::abs(at) < 1e9)) fail_region(ctx, str(coordinate));
    return static_cast<int64_t>(at);
  };
  // Bins over [first, last], cut to [0, extent).
  const auto bins = [&](int64_t count, int64_t first, int64_t last, int64_t extent) {
    const double width = static_cast<double>(std::max<int64_t>(last - first + 1, 1)) / static_cast<double>(count);
    std::vector<IndexRange> ranges;
    for (int64_t i = 0; i < count; ++i) {
      const auto begin = static_cast<int64_t>(std::floor(static_cast<double>(i) * width)) + first;
      const auto end = static_cast<int64_t>(std::ceil(static_cast<double>(i + 1) * width)) + first;
      ranges.push_back({std::clamp<int64_t>(begin, 0, extent), std::clamp<int64_t>(end, 0, extent)});
    }
    return ranges;
  };
  std::vector<RoiBins> regions;
  const auto coordinates = ctx.doubles(1);
  for (int64_t r = 0; r < roi_dims[0]; ++r) {
    const double* region = coordinates.data() + r * 5;
    RoiBins found;
    found.image = checked_index(ctx, static_cast<int64_t>(region[0]), dims[0]);
    const int64_t left = rounded(region[1]), top = rounded(region[2]);
    found.columns = bins(pooled[1], left, rounded(region[3]), dims[3]);
    found.rows = bins(pooled[0], top, rounded(region[4]), dims[2]);
    regions.push_back(std::move(found));
  }
  return regions;
}

ImageBlocks image_blocks(const ReferenceContext& ctx) {
  const Dims& columns = ctx.input(0).dims();
  ImageBlocks blocks;
  blocks.image = ctx.ints(1);
  blocks.block = ctx.ints(2);
  const size_t rank = blocks.image.size();
  blocks.strides = ctx.node().ints_attr("strides", std::vector<int64_t>(rank, 1));
  blocks.dilations = ctx.node().ints_attr("dilations", std::vector<int64_t>(rank, 1));
  blocks.pads = ctx.node().ints_attr("pads", std::vector<int64_t>(2 * rank, 0));
  ctx.check(
      columns.size() == 3 && blocks.block.size() == rank && blocks.strides.size() == rank &&
          blocks.dilations.size() == rank && blocks.pads.size() == 2 * rank,
      str("image_shape, block_shape, strides, dilations and pads must have one number per axis. Got ", rank, " axes"));
  for (size_t a = 0; a < rank; ++a) {
    for (const int64_t number : {blocks.block[a], blocks.strides[a], blocks.dilations[a]}) {
      if (number < 1 || number > INT32_MAX)
        ctx.fail(ErrorKind::Shape, str("blocks, strides and dilations must be 1 to ", INT32_MAX, ". Got ", number));
    }
    for (const int64_t number : {blocks.image[a], blocks.pads[a], blocks.pads[a + rank]}) {
      if (number < 0 || number > kMaxExtent)
        ctx.fail(ErrorKind::Shape, str("sizes and pads must be 0 to ", kMaxExtent, ". Got ", number));
    }
    const int64_t free =
        blocks.image[a] + blocks.pads[a] + blocks.pads[a + rank] - blocks.dilations[a] * (blocks.block[a] - 1) - 1;
    blocks.positions.push_back(free < 0 ? 0 : free / blocks.strides[a] + 1);
  }
  const int64_t taps = element_count(blocks.block), count = element_count(blocks.positions);
  ctx.check(columns[1] % taps == 0 && columns[2] == count,
            str("the input must hold every block of every channel. Got ", to_string(columns), ", expected [N, C * ",
                taps, ", ", count, "]"));
  blocks.output = {columns[0], columns[1] / taps};
  blocks.output.insert(blocks.output.end(), blocks.image.begin(), blocks.image.end());
  return blocks;
}

bool takes_roi_maximum(const Node& node) {
  const std::string mode = node.string_attr("mode", "avg");
  NEO_CHECK(mode == "avg" || mode == "max", Model, node.op, "mode must be avg or max. Got \"", mode, "\" - at ",
            node.place());
  return mode == "max";
}

void for_each_roi_cell(
    const ReferenceContext& ctx,
    const std::function<void(int64_t region, int64_t image, int64_t cell, std::span<const Bilinear> samples)>& body) {
  const Node& node = ctx.node();
  const Dims& dims = ctx.input(0).dims();
  const int64_t rois = ctx.input(2).size();
  ctx.check(dims.size() == 4 && ctx.input(1).dims() == Dims{rois, 4},
            str("X, rois and batch_indices must fit. Got ", to_string(dims), ", ", to_string(ctx.input(1).dims()),
                " and ", rois, " indices"));
  const bool half_pixel = is_half_pixel(node);
  const double shift = half_pixel ? 0.5 : 0.0;
  const int64_t rows = node.int_attr("output_height", 1);
  const int64_t columns = node.int_attr("output_width", 1);
  const int64_t sampling = node.int_attr("sampling_ratio", 0);
  const double scale = node.float_attr("spatial_scale", 1);
  if (rois * dims[1] * rows * columns == 0) return;
  ctx.check(dims[2] * dims[3] > 0, str("X must hold pixels. Got ", to_string(dims)));
  const auto regions = ctx.doubles(1);
  const auto batches = ctx.ints(2);
  std::vector<Bilinear> samples;
  for (int64_t r = 0; r < rois; ++r) {
    const double* region = regions.data() + r * 4;
    const int64_t batch = checked_index(ctx, batches[static_cast<size_t>(r)], dims[0]);
    const double left = region[0] * scale - shift;
    const double top = region[1] * scale - shift;
    double width = region[2] * scale - shift - left;
    double height = region[3] * scale - shift - top;
    if (!half_pixel) {
      width = std::max(width, 1.0);
      height = std::max(height, 1.0);
    }
    if (!(std::abs(width) < 1e6 && std::abs(height) < 1e6)) fail_region(ctx, str(height, " x ", width));
    const double bin_height = height / static_cast<double>(rows);
    const double bin_width = width / static_cast<double>(columns);
    const int64_t grid_rows = sampling > 0 ? sampling : static_cast<int64_t>(std::ceil(bin_height));
    const int64_t grid_columns = sampling > 0 ? sampling : static_cast<int64_t>(std::ceil(bin_width));
    if (grid_rows * grid_columns > kMaxSampling * kMaxSampling) {
      ctx.fail(ErrorKind::Shape, str("a region must have at most ", kMaxSampling * kMaxSampling,
                                     " samples per cell. Got ", grid_rows, " x ", grid_columns));
    }
    for (int64_t cell = 0; cell < rows * columns; ++cell) {
      const auto i = static_cast<double>(cell / columns), j = static_cast<double>(cell % columns);
      samples.clear();
      for (int64_t gy = 0; gy < grid_rows; ++gy) {
        const double y = top + bin_height * (i + (static_cast<double>(gy) + 0.5) / static_cast<double>(grid_rows));
        for (int64_t gx = 0; gx < grid_columns; ++gx) {
          checkpoint();
          const double x = left + bin_width * (j + (static_cast<double>(gx) + 0.5) / static_cast<double>(grid_columns));
          samples.push_back(bilinear_at(y, x, dims[2], dims[3]));
        }
      }
      body(r, batch, cell, samples);
    }
  }
}

void add_vision_ops(OpRegistry& ops) {
  ops.add({.name = "NonMaxSuppression",
           .min_inputs = 2,
           .max_inputs = 5,
           .infer = infer_non_max_suppression,
           .reference = reference_non_max_suppression,
           .work = work_non_max_suppression});
  ops.add({.name = "RoiAlign",
           .min_inputs = 3,
           .max_inputs = 3,
           .infer = infer_roi_align,
           .reference = reference_roi_align,
           .work = work_roi_align});
  ops.add({.name = "MaxRoiPool",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_max_roi_pool,
           .reference = reference_max_roi_pool});
  for (const char* op : {"DepthToSpace", "SpaceToDepth"}) {
    ops.add(
        {.name = op, .infer = infer_space_and_depth, .reference = reference_space_and_depth, .work = movement_work});
  }
  ops.add({.name = "Col2Im",
           .min_inputs = 3,
           .max_inputs = 3,
           .infer = infer_col2im,
           .reference = reference_col2im,
           .shape_inputs = {1}});
}

}  // namespace neo
