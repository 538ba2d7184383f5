#include "base/check.h"
#include "routines/gpu/eltwise/steps.h"
#include "routines/gpu/movement/axes.h"
#include "routines/gpu/sample/families.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::kInt;
using kernel::Op;
using kernel::real;

namespace {

constexpr int64_t kChannels = 8;  // of one thread
constexpr float kFar = 1 << 20;   // pixels beyond which nothing changes farther out, or only rounding is left
constexpr int64_t kMaxGridSize = 1 << 15;

enum class OutsideMode { Zeros, Border, Reflection };

struct Form {
  bool nearest = false, align_corners = false;
  OutsideMode padding = OutsideMode::Zeros;
};

// One axis of a plane.
class Axis {
 public:
  Axis(Builder& b, const Form& form, const Expr& size) : b_(b), form_(form), size_(size) {
    extent_ = b.let("extent", cast(size, DType::Float32));
    last_ = b.let("last", extent_ - real(1));
    low_ = form.align_corners ? real(0) : real(-0.5);
    high_ = form.align_corners ? last_ : b.let("high", extent_ - real(0.5));
  }

  // The position that a coordinate in [-1, 1] means, near enough to fit an integer.
  Expr position(const Expr& normalized) {
    const Expr n = normalized + real(1);
    Expr x = form_.align_corners ? n / real(2) * last_ : (n * extent_ - real(1)) / real(2);
    x = b_.let("at", form_.nearest ? call(Op::Round, x) : x);
    x = b_.let("at", select(x != x, low_ - real(8), x));
    if (form_.padding == OutsideMode::Reflection) {
      return b_.let("near", select(call(Op::Abs, x) > extent_ + real(kFar), reflected(x), x));
    }
    return b_.let("near", clamp_nan(b_, x, real(-kFar), extent_ + real(kFar)));
  }

  // The pixel at a whole position, -1 where zero is read.
  Expr pixel(const Expr& position) {
    if (form_.padding == OutsideMode::Zeros) {
      const Expr exists = position >= real(0) && position <= last_;
      return whole(select(exists, position, real(-1)));
    }
    const Expr inside = form_.padding == OutsideMode::Reflection ? b_.let("inside", reflected(position)) : position;
    return whole(clamp_nan(b_, inside, real(0), last_));
  }

  const Expr& size() const { return size_; }

 private:
  // A value of which nothing is known.
  Expr whole(const Expr& position) {
    const Array held = b_.registers("pixel", kInt, 1);
    held[0] = cast(position, DType::Int32);
    return b_.let("pixel", held[0]);
  }

  Expr reflected(const Expr& x) {
    const Expr range = b_.let("range", high_ - low_);
    const Expr below = x < low_;
    const Expr distance = b_.let("distance", select(below, low_ - x, x - high_));
    const Expr periods = b_.let("periods", call(Op::Floor, distance / range));
    const Expr rest = b_.let("rest", distance - periods * range);
    const Expr odd = periods - real(2) * call(Op::Floor, periods * real(0.5));
    const Expr from_low = select(below, odd, real(1) - odd) == real(0);
    const Expr y = b_.let("y", select(from_low, low_ + rest, high_ - rest));
    const Expr inside = b_.let("inside", select(below || x > high_, y, x));
    return select(inside != inside, low_, inside);
  }

