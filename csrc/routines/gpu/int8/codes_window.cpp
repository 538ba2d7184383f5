#include "routines/gpu/int8/codes_window.h"

#include <numeric>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/gpu/movement/axes.h"
#include "routines/gpu/remember.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::kInt;
using kernel::make;
using kernel::Op;

constexpr int64_t kMaxWrittenTaps = 32;

// The windows of the pixels of one or four channels.
struct CodesWindowForm {
  std::vector<int64_t> kernel, strides, dilations;  // one of each axis
  int lanes = 1;
  bool is_last = false;  // the channels, behind the axes
  bool is_signed = false;

  int64_t taps() const { return std::accumulate(kernel.begin(), kernel.end(), int64_t{1}, std::multiplies<>()); }
  std::string tag() const {
    std::string name = str(is_signed ? "i" : "u", lanes, is_last ? "l" : "", "_k");
    for (size_t i = 0; i < kernel.size(); ++i)
      name += str(i == 0 ? "" : "_", kernel[i], "x", strides[i], "x", dilations[i]);
    return name;
  }
};

class CodesWindow {
 public:
  CodesWindow(Builder& b, const CodesWindowForm& form) : b_(b), f_(form) {
    items_ = b.size("items", 1, kMaxElements);  // pixels of blocks of lanes
    blocks_ = b.size("blocks", 1, 1 << 20);     // of an image
    plane_ = b.size("plane", 1, kMaxElements);  // pixels of the result
    in_plane_ = b.size("in_plane", 1, kMaxElements);
    zero_ = b.size("x_zero", -128, 255);
    for (size_t i = 0; i < f_.kernel.size(); ++i) {
      const std::string tag = std::to_string(i);
      in_.push_back(b.size("in_" + tag, 1, 1 << 24));
      out_.push_back(b.size("out_" + tag, 1, 1 << 24));
      pad_.push_back(b.size("pad_" + tag, -(1 << 16), 1 << 16));
    }
    x_elements_ = b.size("x_elements", 1, kMaxElements);
    x_ = b.input("x", DType::UInt8, x_elements_);
  }
  // As many arguments. `pads`: before each axis.
  static std::vector<LaunchArgument> arguments(const CodesWindowForm& f, const Dims& x, const Dims& y,
                                               const std::vector<int64_t>& pads, int32_t zero, int operand) {
    int64_t in_plane = 1, plane = 1;
    for (size_t i = 0; i < f.kernel.size(); ++i) {
      in_plane *= x[i + 2];
      plane *= y[i + 2];
    }
    const int64_t blocks = ceil_div(x[1], int64_t{f.lanes});
    std::vector<LaunchArgument> all{y[0] * blocks * plane, blocks, plane, in_plane, int64_t{zero}};
    for (size_t i = 0; i < f.kernel.size(); ++i) {
      for (const int64_t v : {x[i + 2], y[i + 2], pads[i]}) all.emplace_back(v);
    }
    all.insert(all.end(), {x[0] * blocks * f.lanes * in_plane, Operand{operand}});
    return all;
  }

  const Expr& items() const { return items_; }
  const Expr& zero() const { return zero_; }
  Expr results() const { return items_ * f_.lanes; }
  // The thread's block of channels, and the place of its pixel.
  const Expr& block() const { return block_; }
  const Expr& place(int axis) const { return place_[static_cast<size_t>(axis)]; }
  const Expr& in(int axis) const { return in_[static_cast<size_t>(axis)]; }
  const Expr& pad(int axis) const { return pad_[static_cast<size_t>(axis)]; }

  void each(int threads, FunctionRef<void(const Expr&)> body) {
    each_item(b_, items_, threads, [&](const Expr& item) {
      const Expr outer = f_.is_last ? item / blocks_ : item / plane_;
      block_ = b_.let("block", f_.is_last ? item % blocks_ : outer % blocks_);
      batch_ = b_.let("batch", f_.is_last ? outer / plane_ : outer / blocks_);
      Expr rest = b_.let("pixel", f_.is_last ? outer % plane_ : item % plane_);
      place_.assign(f_.kernel.size(), {});
      for (size_t i = f_.kernel.size(); i-- > 1; rest = b_.let("rest", rest / out_[i]))
        place_[i] = b_.let("at", rest % out_[i]);
      place_[0] = rest;
      body(item);
    });
  }

