#include "routines/cpu/conv/large_kernel/large_kernel.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "routines/cpu/gemm/gemm_block.h"
#include "routines/cpu/tasks.h"

namespace neo {
namespace {

constexpr int64_t kMaxProducts = 256;             // that a pass over a task's sums adds
constexpr int64_t kMaxImages = 64;                // of a block
constexpr int64_t kMaxBlockChannels = 192;        // of a block
constexpr int64_t kMaxSums = 48 << 10;            // floats of a task, which the private cache should keep
constexpr int64_t kMaxLines = 64 << 10;           // floats of transposed lines, the same
constexpr int64_t kKernelPad = 16;                // floats between rows of the kernel's copy, whose sets then differ
constexpr int64_t kSumsLimit = int64_t{1} << 50;  // beyond any product: the tiles never clamp

// Images of a block, and where they begin.
IndexRange images_of(const LargeKernelPlan& plan, int64_t block) {
  const int64_t begin = block * plan.image_block;
  return {begin, std::min(begin + plan.image_block, plan.shape.n)};
}

// Columns of a product: some (pixel, image) pairs of one output row, which lie side by side in the transposed lines
// where pixels have no stride, or the images of one pixel.
struct PixelPanel {
  int64_t depth, height, width;  // of the first pixel
  int64_t first;                 // column of an output row where pixels lie side by side, or image
  int64_t columns;
  int64_t vectors;
  int64_t offset;  // floats of a row of the sums before it
};

// f(panel) for all panels of a block of `images`.
template <class F>
void for_each_panel(const LargeKernelPlan& plan, int64_t images, F&& f) {
  const Im2colConvShape& s = plan.shape;
  const bool dense = s.stride[2] == 1;
  const int64_t columns = dense ? s.out[2] * images : images, pixels = dense ? 1 : s.out[2];
  const int64_t vectors = ceil_div(columns, plan.lanes), cuts = ceil_div(vectors, int64_t{kTileVectors});
  int64_t offset = 0;
  for (int64_t d = 0; d < s.out[0]; ++d) {
    for (int64_t h = 0; h < s.out[1]; ++h) {
      for (int64_t w = 0; w < pixels; ++w) {
        for (int64_t cut = 0; cut < cuts; ++cut) {
          const IndexRange part = even_part(vectors, cuts, cut);
          const int64_t first = part.begin * plan.lanes;
          f(PixelPanel{d, h, w, first, std::min(columns - first, part.size() * plan.lanes), part.size(), offset});
          offset += part.size() * plan.lanes;
        }
      }
    }
  }
}

// A part of the kernel: some lines and columns of one plane of one input channel.
struct KernelPart {
  int64_t channel, depth;
  IndexRange y, x;

  static KernelPart of(const LargeKernelPlan& plan, int64_t index) {
    KernelPart part{};
    const int64_t x = index % plan.x_blocks() * plan.x_block;
    index /= plan.x_blocks();
    const int64_t y = index % plan.y_blocks() * plan.y_block;
    index /= plan.y_blocks();
    part.x = {x, std::min(x + plan.x_block, plan.shape.kernel[2])};
    part.y = {y, std::min(y + plan.y_block, plan.shape.kernel[1])};
    part.depth = index % plan.shape.kernel[0];
    part.channel = index / plan.shape.kernel[0];
    return part;
  }
  int64_t products() const { return y.size() * x.size(); }
};

// The lines that a part of the kernel reads of one plane of each image, as [line][pixel][image]; `plane` is the first
// image's.
void transpose_lines(const LargeKernelPlan& plan, const PackKernels& kernels, const KernelPart& part,
                     const float* plane, int64_t image_step, int64_t images, float* to) {
  const Im2colConvShape& s = plan.shape;
  const int64_t width = plan.line_width(part.x.size()), lines = plan.lines(part.y.size());
  const int64_t first_x = part.x.begin * s.dilation[2] - s.pad[2], first_y = part.y.begin * s.dilation[1] - s.pad[1];
  const int64_t begin = std::clamp<int64_t>(-first_x, 0, width), end = std::clamp(s.in[2] - first_x, begin, width);
  for (int64_t line = 0; line < lines; ++line, to += width * images) {
    const int64_t y = first_y + line;
    if (y < 0 || y >= s.in[1]) {
      std::fill_n(to, width * images, 0.0f);
      continue;
    }
    std::fill_n(to, begin * images, 0.0f);
    std::fill_n(to + end * images, (width - end) * images, 0.0f);
    if (begin == end) continue;
    const float* from = plane + y * s.in[2] + first_x + begin;
    float* pixels = to + begin * images;
    if (images % plan.lanes == 0) {
      kernels.panel(from, 1, image_step, end - begin, images, images / plan.lanes, 1.0f, pixels);
      continue;
    }
    for (int64_t image = 0; image < images; ++image) {
      for (int64_t x = 0; x < end - begin; ++x) pixels[x * images + image] = from[image * image_step + x];
    }
  }
}

// The places of a task's parts in its workspace.
struct LargeKernelWorkspace {
  float *kernel, *lines, *columns;
  int64_t kernel_row;

