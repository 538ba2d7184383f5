#include "routines/gpu/int8/codes_product.h"

#include <algorithm>

#include "base/check.h"
#include "base/int_math.h"
#include "routines/gpu/remember.h"

namespace neo::gpu {
namespace {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;
using kernel::kInt;

constexpr int kOfWord = 4;  // codes

BlockShape block_of(const TiledConvSchedule& s) {
  return {false, s.threads_channel, s.threads_pixel, s.channels, s.pixels, s.depth, s.unroll == 1};
}

int64_t local_words(const TiledConvSchedule& s) {
  const BlockShape block = block_of(s);
  return int64_t{block.all_columns() + block.all_rows()} * s.depth;
}

std::string kernel_name(const CodesProduct& p, const TiledConvSchedule& s) {
  const ConvGeometry& g = p.geometry;
  std::string name = str("codes_product_", p.x_is_signed ? "i" : "u", p.in_together, p.reads_words() ? "w" : "b",
                         p.out_together, p.group_oc() % kOfWord == 0 ? "" : "p", p.row_sums ? "s" : "", "_k");
  for (int axis = 0; axis < g.axes; ++axis) {
    const auto a = static_cast<size_t>(axis);
    name +=
        str(axis == 0 ? "" : "_", g.kernel[3 - g.axes + axis], "x", g.window.strides[a], "x", g.window.dilations[a]);
  }
  return name + str("_", p.form.tag(), "_t", s.threads_pixel, "x", s.threads_channel, "p", s.pixels, "c", s.channels,
                    "d", s.depth, "u", s.unroll);
}

class CodesProductKernel {
 public:
  CodesProductKernel(const CodesProduct& product, const TiledConvSchedule& schedule)
      : p_(product),
        g_(product.geometry),
        s_(schedule),
        block_(block_of(schedule)),
        b_(kernel_name(product, schedule)) {}

  kernel::Kernel run() {
    b_.round_each();
    declare();
    begin_windows();
    const Array tile_x = b_.shared("tile_x", DType::Int32, int64_t{s_.depth} * block_.all_columns());
    const Array tile_w = b_.shared("tile_w", DType::Int32, int64_t{s_.depth} * block_.all_rows());
    const Array sums = cleared("sum", s_.channels * s_.pixels);
    if (p_.row_sums) pixel_sums_ = cleared("pixel_sum", s_.pixels);
    b_.loop("step", 0, ceildiv(summed_, s_.depth), [&](Expr step) {
      load_pixels(tile_x, step * s_.depth);
      load_weights(tile_w, step * s_.depth);
      b_.barrier();
      const auto pass = [&](const Expr& d) { multiply(tile_w, tile_x, sums, d); };
      s_.unroll ? b_.unroll("d", s_.depth, pass) : b_.loop("d", 0, s_.depth, pass);
      b_.barrier();
    });
    b_.unroll("i", s_.channels, [&](Expr i) {
      b_.unroll("j", s_.pixels, [&](Expr j) {
        store(channel_ + ly_ + i * s_.threads_channel, pixel_ + lx_ + j * s_.threads_pixel, j, sums[i * s_.pixels + j]);
      });
    });
    return b_.finish();
  }

 private:
  Array cleared(const char* name, int count) {
    const Array sums = b_.registers(name, kInt, count);
    b_.unroll("i", count, [&](Expr i) { sums[i] = 0; });
    return sums;
  }