  // Calls `take` with the number of each tap inside the input and its codes, int32 of all lanes.
  void visit(FunctionRef<void(const Expr&, const Expr&)> take) { axis(0, 0, 0, take); }

 private:
  void axis(size_t i, const Expr& tap, const Expr& pixel, FunctionRef<void(const Expr&, const Expr&)> take) {
    if (i == f_.kernel.size()) {
      const Expr block = f_.is_last ? (batch_ * in_plane_ + pixel) * blocks_ + block_
                                    : (batch_ * blocks_ + block_) * in_plane_ + pixel;
      const Expr from = held(b_, "from", block * f_.lanes);
      return b_.when(from >= 0 && from <= x_elements_ - f_.lanes,
                     [&] { take(tap, b_.let("codes", code_in(x_->at(from, f_.lanes), f_.is_signed))); });
    }
    const auto of_tap = [&](const Expr& t) {
      const Expr at = held(b_, "at", place_[i] * f_.strides[i] + t * f_.dilations[i] - pad_[i]);
      b_.when(at >= 0 && at < in_[i],
              [&] { axis(i + 1, tap * f_.kernel[i] + t, i == 0 ? at : pixel * in_[i] + at, take); });
    };
    f_.taps() <= kMaxWrittenTaps ? b_.unroll("t", static_cast<int>(f_.kernel[i]), of_tap)
                                 : b_.loop("t", 0, f_.kernel[i], of_tap);
  }

  Builder& b_;
  const CodesWindowForm& f_;
  Expr items_, blocks_, plane_, in_plane_, zero_, x_elements_, block_, batch_;
  std::vector<Expr> in_, out_, pad_, place_;
  std::optional<Array> x_;
};

Expr spread_to(const Expr& e, int lanes) {
  return lanes == 1 ? e : broadcast(e, lanes);
}

Expr lane_of(const Expr& e, int i) {
  return e->type.lanes == 1 ? e : kernel::lane(e, i);
}

std::string threads_tag(int threads) {
  return str("_t", threads);
}

CodesWindowForm window_form(const CodesProduct& p) {
  const Window& w = p.geometry.window;
  CodesWindowForm f{{p.geometry.kernel + 3 - p.geometry.axes, p.geometry.kernel + 3}, w.strides, w.dilations};
  f.lanes = codes_lanes(p.in_together, p.geometry.ic);
  f.is_last = p.in_together == kAllChannels;
  f.is_signed = p.x_is_signed;
  return f;
}

kernel::Kernel depthwise_kernel(const CodesProduct& p, const std::string& name, int threads) {
  Builder b(name);
  b.round_each();
  const CodesWindowForm f = window_form(p);
  CodesWindow window(b, f);
  const Expr channels = b.size("channels", 1, 1 << 20);
  const Expr weights = b.size("weights", 1, kMaxElements);
  const Array w = b.input("w", DType::Int32, weights);
  const Array y = b.output("y", p.form.dtype(), window.results());
  const CodesParameters result(b, p.form, channels, window.results());
  window.each(threads, [&](const Expr& item) {
    const Array sum = b.registers("sum", {DType::Int32, f.lanes}, 1);
    sum[0] = spread_to(0, f.lanes);
    const Expr zero = spread_to(window.zero(), f.lanes);
    window.visit([&](const Expr& tap, const Expr& codes) {
      const Expr at = held(b, "weight_at", (window.block() * f.taps() + tap) * f.lanes);
      b.when(at >= 0 && at <= weights - f.lanes, [&] { sum[0] = sum[0] + (codes - zero) * Expr(w.at(at, f.lanes)); });
    });
    for (int i = 0; i < f.lanes; ++i) {
      const Expr channel = b.let("channel", window.block() * f.lanes + i), to = item * f.lanes + i;
      const Expr nothing = p.form.dtype() == DType::Float32 ? kernel::real(0) : kernel::integer(0, {p.form.dtype(), 1});
      b.when(
          channel < channels,
          [&] {
            const Expr all = wrapping_sum(lane_of(sum[0], i), result.column(CodesColumn::Init, channel));
            y[to] = result.finish(b.let("all", all), channel, to);
          },
          [&] { y[to] = nothing; });
    }
  });
  return b.finish();
}