  Builder& b_;
  const Form& form_;
  Expr size_, extent_, last_, low_, high_;
};

// A thread takes one point and some channels.
kernel::Kernel grid_sample_kernel(const Form& form, int threads) {
  Builder b("grid_sample");
  const Expr items = b.size("items", 1, kMaxElements), images = b.size("images", 1, 1 << 22);
  const Expr channels = b.size("channels", 1, 1 << 22), parts = b.size("parts", 1, 1 << 22);
  const Expr points = b.size("points", 1, 1 << 28), planes = b.size("planes", 1, 1 << 22);
  const Expr rows = b.size("rows", 1, kMaxGridSize), columns = b.size("columns", 1, kMaxGridSize);
  const Expr elements = b.size("elements", 1, kMaxElements);
  const Array x = b.input("x", DType::Float32, elements);
  const Array grid = b.input("grid", DType::Float32, images * points * 2);
  const Array y = b.output("y", DType::Float32, planes * points);
  each_item(b, items, threads, [&](const Expr& item) {
    const std::vector<Expr> sizes = {images, parts, points};
    const std::vector<Expr> at = split_index(b, item, sizes);
    const Expr &image = at[0], &part = at[1], &point = at[2];
    b.when(image < images, [&] {
      Axis across(b, form, columns), down(b, form, rows);
      const Expr place = b.let("place", (image * points + point) * 2);
      const Expr px = across.position(grid[place]), py = down.position(grid[place + 1]);
      // Pixels in the order of the formula, and what they count.
      struct Tap {
        Expr row, column;
      };
      std::vector<Tap> taps;
      Expr dx1, dy1, dx2, dy2;
      if (form.nearest) {
        taps = {{down.pixel(py), across.pixel(px)}};
      } else {
        const Expr x1 = b.let("x1", call(Op::Floor, px)), y1 = b.let("y1", call(Op::Floor, py));
        const Expr x2 = b.let("x2", x1 + real(1)), y2 = b.let("y2", y1 + real(1));
        dx1 = b.let("dx1", px - x1);
        dx2 = b.let("dx2", x2 - px);
        dy1 = b.let("dy1", py - y1);
        dy2 = b.let("dy2", y2 - py);
        const Expr r1 = down.pixel(y1), r2 = down.pixel(y2), c1 = across.pixel(x1), c2 = across.pixel(x2);
        taps = {{r1, c1}, {r1, c2}, {r2, c1}, {r2, c2}};
      }
      b.loop("channel", part * kChannels, min(part * kChannels + kChannels, channels), [&](const Expr& channel) {
        const Array values = b.registers("values", kernel::kFloat, static_cast<int64_t>(taps.size()));
        const Array held = b.registers("held", kInt, 1);
        held[0] = image * channels + channel;
        const Expr plane = b.let("plane", held[0]);
        b.when(plane >= 0 && plane < planes, [&] {
          for (size_t i = 0; i < taps.size(); ++i) {
            const Expr &row = taps[i].row, &column = taps[i].column;
            const int tap = static_cast<int>(i);
            values[tap] = 0.0f;
            b.when(row >= 0 && row < rows && column >= 0 && column < columns, [&] {
              held[0] = (plane * rows + row) * columns + column;
              const Expr from = b.let("from", held[0]);
              b.when(from >= 0 && from < elements, [&] { values[tap] = x[from]; });
            });
          }
          const auto v = [&](int i) { return Expr(values[i]); };
          y[plane * points + point] =
              form.nearest ? v(0) : dy2 * (dx2 * v(0) + dx1 * v(1)) + dy1 * (dx2 * v(2) + dx1 * v(3));
        });
      });
    });
  });
  return b.finish();
}

}  // namespace

std::vector<std::string_view> grid_sample_roots() {
  return {"GridSample"};
}

std::optional<Made> read_grid_sample(const Workload& workload, const BasicOptions& options, std::string* why) {
  const Node& node = workload.root();
  if (options.together != 1) return not_made(why, "it takes plain arrays");
  if (workload.inputs.size() != 2) return not_made(why, "x is its own grid");
  for (const Value* v : workload.inputs) {
    if (!v->type.is_tensor() || !v->shape().has_rank() || v->shape().rank() != 4 || v->dtype() != DType::Float32) {
      return not_made(why, "an input is no float32 tensor of rank 4");
    }
  }
  const std::string mode = node.string_attr("mode", "linear"), padding = node.string_attr("padding_mode", "zeros");
  if (mode == "cubic" || mode == "bicubic") return not_made(why, "the interpolation is cubic");
  Form form;
  form.nearest = mode == "nearest";
  form.align_corners = node.int_attr("align_corners", 0) != 0;
  form.padding = padding == "zeros"    ? OutsideMode::Zeros
                 : padding == "border" ? OutsideMode::Border
                                       : OutsideMode::Reflection;
  Made made;
  made.inputs = {0, 1};
  made.program = [form, threads = options.threads] {
    std::vector<kernel::Kernel> kernels;
    kernels.push_back(grid_sample_kernel(form, threads));
    return make_program(std::move(kernels), [](std::span<const Dims> shapes) {
      const Dims &x = shapes[0], &y = shapes[2];
      Launches all;
      if (element_count(y) == 0) return all;
      NEO_CHECK(x[2] > 0 && x[3] > 0, Shape, "GridSample", "a plane must hold pixels. Got ", to_string(x));
      const int64_t points = y[2] * y[3], parts = (y[1] + kChannels - 1) / kChannels;
      all.launches.push_back({0,
                              {y[0] * parts * points, y[0], y[1], parts, points, y[0] * y[1], x[2], x[3],
                               element_count(x), Operand{0}, Operand{1}, Operand{2}}});
      return all;
    });
  };
  return made;
}

}  // namespace neo::gpu