  void declare() {
    const auto count = [&](const std::string& name) { return b_.size(name, 1, 1 << 24); };
    images_ = b_.size("images", 1, 1 << 20);  // batch x groups
    groups_ = b_.size("groups", 1, 1 << 20);
    ic_ = b_.size("ic", 1, 1 << 20);  // of a group
    oc_ = b_.size("oc", 1, 1 << 20);
    words_ = b_.size("words", 1, 1 << 20);    // of a tap of a group
    summed_ = b_.size("summed", 1, 1 << 26);  // words of an output
    for (int axis = 0; axis < g_.axes; ++axis) {
      const std::string tag = std::to_string(axis);
      in_[axis] = count("in_" + tag);
      out_[axis] = count("out_" + tag);
      pad_[axis] = b_.size("pad_" + tag, -(1 << 16), 1 << 16);
    }
    in_plane_ = count("in_plane");
    plane_ = count("plane");
    zero_ = b_.size("x_zero", -128, 127);  // of codes as they are held
    x_elements_ = b_.size("x_elements", 1, kernel::kMaxBufferElements);
    w_elements_ = b_.size("w_elements", 1, kernel::kMaxBufferElements);
    results_ = b_.size("results", 1, kernel::kMaxBufferElements);
    x_ = b_.input("x", p_.reads_words() ? DType::Int32 : DType::UInt8, x_elements_);
    w_ = b_.input("w", DType::Int32, w_elements_);
    y_ = b_.output("y", p_.form.dtype(), results_);
    result_.emplace(b_, p_.form, groups_ * oc_, results_);
    pixel_ = b_.let("pixel", b_.group(0, "gx", ceildiv(plane_, block_.all_columns())) * block_.all_columns());
    channel_ = b_.let("channel", b_.group(1, "gy", ceildiv(oc_, block_.all_rows())) * block_.all_rows());
    image_ = b_.group(2, "gz", images_);
    lx_ = b_.local(0, "lx", s_.threads_pixel);
    ly_ = b_.local(1, "ly", s_.threads_channel);
    group_ = b_.let("group", image_ % groups_);
    batch_ = b_.let("batch", image_ / groups_);
  }

  // Sets the begins of the windows of the pixels that this thread loads; a pixel after the last has that one's.
  void begin_windows() {
    for (int axis = 0; axis < g_.axes; ++axis) {
      begin_[axis] = b_.registers("begin_" + std::to_string(axis), kInt, s_.pixels);
    }
    if (g_.axes == 0) return;
    b_.unroll("j", s_.pixels, [&](Expr j) {
      Expr rest = min(pixel_ + lx_ + j * s_.threads_pixel, plane_ - 1);
      for (int axis = g_.axes; axis-- > 0;) {
        const Expr place = axis > 0 ? rest % out_[axis] : rest;
        if (axis > 0) rest = rest / out_[axis];
        (*begin_[axis])[j] = place * Expr(g_.window.strides[static_cast<size_t>(axis)]) - pad_[axis];
      }
    });
  }

  void load_pixels(const Array& tile, const Expr& first) {
    const Expr padding = b_.let("padding", four_times(zero_));
    const int rounds = (s_.depth + s_.threads_channel - 1) / s_.threads_channel;
    const int64_t taps = g_.taps();
    b_.unroll("i", rounds, [&](Expr i) {
      const Expr d = i * s_.threads_channel + ly_;
      const Expr at = b_.let("at", first + d);
      const Expr tap = at % taps, word = b_.let("word", at / taps);
      b_.unroll("j", s_.pixels, [&](Expr j) {
        Expr valid = at < summed_, place;
        if (g_.axes == 0) place = min(pixel_ + lx_ + j * s_.threads_pixel, plane_ - 1);
        int64_t inner = taps;
        for (int axis = 0; axis < g_.axes; ++axis) {
          const int64_t kernel = g_.kernel[3 - g_.axes + axis];
          inner /= kernel;
          const Expr step = tap / inner % kernel * Expr(g_.window.dilations[static_cast<size_t>(axis)]);
          const Expr own = held(b_, "place", (*begin_[axis])[j] + step);
          valid = valid && own >= 0 && own < in_[axis];
          place = axis == 0 ? own : place * in_[axis] + own;
        }
        const Array value = b_.registers("value", kInt, 1);
        value[0] = padding;
        if (p_.reads_words()) {
          load_word(value, valid, word, place);
        } else {
          load_bytes(value, valid, word, place);
        }
        // Words behind the last one would count in the sums of pixels.
        const Expr loaded = p_.row_sums ? select(at < summed_, value[0], 0) : Expr(value[0]);
        b_.when(d < s_.depth, [&] { tile[d * block_.all_columns() + lx_ + j * s_.threads_pixel] = loaded; });
      });
    });
  }

  void load_word(const Array& value, const Expr& valid, const Expr& word, const Expr& place) {
    const Expr index = p_.in_together == kAllChannels
                           ? (batch_ * in_plane_ + place) * (groups_ * words_) + group_ * words_ + word
                           : (image_ * words_ + word) * in_plane_ + place;
    const Expr from = held(b_, "from", index);
    b_.when(valid && from >= 0 && from < x_elements_, [&] {
      const Expr bytes = (*x_)[from];
      value[0] = p_.x_is_signed ? bytes : bytes ^ kernel::integer(static_cast<int32_t>(0x80808080));
    });
  }