class CodesDepthwiseProgram final : public Program {
 public:
  CodesDepthwiseProgram(const CodesProduct& product, int threads) : product_(product) {
    const std::string name =
        str("codes_depthwise_", window_form(product).tag(), "_", product.form.tag(), threads_tag(threads));
    kernels_.push_back(remember_kernel(name, [&] { return depthwise_kernel(product, name, threads); }));
  }
  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }
  Launches launches(std::span<const Dims> shapes) const override {
    const Places& places = product_.places;
    const Dims &x = shapes[static_cast<size_t>(places.x)], &y = shapes[static_cast<size_t>(places.y)];
    Launches out;
    if (element_count(y) == 0) return out;
    std::vector<int64_t> pads;
    for (int i = 0; i < product_.geometry.axes; ++i) {
      const auto a = static_cast<size_t>(i) + 2;
      pads.push_back(product_.geometry.pad_begin(i, x[a], y[a]));
    }
    KernelLaunch launch;
    launch.arguments = CodesWindow::arguments(window_form(product_), x, y, pads, product_.x_zero, places.x);
    launch.arguments.insert(launch.arguments.end(),
                            {product_.geometry.oc, codes_depthwise_words(product_), Packed{0}, Operand{places.y}});
    append_codes_arguments(product_.form, product_.result, Packed{1}, Operand{places.residual}, Packed{2},
                           launch.arguments);
    out.launches.push_back(std::move(launch));
    return out;
  }

 private:
  CodesProduct product_;
  std::vector<kernel::Kernel> kernels_;
};

CodesWindowForm window_form(const CodesPool& p) {
  CodesWindowForm f{p.window.kernel, p.window.strides, p.window.dilations};
  // All pixels are an axis.
  if (p.is_global) f.kernel = f.strides = f.dilations = {1};
  f.lanes = p.lanes;
  f.is_last = p.together == kAllChannels;
  f.is_signed = p.x.is_signed();
  return f;
}

std::string pool_name(const CodesPool& p, int threads) {
  return str("codes_",
             p.is_global    ? "global_mean_"
             : p.is_average ? (p.counts_padding ? "mean_all_" : "mean_")
                            : "max_",
             window_form(p).tag(), threads_tag(threads));
}

// The elements that an average divides by.
Expr counted_elements(Builder& b, const CodesPool& p, const CodesWindow& window, const std::vector<Expr>& padded) {
  const Array count = b.registers("count", kInt, 1), own = b.registers("own", kInt, 1);
  count[0] = 1;
  for (int i = 0; i < p.axes; ++i) {
    const auto a = static_cast<size_t>(i);
    own[0] = 0;
    b.loop("t", 0, p.window.kernel[a], [&](const Expr& t) {
      const Expr at = held(b, "at", window.place(i) * p.window.strides[a] + t * p.window.dilations[a]);
      const Expr counts = p.counts_padding ? at < padded[a] : at >= window.pad(i) && at - window.pad(i) < window.in(i);
      b.when(counts, [&] { own[0] = own[0] + 1; });
    });
    count[0] = count[0] * own[0];
  }
  return b.let("count", count[0]);
}

