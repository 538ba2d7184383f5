#include "base/check.h"
#include "routines/gpu/sort/keys.h"
#include "routines/gpu/vision/programs.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

constexpr int kRoiAlignThreads = 64;

// A region along one axis.
struct Extent {
  Expr start, bin, samples;
};

class RoiAlign final : public Program {
 public:
  explicit RoiAlign(const RoiAlignChoice& choice) : choice_(choice) { kernels_.push_back(align_kernel()); }

  const std::vector<Kernel>& kernels() const override { return kernels_; }

  Launches launches(std::span<const Dims> shapes) const override {
    const Dims &x = shapes[0], &y = shapes[3];
    const int64_t n = y[0] * y[1] * y[2] * y[3], pixels = x[0] * x[1] * x[2] * x[3];
    Launches out;
    if (n == 0) return out;
    NEO_CHECK(pixels > 0, Shape, "RoiAlign", "x must hold pixels. Got ", to_string(x));
    out.launches.push_back({0,
                            {n, x[0], x[1], x[2], x[3], pixels, y[0], y[2], y[3], choice_.sampling,
                             double{choice_.scale}, Operand{0}, Operand{1}, Operand{2}, Operand{3}}});
    return out;
  }

 private:
  // From the region's two coordinates. The number of samples is the size of a cell rounded up: float32's quotient may
  // be one off, which the sign of samples x cells - size tells, with the rounding errors of the size.
  Extent extent(Builder& b, const Expr& first, const Expr& last, const Expr& scale, const Expr& cells,
                const Expr& sampling) const {
    const Expr start = b.let("start", fma(first, scale, choice_.half_pixel ? -0.5f : 0.0f));
    const Expr length = b.let("length", last - first), back = b.let("back", length - last);
    const Expr error = b.let("error", (last - (length - back)) - (first + back));
    const Array size = b.registers("size", kFloat, 1), samples = b.registers("samples", kInt, 1);
    const Expr exact = b.let("exact", fma(length, scale, error * scale));
    size[0] = exact;
    if (!choice_.half_pixel) size[0] = max(exact, 1.0f);
    const Expr count = cast(cells, DType::Float32);
    const Expr bin = b.let("bin", Expr(size[0]) / count);
    samples[0] = sampling;
    b.when(sampling == 0, [&] {
      samples[0] = cast(make(kernel::Op::Ceil, {min(max(bin, 0.0f), 1048576.0f)}), DType::Int32);
      const auto surplus = [&](const Expr& wanted) {  // wanted x cells - size
        const Expr product = cast(wanted, DType::Float32) * count;
        const Expr plain = product - size[0];
        return choice_.half_pixel ? fma(-length, scale, product) - error * scale
                                  : select(size[0] > exact, plain, fma(-length, scale, product) - error * scale);
      };
      b.when(samples[0] > 0, [&] {
        const Expr guess = b.let("guess", samples[0]);
        b.when(surplus(guess - 1) >= 0.0f, [&] { samples[0] = guess - 1; });
      });
      const Expr guess = b.let("guess", samples[0]);
      b.when(surplus(guess) < 0.0f, [&] { samples[0] = guess + 1; });
    });
    return {start, bin, b.let("samples", samples[0])};
  }