  void load_bytes(const Array& value, const Expr& valid, const Expr& word, const Expr& place) {
    Expr all;
    for (int i = 0; i < kOfWord; ++i) {
      const Expr channel = word * kOfWord + i;
      const Expr index = p_.in_together == kAllChannels
                             ? (batch_ * in_plane_ + place) * (groups_ * ic_) + group_ * ic_ + channel
                             : (image_ * ic_ + channel) * in_plane_ + place;
      const Expr from = held(b_, "from", index);
      const Array code = b_.registers("code", kInt, 1);
      code[0] = zero_;
      b_.when(valid && channel < ic_ && from >= 0 && from < x_elements_,
              [&] { code[0] = code_in((*x_)[from], p_.x_is_signed) - p_.middle(); });
      const Expr kept = p_.row_sums ? select(channel < ic_, code[0], 0) : Expr(code[0]);
      const Expr bits = cast(kept & 255, DType::UInt32) << (8 * i);
      all = i == 0 ? bits : all | bits;
    }
    value[0] = cast(all, DType::Int32);
  }

  void load_weights(const Array& tile, const Expr& first) {
    const int rounds = (s_.depth + s_.threads_pixel - 1) / s_.threads_pixel;
    b_.unroll("i", rounds, [&](Expr i) {
      const Expr d = i * s_.threads_pixel + lx_;
      const Expr at = b_.let("at", first + d);
      b_.unroll("j", s_.channels, [&](Expr j) {
        const Expr row = ly_ + j * s_.threads_channel, channel = channel_ + row;
        const Expr from = held(b_, "from", (group_ * oc_ + channel) * summed_ + at);
        const Array value = b_.registers("value", kInt, 1);
        value[0] = 0;
        b_.when(at < summed_ && channel < oc_ && from >= 0 && from < w_elements_, [&] { value[0] = (*w_)[from]; });
        b_.when(d < s_.depth, [&] { tile[d * block_.all_rows() + row] = value[0]; });
      });
    });
  }

  void multiply(const Array& tile_w, const Array& tile_x, const Array& sums, const Expr& d) {
    const Array w = b_.registers("left", kInt, s_.channels), x = b_.registers("right", kInt, s_.pixels);
    b_.unroll("i", s_.channels, [&](Expr i) { w[i] = tile_w[d * block_.all_rows() + ly_ + i * s_.threads_channel]; });
    b_.unroll("j", s_.pixels, [&](Expr j) {
      x[j] = tile_x[d * block_.all_columns() + lx_ + j * s_.threads_pixel];
      if (p_.row_sums) (*pixel_sums_)[j] = dot4(x[j], kernel::integer(0x01010101), (*pixel_sums_)[j]);
    });
    b_.unroll("i", s_.channels, [&](Expr i) {
      b_.unroll("j", s_.pixels, [&](Expr j) {
        const Expr at = i * s_.pixels + j;
        sums[at] = dot4(w[i], x[j], sums[at]);
      });
    });
  }

  void store(const Expr& channel, const Expr& pixel, const Expr& j, const Expr& sum) {
    const bool pads = p_.out_together == kOfWord && p_.group_oc() % kOfWord != 0;
    const Expr blocks = (oc_ + (kOfWord - 1)) / kOfWord;
    const Expr index =
        p_.out_together == kAllChannels ? (batch_ * plane_ + pixel) * (groups_ * oc_) + group_ * oc_ + channel
        : p_.out_together == 1          ? (image_ * oc_ + channel) * plane_ + pixel
                               : ((image_ * blocks + channel / kOfWord) * plane_ + pixel) * kOfWord + channel % kOfWord;
    const Expr at = held(b_, "to", index);
    const Expr inside = pixel < plane_ && at >= 0 && at < results_;
    b_.when(channel < oc_ && inside, [&] {
      const Expr own = group_ * oc_ + channel;
      Expr all = wrapping_sum(sum, result_->column(CodesColumn::Init, own));
      if (p_.row_sums) {
        const Expr shift = result_->column(CodesColumn::Shift, own);
        const Expr more = cast((*pixel_sums_)[j], DType::UInt32) * cast(shift, DType::UInt32);
        all = wrapping_sum(all, cast(more, DType::Int32));
      }
      (*y_)[at] = result_->finish(b_.let("all", all), own, at);
    });
    if (pads) {
      const Expr nothing =
          p_.form.dtype() == DType::Float32 ? kernel::real(0) : kernel::integer(0, {p_.form.dtype(), 1});
      b_.when(channel >= oc_ && channel < blocks * kOfWord && inside, [&] { (*y_)[at] = nothing; });
    }
  }