kernel::Kernel pool_kernel(const CodesPool& p, int threads) {
  Builder b(pool_name(p, threads));
  b.round_each();
  const CodesWindowForm f = window_form(p);
  CodesWindow window(b, f);
  const Expr channels = b.size("channels", 1, 1 << 20);
  std::vector<Expr> padded;
  Expr zero, scale, lo, hi;
  std::optional<CodesDivisor> y_scale;
  if (p.is_average) {
    for (int i = 0; i < p.axes && p.counts_padding; ++i)
      padded.push_back(b.size("padded_" + std::to_string(i), 0, 1 << 25));
    zero = b.size("zero", -128, 255);
    scale = b.number("scale", DType::Float32);
    lo = b.number("lo", DType::Float32);
    hi = b.number("hi", DType::Float32);
    y_scale.emplace(b, "y_scale");
  }
  const Array y = b.output("y", DType::UInt8, window.results());
  window.each(threads, [&](const Expr& item) {
    const bool sums_numbers = p.is_average && !p.is_global;
    const Array acc = b.registers("acc", {sums_numbers ? DType::Float32 : DType::Int32, f.lanes}, 1);
    acc[0] = spread_to(sums_numbers ? kernel::real(0) : kernel::integer(p.is_average ? 0 : -128), f.lanes);
    const auto number_of = [&](const Expr& codes) {
      return b.let("number",
                   cast(codes - spread_to(window.zero(), f.lanes), DType::Float32) * spread_to(scale, f.lanes));
    };
    window.visit([&](const Expr&, const Expr& codes) {
      if (sums_numbers) {
        acc[0] = acc[0] + number_of(codes);
      } else {
        acc[0] = p.is_average ? acc[0] + codes : max(acc[0], codes);
      }
    });
    Expr count, inverse;
    if (sums_numbers) {
      count = counted_elements(b, p, window, padded);
      const Expr whole = b.let("whole", cast(max(count, 1), DType::Float32));
      inverse = exact_inverse(b, whole);
      count = whole;
    }
    for (int i = 0; i < f.lanes; ++i) {
      Expr code = lane_of(acc[0], i);
      if (sums_numbers) {
        const Expr mean = exact_quotient(b, code, count, inverse);
        code = rounded_code(y_scale->quotient(mean), lo, hi) + zero;
      }
      const Expr kept = b.let("code", code), to = item * f.lanes + i;
      y[to] = byte_of(f.lanes == 1 ? kept : select(window.block() * f.lanes + i < channels, kept, 0));
    }
  });
  return b.finish();
}

// A group of threads sums a block of channels of an image, whose means it makes.
kernel::Kernel global_mean_kernel(const CodesPool& p, int threads) {
  Builder b(pool_name(p, threads));
  b.round_each();
  const int lanes = p.lanes;
  const bool is_last = p.together == kAllChannels;
  const Expr groups = b.size("groups", 1, kMaxElements), blocks = b.size("blocks", 1, 1 << 20);
  const Expr plane = b.size("plane", 0, 1 << 23), x_elements = b.size("x_elements", 1, kMaxElements);
  const Expr channels = b.size("channels", 1, 1 << 20), all_zeros = b.size("all_zeros", -(1 << 30), INT32_MAX);
  const Expr zero = b.size("zero", -128, 255);
  const auto number = [&](const char* name) { return b.number(name, DType::Float32); };
  const Expr scale = number("scale"), count = number("pixels"), inverse = number("inverse"), lo = number("lo");
  const Expr hi = number("hi");
  const CodesDivisor y_scale(b, "y_scale");
  const Array x = b.input("x", DType::UInt8, x_elements), y = b.output("y", DType::UInt8, groups * lanes);
  const Expr group = b.group(0, "gx", groups), lx = b.local(0, "lx", threads);
  const Array shared = b.shared("sums", DType::Int32, int64_t{threads} * lanes);
  const Array sum = b.registers("sum", {DType::Int32, lanes}, 1);
  sum[0] = spread_to(0, lanes);
  b.loop("step", 0, ceildiv(plane, threads), [&](const Expr& step) {
    const Expr pixel = b.let("pixel", step * threads + lx);
    const Expr block = is_last ? (group / blocks * plane + pixel) * blocks + group % blocks : group * plane + pixel;
    const Expr from = held(b, "from", block * lanes);
    b.when(pixel < plane && from >= 0 && from <= x_elements - lanes,
           [&] { sum[0] = sum[0] + code_in(x.at(from, lanes), p.x.is_signed()); });
  });
  for (int i = 0; i < lanes; ++i) shared[lx * lanes + i] = lane_of(sum[0], i);
  b.barrier();
  for (int half = threads / 2; half > 0; half /= 2) {
    b.when(lx < half, [&] {
      for (int i = 0; i < lanes; ++i) shared[lx * lanes + i] = shared[lx * lanes + i] + shared[(lx + half) * lanes + i];
    });
    b.barrier();
  }
  b.when(lx < lanes, [&] {
    const Expr total = b.let("total", cast(shared[lx] - all_zeros, DType::Float32) * scale);
    const Expr mean = exact_quotient(b, total, count, inverse);
    const Expr code = b.let("code", rounded_code(y_scale.quotient(mean), lo, hi) + zero);
    y[group * lanes + lx] = byte_of(select(group % blocks * lanes + lx < channels, code, 0));
  });
  return b.finish();
}