  Kernel align_kernel() const {
    Builder b(std::string("roi_align_") + (choice_.max ? "max" : "avg") + (choice_.half_pixel ? "_half_pixel" : ""));
    const Expr n = b.size("n", 1, kMaxElements);
    const Expr images = b.size("images", 1, kMaxElements), channels = b.size("channels", 1, kMaxElements);
    const Expr height = b.size("height", 1, kMaxElements), width = b.size("width", 1, kMaxElements);
    const Expr pixels = b.size("pixels", 1, kMaxElements), regions = b.size("regions", 1, kMaxElements / 4);
    const Expr rows = b.size("rows", 1, kMaxElements), columns = b.size("columns", 1, kMaxElements);
    const Expr sampling = b.size("sampling", 0, kMaxElements), scale = b.number("scale", DType::Float32);
    const Array x = b.input("x", DType::Float32, pixels);
    const Array rois = b.input("rois", DType::Float32, regions * 4),
                batches = b.input("batches", DType::Int64, regions);
    const Array y = b.output("y", DType::Float32, n);
    const Expr at = b.let("at", b.group(0, "group", ceildiv(n, kRoiAlignThreads)) * kRoiAlignThreads +
                                    b.local(0, "thread", kRoiAlignThreads));
    b.when(at < n, [&] {
      const Expr column = b.let("column", at % columns), row = b.let("row", at / columns % rows);
      const Expr channel = b.let("channel", at / columns / rows % channels);
      const Expr region = unproven(b, "region", at / columns / rows / channels);
      const Array result = b.registers("result", kFloat, 1);
      result[0] = 0.0f;
      within(b, region, regions, [&] {
        Expr corner[4];
        for (int k = 0; k < 4; ++k) corner[k] = b.let("corner", rois[region * 4 + k]);
        const Expr image = b.let("image", cast(batches[region], DType::Int32));
        const Extent across = extent(b, corner[0], corner[2], scale, columns, sampling);
        const Extent down = extent(b, corner[1], corner[3], scale, rows, sampling);
        const Expr wrapped = b.let("wrapped", select(image < 0, image + images, image));
        const Expr plane = unproven(b, "plane", (wrapped * channels + channel) * height * width);
        const Array is_first = b.registers("is_first", kInt, 1);
        is_first[0] = 1;
        b.when(wrapped >= 0 && wrapped < images, [&] {
          b.loop("i", 0, down.samples, [&](Expr i) {
            const Axis vertical = split(b, down, row, i, height);
            b.loop("j", 0, across.samples, [&](Expr j) {
              const Axis horizontal = split(b, across, column, j, width);
              const Expr inside = b.let("inside", select(vertical.inside && horizontal.inside, Expr(1.0f), Expr(0.0f)));
              Expr sum, largest;
              for (int k = 0; k < 4; ++k) {
                const Expr from = unproven(b, "from", plane + vertical.at[k / 2] * width + horizontal.at[k % 2]);
                const Array pixel = b.registers("pixel", kFloat, 1);
                pixel[0] = 0.0f;
                within(b, from, pixels, [&] { pixel[0] = x[from]; });
                const Expr weight = inside * vertical.weight[k / 2] * horizontal.weight[k % 2];
                const Expr weighted = b.let("weighted", weight * pixel[0]);
                sum = k == 0 ? weighted : sum + weighted;
                largest = k == 0 ? weighted : max(largest, weighted);
              }
              if (choice_.max) {
                result[0] = select(is_first[0] != 0, largest, max(result[0], largest));
                is_first[0] = 0;
              } else {
                result[0] = result[0] + sum;
              }
            });
          });
        });
        if (!choice_.max) {
          const Expr count = b.let("count", cast(down.samples, DType::Float32) * cast(across.samples, DType::Float32));
          b.when(count > 0.0f, [&] { result[0] = result[0] / count; });
        }
      });
      y[at] = result[0];
    });
    return b.finish();
  }

  // One sample along an axis: two pixels and their weights.
  struct Axis {
    Expr inside;
    Expr at[2], weight[2];
  };
  static Axis split(Builder& b, const Extent& e, const Expr& cell, const Expr& sample, const Expr& size) {
    const Expr fraction = (cast(sample, DType::Float32) + 0.5f) / cast(e.samples, DType::Float32);
    const Expr place = b.let("place", fma(e.bin, cast(cell, DType::Float32) + fraction, e.start));
    const Expr last = cast(size - 1, DType::Float32);
    const Expr clamped = b.let("clamped", min(max(place, 0.0f), last));
    const Expr low = b.let("low", cast(clamped, DType::Int32));
    const Expr part = b.let("part", clamped - cast(low, DType::Float32));
    return {place >= -1.0f && place <= cast(size, DType::Float32),
            {low, b.let("high", min(low + 1, size - 1))},
            {1.0f - part, part}};
  }

  RoiAlignChoice choice_;
  std::vector<Kernel> kernels_;
};

}  // namespace

std::unique_ptr<Program> make_roi_align(const RoiAlignChoice& choice) {
  return std::make_unique<RoiAlign>(choice);
}

}  // namespace neo::gpu