  const CodesProduct& p_;
  const ConvGeometry& g_;
  const TiledConvSchedule& s_;
  BlockShape block_;
  Builder b_;
  Expr images_, groups_, ic_, oc_, words_, summed_, in_[3], out_[3], pad_[3], in_plane_, plane_, zero_;
  Expr x_elements_, w_elements_, results_;
  Expr pixel_, channel_, image_, group_, batch_, lx_, ly_;
  std::optional<Array> x_, w_, y_, begin_[3], pixel_sums_;
  std::optional<CodesParameters> result_;
};

}  // namespace

const char* reject_codes_product(const CodesProduct& p) {
  const ConvGeometry& g = p.geometry;
  for (const int64_t stride : g.window.strides) {
    if (stride > 4096) return "a stride beyond 4096";
  }
  if (g.taps() > 1 << 12) return "more than 4096 taps";
  const bool is_grouped = g.groups > 1;
  if (p.in_together == kOfWord && is_grouped && p.group_ic() % kOfWord != 0) return "a word has channels of two groups";
  if (p.in_together == kOfWord && p.group_ic() % kOfWord != 0 && p.row_sums) return "sums of pixels have padding lanes";
  if (p.out_together == kOfWord && is_grouped && p.group_oc() % kOfWord != 0)
    return "a block has channels of two groups";
  return nullptr;
}

bool allows_codes_schedule(const CodesProduct&, const TiledConvSchedule& s) {
  // A word's products are many instructions where a device has none for them all.
  constexpr int kMaxWritten = 64;
  if (s.pixels * s.channels * (s.unroll == 1 ? s.depth : 1) > kMaxWritten) return false;
  return reject_block(block_of(s), local_words(s)) == nullptr;
}

Space codes_product_space(const CodesProduct& product, int64_t plane, const std::vector<Schedule>& kinds) {
  constexpr size_t kTile = 6;  // parameters of TiledConvSchedule
  const int64_t channels = product.group_oc();
  std::vector<Space::Parameter> all{{"tp", {8, 16, 32, 64}},    {"tc", {2, 4, 8, 16}},    {"pixels", {1, 2, 4, 8}},
                                    {"channels", {1, 2, 4, 8}}, {"depth", {2, 4, 8, 16}}, {"unroll", {0, 1}}};
  for (const Schedule& kind : kinds) {
    for (const auto& [name, value] : kind) {
      auto it = std::find_if(all.begin(), all.end(), [&](const Space::Parameter& p) { return p.name == name; });
      if (it == all.end()) it = all.insert(all.end(), {name, {}});
      if (std::find(it->values.begin(), it->values.end(), value) == it->values.end()) it->values.push_back(value);
    }
  }
  return Space(all, [&](std::span<const int64_t> v) {
    const TiledConvSchedule s = TiledConvSchedule::of(v.first(kTile));
    const bool is_kind = std::any_of(kinds.begin(), kinds.end(), [&](const Schedule& kind) {
      for (size_t i = kTile; i < all.size(); ++i) {
        if (value_of(kind, all[i].name) != v[i]) return false;
      }
      return true;
    });
    return is_kind && allows_codes_schedule(product, s) && (s.pixels == 1 || s.threads_pixel * s.pixels / 2 < plane) &&
           (s.channels == 1 || s.threads_channel * s.channels / 2 < channels);
  });
}

Profile codes_product_profile(const CodesProduct& product, const TiledConvSchedule& s, int64_t images, int64_t in_plane,
                              int64_t plane, bool has_dots) {
  // Operations of a word's products where no instruction has them all.
  constexpr double kWrittenOut = 5;
  const auto groups = static_cast<double>(product.geometry.groups), oc = static_cast<double>(product.geometry.oc);
  const double steps = parts(static_cast<double>(product.words()), s.depth);
  Profile p = block_profile(block_of(s), steps, local_words(s));
  if (!has_dots) p.flops *= kWrittenOut;
  p.groups = static_cast<double>(images) * groups * parts(static_cast<double>(plane), s.threads_pixel * s.pixels) *
             parts(static_cast<double>(product.group_oc()), s.threads_channel * s.channels);
  const double x_words = steps * static_cast<double>(parts(s.depth, s.threads_channel)) * s.pixels;
  const double w_words = steps * static_cast<double>(parts(s.depth, s.threads_pixel)) * s.channels;
  const double x_loads = x_words * (product.reads_words() ? 1 : kOfWord);
  p.loads += x_loads + w_words;
  p.loaded_bytes = kOfWord * (x_words + w_words);
  p.other += x_words * 12 + (x_loads - x_words) * 6 + w_words * 6 + s.pixels * s.channels * 8;
  p.registers += s.pixels * product.geometry.axes + 24;
  const double x_bytes = static_cast<double>(images * product.geometry.ic * in_plane);
  const double y_elements = static_cast<double>(images * plane) * oc;
  p.unique_bytes =
      x_bytes +
      y_elements * (static_cast<double>(item_bytes(product.form.dtype())) + (product.form.has_residual ? 1 : 0)) +
      kOfWord * oc * static_cast<double>(product.words());
  return p;
}

void pack_codes_weights(const CodesProduct& p, FunctionRef<int32_t(int64_t, int64_t, int64_t)> weight, int32_t* to) {
  const int64_t taps = p.geometry.taps();
  for (int64_t channel = 0; channel < p.geometry.oc; ++channel) {
    for (int64_t word = 0; word < p.tap_words(); ++word) {
      for (int64_t tap = 0; tap < taps; ++tap, ++to) {
        uint32_t bits = 0;
        for (int64_t i = 0; i < kOfWord; ++i) {
          const int64_t ic = word * kOfWord + i;
          if (ic < p.group_ic()) bits |= static_cast<uint32_t>(weight(channel, ic, tap) & 0xff) << (8 * i);
        }
        *to = static_cast<int32_t>(bits);
      }
    }
  }
}

CodesProductProgram::CodesProductProgram(CodesProduct product, const TiledConvSchedule& schedule)
    : product_(std::move(product)) {
  const char* why = reject_codes_product(product_);
  NEO_ASSERT(why == nullptr, why);
  NEO_ASSERT(allows_codes_schedule(product_, schedule), "a schedule is beyond what a group may have");
  kernels_.push_back(
      remember_kernel(kernel_name(product_, schedule), [&] { return CodesProductKernel(product_, schedule).run(); }));
}

Launches CodesProductProgram::launches(std::span<const Dims> shapes) const {
  const ConvGeometry& g = product_.geometry;
  const Dims &x = shapes[static_cast<size_t>(product_.places.x)], &y = shapes[static_cast<size_t>(product_.places.y)];
  Launches out;
  if (element_count(y) == 0) return out;
  KernelLaunch launch;
  std::vector<LaunchArgument>& all = launch.arguments;
  int64_t images = 1, in_plane = element_count(x) / std::max<int64_t>(1, g.ic), plane = element_count(y) / g.oc;
  const auto add = [&](int64_t value) { all.emplace_back(value); };
  const auto leading = [&](int64_t batch) {
    for (const int64_t v :
         {batch * g.groups, g.groups, product_.group_ic(), product_.group_oc(), product_.tap_words(), product_.words()})
      add(v);
  };
  if (g.axes > 0) {
    images = x[0];
    in_plane /= images;
    plane /= images;
    const Im2colConvShape s = g.panel_shape(x, y);
    leading(images);
    for (int axis = 3 - g.axes; axis < 3; ++axis) {
      add(s.in[axis]);
      add(s.out[axis]);
      add(s.pad[axis]);
    }
  } else {
    leading(1);
  }
  const auto memory = [](int64_t count, int64_t channels, int64_t together, int64_t pixels) {
    return count * (together == kOfWord ? round_up(channels, int64_t{kOfWord}) : channels) * pixels;
  };
  const int64_t x_bytes = memory(images, g.ic, product_.in_together, in_plane);
  const int64_t results = memory(images, g.oc, product_.out_together, plane);
  for (const int64_t v : {in_plane, plane, int64_t{product_.x_zero - product_.middle()},
                          product_.reads_words() ? x_bytes / kOfWord : x_bytes, g.oc * product_.words(), results})
    add(v);
  all.insert(all.end(), {Operand{product_.places.x}, Packed{0}, Operand{product_.places.y}});
  append_codes_arguments(product_.form, product_.result, Packed{1}, Operand{product_.places.residual}, Packed{2}, all);
  out.launches.push_back(std::move(launch));
  return out;
}

}  // namespace neo::gpu