void append_y(const CodesPool& p, std::vector<LaunchArgument>& all) {
  all.emplace_back(static_cast<double>(p.y.lo() - p.y.zero));
  all.emplace_back(static_cast<double>(p.y.hi() - p.y.zero));
  CodesDivisor::append(p.y.scale, all);
}

Launches global_mean_launches(const CodesPool& p, const Dims& x) {
  Launches out;
  const int64_t blocks = ceil_div(x[1], int64_t{p.lanes}), groups = x[0] * blocks;
  int64_t plane = 1;
  for (size_t i = 2; i < x.size(); ++i) plane *= x[i];
  if (groups == 0) return out;
  const auto count = static_cast<float>(std::max<int64_t>(1, plane));
  KernelLaunch launch{0,
                      {groups, blocks, plane, std::max<int64_t>(1, groups * p.lanes * plane), x[1], plane * p.x.zero,
                       int64_t{p.y.zero}}};
  for (const float v : {p.x.scale, count, 1 / count}) launch.arguments.emplace_back(static_cast<double>(v));
  append_y(p, launch.arguments);
  launch.arguments.insert(launch.arguments.end(), {Operand{0}, Operand{1}});
  out.launches.push_back(std::move(launch));
  return out;
}

Launches pool_launches(const CodesPool& p, const Dims& x, const Dims& y) {
  Launches out;
  if (element_count(y) == 0) return out;
  std::vector<int64_t> pads, padded;
  for (int i = 0; i < p.axes; ++i) {
    const auto a = static_cast<size_t>(i);
    const int64_t kernel = p.window.kernel[a], size = x[a + 2];
    pads.push_back(window_pad_begin(p.window, i, kernel, size));
    padded.push_back(size + window_pad_total(p.window, i, kernel, size));
  }
  KernelLaunch launch{0, CodesWindow::arguments(window_form(p), x, y, pads, p.x.zero, 0)};
  launch.arguments.emplace_back(x[1]);
  if (p.is_average) {
    if (p.counts_padding) launch.arguments.insert(launch.arguments.end(), padded.begin(), padded.end());
    launch.arguments.emplace_back(int64_t{p.y.zero});
    launch.arguments.emplace_back(static_cast<double>(p.x.scale));
    append_y(p, launch.arguments);
  }
  launch.arguments.emplace_back(Operand{1});
  out.launches.push_back(std::move(launch));
  return out;
}