  LargeKernelWorkspace(const LargeKernelPlan& plan, float* workspace)
      : kernel(workspace), kernel_row(plan.y_block * plan.x_block + kKernelPad) {
    lines = kernel + round_up(plan.channel_block * kernel_row, 16);
    columns = lines + round_up(plan.lines(plan.y_block) * plan.line_width(plan.x_block) * plan.image_block, 16);
  }
  static int64_t size(const LargeKernelPlan& plan) {
    const LargeKernelWorkspace at(plan, nullptr);
    return at.columns - at.kernel + (plan.reads_lines() ? 0 : plan.y_block * plan.x_block * kTileVectors * plan.lanes);
  }
};

// One task: the products of a block of channels and one of images over one slice of the kernel's parts.
struct LargeKernelTask {
  int64_t group, channels, images, slice;  // numbers of the blocks

  static LargeKernelTask of(const LargeKernelPlan& plan, int64_t index) {
    LargeKernelTask task{};
    task.slice = index % plan.slices;
    index /= plan.slices;
    task.images = index % plan.image_blocks;
    index /= plan.image_blocks;
    task.channels = index % plan.channel_blocks;
    task.group = index / plan.channel_blocks;
    return task;
  }
};

}  // namespace

bool LargeKernelPlan::reads_lines() const {
  return shape.out_size() == 1 && shape.dilation[1] == 1 && shape.dilation[2] == 1 && image_block % lanes == 0 &&
         shape.n % lanes == 0;
}

LargeKernelPlan plan_large_kernel(const Im2colConvShape& s, int64_t lanes) {
  LargeKernelPlan plan;
  plan.shape = s;
  plan.lanes = lanes;
  plan.x_block = std::min(s.kernel[2], kMaxProducts);
  plan.y_block = std::clamp<int64_t>(kMaxProducts / plan.x_block, 1, s.kernel[1]);
  plan.image_block = plan.channel_block = 1;
  if (s.n == 0 || s.oc == 0 || s.out_size() == 0) return plan;
  const auto cut = [](int64_t size, int64_t most) { return ceil_div(size, ceil_div(size, most)); };
  plan.image_block = std::min(round_up(cut(s.n, kMaxImages), lanes), s.n);
  const auto lines = [&] { return plan.lines(plan.y_block) * plan.line_width(plan.x_block) * plan.image_block; };
  while (plan.y_block > 1 && lines() > kMaxLines) plan.y_block = ceil_div(plan.y_block, 2);
  while (plan.image_block > lanes && lines() > kMaxLines) plan.image_block = round_up(plan.image_block / 2, lanes);
  plan.image_blocks = ceil_div(s.n, plan.image_block);
  for_each_panel(plan, plan.image_block, [&](const PixelPanel& p) { plan.row_width = p.offset + p.vectors * lanes; });
  plan.channel_block = cut(s.group_oc(), std::clamp<int64_t>(kMaxSums / plan.row_width, 16, kMaxBlockChannels));
  plan.channel_blocks = ceil_div(s.group_oc(), plan.channel_block);
  const int64_t blocks = s.groups * plan.channel_blocks * plan.image_blocks;
  plan.slices =
      std::clamp<int64_t>(ceil_div(worthwhile_tasks(s.flops()), blocks), 1, std::max<int64_t>(1, plan.parts()));
  plan.tasks = blocks * plan.slices;
  plan.workspace_size = LargeKernelWorkspace::size(plan);
  return plan;
}

void sum_large_kernel(const LargeKernelPlan& plan, const TileKernels& kernels, const PackKernels& pack_kernels,
                      const ConvOperands& args, int64_t task_begin, int64_t task_end, float* sums, float* workspace) {
  const Im2colConvShape& s = plan.shape;
  const LargeKernelWorkspace at(plan, workspace);
  for (int64_t index = task_begin; index < task_end; ++index) {
    const LargeKernelTask task = LargeKernelTask::of(plan, index);
    const int64_t first_channel = task.channels * plan.channel_block;
    const int64_t channels = std::min(plan.channel_block, s.group_oc() - first_channel);
    const IndexRange block = images_of(plan, task.images);
    const int64_t images = block.size();
    float* block_sums = sums + index * plan.block_size();
    std::fill_n(block_sums, plan.block_size(), 0.0f);
    const IndexRange slice = even_part(plan.parts(), plan.slices, task.slice);
    for (int64_t number = slice.begin; number < slice.end; ++number) {
      const KernelPart part = KernelPart::of(plan, number);
      const int64_t products = part.products(), x_count = part.x.size();
      const float* kernel = args.weight +
                            ((task.group * s.group_oc() + first_channel) * s.group_ic() + part.channel) * s.taps() +
                            (part.depth * s.kernel[1] + part.y.begin) * s.kernel[2] + part.x.begin;
      for (int64_t channel = 0; channel < channels; ++channel) {
        for (int64_t y = 0; y < part.y.size(); ++y) {
          std::memcpy(at.kernel + channel * at.kernel_row + y * x_count,
                      kernel + channel * s.group_ic() * s.taps() + y * s.kernel[2],
                      static_cast<size_t>(x_count) * sizeof(float));
        }
      }
      // The tiles add to the sums, since the range of k does not begin at zero.
      GemmPlan gemm;
      gemm.shape.m = channels;
      gemm.shape.k = kSumsLimit;
      gemm.lanes = plan.lanes;
      GemmArgs gemm_args;
      gemm_args.a = at.kernel;
      gemm_args.a_row = at.kernel_row;
      BatchOffsets offsets;
      offsets.a = -1;
      int64_t held = -1;  // plane of the input whose lines are transposed
      for_each_panel(plan, images, [&](const PixelPanel& p) {
        const int64_t plane = p.depth * s.stride[0] + part.depth * s.dilation[0] - s.pad[0];
        if (plane < 0 || plane >= s.in[0]) return;
        if (plane != held) {
          const int64_t channel = task.group * s.group_ic() + part.channel;
          transpose_lines(
              plan, pack_kernels, part,
              args.src + block.begin * args.src_batch + channel * args.src_channel + plane * s.in[1] * s.in[2],
              args.src_batch, images, at.lines);
          held = plane;
        }
        const int64_t line_step = plan.line_width(x_count) * images, width = p.vectors * plan.lanes;
        const float* from = at.lines + p.height * s.stride[1] * line_step + p.width * s.stride[2] * images + p.first;
        const float* columns = from;
        int64_t step = images;
        if (!plan.reads_lines()) {
          for (int64_t y = 0; y < part.y.size(); ++y) {
            pack_kernels.panel(from + y * s.dilation[1] * line_step, s.dilation[2] * images, 1, x_count, p.columns,
                               p.vectors, 1.0f, at.columns + y * x_count * width);
          }
          columns = at.columns;
          step = width;
        }
        gemm.shape.n = width;
        gemm_args.c = block_sums + p.offset * channels;
        gemm_args.c_row = width;
        const GemmBlock tiles = {gemm, kernels, gemm_args, offsets, nullptr};
        tiles.run_rows(columns, step, 1.0f, {0, channels}, {0, p.vectors}, {1, 1 + products});
      });
    }
  }
}

void finish_large_kernel(const LargeKernelPlan& plan, const ConvOperands& args, const float* sums,
                         IndexRange channels) {
  const Im2colConvShape& s = plan.shape;
  float row[kTileVectors * 16];
  for (int64_t oc = channels.begin; oc < channels.end; ++oc) {
    const int64_t group = oc / s.group_oc(), channel = oc % s.group_oc(), channel_block = channel / plan.channel_block;
    const int64_t first_channel = channel_block * plan.channel_block;
    const int64_t count = std::min(plan.channel_block, s.group_oc() - first_channel);
    const float bias = args.bias ? args.bias[oc] : 0.0f;
    for (int64_t block = 0; block < plan.image_blocks; ++block) {
      const IndexRange images = images_of(plan, block);
      const int64_t first_task =
          ((group * plan.channel_blocks + channel_block) * plan.image_blocks + block) * plan.slices;
      for_each_panel(plan, images.size(), [&](const PixelPanel& p) {
        const int64_t width = p.vectors * plan.lanes;
        std::fill_n(row, width, bias);
        for (int64_t slice = 0; slice < plan.slices; ++slice) {
          const float* from =
              sums + (first_task + slice) * plan.block_size() + p.offset * count + (channel - first_channel) * width;
          for (int64_t j = 0; j < width; ++j) row[j] += from[j];
        }
        float* to = args.dst + oc * args.dst_channel + (p.depth * s.out[1] + p.height) * s.out[2] + p.width;
        int64_t pixel = p.first / images.size(), image = p.first % images.size();
        for (int64_t j = 0; j < p.columns; ++j) {
          const float raised = row[j] < args.lo ? args.lo : row[j];  // NaN passes
          to[(images.begin + image) * args.dst_batch + pixel] = raised > args.hi ? args.hi : raised;
          if (++image == images.size()) {
            image = 0;
            ++pixel;
          }
        }
      });
    }
  }
}

}  // namespace neo