// A profile of threads that each read so many places of `lanes` bytes.
Profile window_profile(int lanes, int threads, double taps, double extra, const Dims& x, const Dims& y) {
  Profile p;
  p.threads = threads;
  const auto items = static_cast<double>(element_count(y)) / lanes;
  p.groups = std::ceil(items / threads);
  p.lanes = lanes;
  p.flops = 2 * taps * lanes;
  p.loads = taps * 2 + 4;
  p.loaded_bytes = (taps + extra) * lanes;
  p.other = taps * 6 + 40 + 20.0 * lanes;
  p.written = static_cast<int>(taps);
  p.registers = 24 + 4 * lanes;
  p.unique_bytes = static_cast<double>(element_count(x) + element_count(y));
  return p;
}

}  // namespace

int codes_lanes(int64_t together, int64_t channels) {
  return together == 4 || (together == kAllChannels && channels % 4 == 0) ? 4 : 1;
}

const char* reject_codes_depthwise(const CodesProduct& p) {
  if (p.geometry.axes == 0 || !p.geometry.is_depthwise()) return "groups have several channels";
  return p.in_together == p.out_together ? nullptr : "input and result are held otherwise";
}

int64_t codes_depthwise_words(const CodesProduct& p) {
  return round_up(p.geometry.ic, int64_t{codes_lanes(p.in_together, p.geometry.ic)}) * p.geometry.taps();
}

void pack_codes_depthwise(const CodesProduct& p, FunctionRef<int32_t(int64_t, int64_t)> weight, int32_t* to) {
  const int64_t lanes = codes_lanes(p.in_together, p.geometry.ic);
  for (int64_t block = 0; block < ceil_div(p.geometry.ic, lanes); ++block) {
    for (int64_t tap = 0; tap < p.geometry.taps(); ++tap) {
      for (int64_t i = 0; i < lanes; ++i) {
        const int64_t channel = block * lanes + i;
        *to++ = channel < p.geometry.ic ? weight(channel, tap) : 0;
      }
    }
  }
}

std::unique_ptr<const Program> make_codes_depthwise(const CodesProduct& product, int threads) {
  return std::make_unique<CodesDepthwiseProgram>(product, threads);
}

Profile codes_depthwise_profile(const CodesProduct& p, int threads, const Dims& x, const Dims& y) {
  return window_profile(codes_lanes(p.in_together, p.geometry.ic), threads, static_cast<double>(p.geometry.taps()), 12,
                        x, y);
}

CodesPool::CodesPool(const CodesPoolProblem& problem, int64_t channels_together)
    : is_average(problem.is_average()),
      is_global(problem.is_global()),
      axes(problem.axes()),
      together(channels_together),
      lanes(codes_lanes(channels_together, problem.x->shape()[1].value())),
      x(problem.x_grid),
      y(problem.y_grid) {
  if (is_global) return;
  counts_padding = problem.pool->int_attr("count_include_pad", 0) != 0;
  window = read_window(*problem.pool, axes);
}

std::unique_ptr<const Program> make_codes_pool(const CodesPool& pool, int threads) {
  std::vector<kernel::Kernel> kernels;
  kernels.push_back(remember_kernel(pool_name(pool, threads), [&] {
    return pool.is_global ? global_mean_kernel(pool, threads) : pool_kernel(pool, threads);
  }));
  return make_program(std::move(kernels), [pool](std::span<const Dims> shapes) {
    return pool.is_global ? global_mean_launches(pool, shapes[0]) : pool_launches(pool, shapes[0], shapes[1]);
  });
}

Profile codes_pool_profile(const CodesPool& pool, int threads, const Dims& x, const Dims& y) {
  double taps = 1;
  if (pool.is_global) {
    taps = static_cast<double>(element_count(x)) / std::max<double>(1, static_cast<double>(element_count(y))) / threads;
    Profile p = window_profile(pool.lanes, threads, std::ceil(taps), 0, x, y);
    p.groups *= threads;
    p.written = 0;
    return p;
  }
  for (const int64_t k : pool.window.kernel) taps *= static_cast<double>(k);
  return window_profile(pool.lanes, threads, taps, 0, x, y);
}

}  // namespace neo::gpu
