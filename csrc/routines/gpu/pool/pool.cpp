#include <limits>

#include "base/check.h"
#include "ops/window.h"
#include "routines/gpu/movement/axes.h"
#include "routines/gpu/pool/families.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;

namespace {

struct PoolForm {
  Window window;
  bool average = false;
  bool include_pad = false;
  int64_t block = 1;  // channels that lie together
  int lanes = 1;      // along the last axis of the output, or of a block
};

constexpr int64_t kMaxTaps = 32;  // that are written out

class PoolWriter {
 public:
  PoolWriter(const PoolForm& form, int threads)
      : f_(form), threads_(threads), b_(form.average ? "average_pool" : "max_pool") {}

  static bool guarded(const PoolForm& form) { return form.block > 1 || form.window.rank() > 2; }

  kernel::Kernel write() {
    const int rank = f_.window.rank();
    const int64_t most = rank == 1 ? 1 << 24 : 1 << 15;
    const Expr items = b_.size("items", 1, kMaxElements);
    planes_ = b_.size("planes", 1, 1 << 22);
    std::vector<Expr> out;
    for (int i = 0; i < rank; ++i) {
      const std::string n = std::to_string(i);
      in_.push_back(b_.size("in" + n, 1, most));
      out.push_back(b_.size("out" + n, 1, most));
      pad_.push_back(b_.size("pad" + n, 0, 1 << 10));
      padded_.push_back(b_.size("padded" + n, 0, most + (1 << 11)));  // the end of the padded input
    }
    const bool blocked = f_.block > 1;
    const Expr chunks = b_.size("chunks", 1, most);      // of a row of the output, or of a block
    const Expr rows = b_.size("rows", 1, kMaxElements);  // of the output
    // Where 32 bits are not proven to do for an index, reads are guarded by the number of elements.
    elements_ = guarded(f_) ? b_.size("elements", 1, kMaxElements) : planes_;
    for (int i = 0; i < rank && !guarded(f_); ++i) elements_ = elements_ * in_[static_cast<size_t>(i)];
    x_.push_back(b_.input("x", DType::Float32, elements_));
    const Array y = b_.output("y", DType::Float32, blocked ? items * f_.lanes : rows * out.back());
    each_item(b_, items, threads_, [&](const Expr& item) {
      std::vector<Expr> sizes = {planes_};
      sizes.insert(sizes.end(), out.begin(), out.end());
      if (!blocked) sizes.pop_back();
      sizes.push_back(blocked ? Expr(static_cast<int>(f_.block / f_.lanes)) : chunks);
      std::vector<Expr> at = split_index(b_, item, sizes);
      const Expr chunk = at.back();
      at.pop_back();
      b_.when(at[0] < planes_, [&] {
        if (blocked) {
          const Expr value = window(at, f_.lanes, false, b_.let("lane", chunk * f_.lanes));
          y.at(item * f_.lanes, f_.lanes) = value;
          return;
        }
        const Expr row = b_.let("row", item / chunks);
        const Expr first = b_.let("first", chunk * f_.lanes);
        const auto one = [&](const Expr& column) {
          std::vector<Expr> place = at;
          place.push_back(column);
          const Expr value = window(place, 1, false, {});
          y[row * out.back() + column] = value;
        };
        const auto singly = [&] {
          b_.when(row < rows, [&] { b_.loop("column", first, min(first + f_.lanes, out.back()), one); });
        };
        if (f_.lanes == 1) return singly();
        const size_t last = static_cast<size_t>(rank) - 1;
        const int64_t stride = f_.window.strides[last];
        const int64_t reach = (f_.lanes - 1) * stride + (f_.window.kernel[last] - 1) * f_.window.dilations[last];
        b_.when(
            row < rows && first <= out.back() - f_.lanes && first * stride >= pad_[last] &&
                first * stride - pad_[last] + reach < in_[last],
            [&] {
              std::vector<Expr> place = at;
              place.push_back(first);
              const Expr value = window(place, f_.lanes, true, {});
              y.at(row * out.back() + first, f_.lanes) = value;
            },
            singly);
      });
    });
    return b_.finish();
  }

 private:
  // The pool of the window at one place: `lanes` channels from `lane` on, or `lanes` neighbours along the last axis, of
  // which no window leaves the input there (`inside`).
  Expr window(const std::vector<Expr>& place, int lanes, bool inside, const Expr& lane) {
    const int rank = f_.window.rank();
    const auto number = [&](double v) { return lanes == 1 ? kernel::real(v) : broadcast(kernel::real(v), lanes); };
    const Array sum = b_.registers("sum", {DType::Float32, lanes}, 1);
    sum[0] = number(f_.average ? 0 : -std::numeric_limits<double>::infinity());
    int64_t taps = 1;
    for (const int64_t k : f_.window.kernel) taps *= k;
    std::vector<Expr> at = {place[0]};
    const std::function<void(int)> axis = [&](int i) {
      const auto a = static_cast<size_t>(i);
      if (i == rank) {
        std::vector<Expr> sizes = {planes_};
        sizes.insert(sizes.end(), in_.begin(), in_.end());
        const int64_t stride = f_.window.strides.back();
        if (guarded(f_)) {
          std::vector<Expr> places = at;
          if (lane.defined()) {
            places.push_back(lane);
            sizes.push_back(static_cast<int64_t>(f_.block));
          }
          const int64_t reach = lane.defined() ? lanes : (lanes - 1) * stride + 1;
          const Expr index = join_index_unproven(b_, places, sizes);
          return b_.when(index >= 0 && index <= elements_ - reach,
                         [&] { add(sum, read(index, lanes, lane.defined() ? 1 : stride)); });
        }
        return add(sum, read(join_index(at, sizes), lanes, stride));
      }
      const auto tap = [&](const Expr& t) {
        const Expr position = b_.let("p", place[a + 1] * f_.window.strides[a] + t * f_.window.dilations[a] - pad_[a]);
        at.push_back(position);
        if (inside && i == rank - 1) {
          axis(i + 1);
        } else {
          b_.when(position >= 0 && position < in_[a], [&] { axis(i + 1); });
        }
        at.pop_back();
      };
      const int64_t k = f_.window.kernel[a];
      if (taps <= kMaxTaps) {
        b_.unroll("t", static_cast<int>(k), tap);
      } else {
        b_.loop("t", 0, k, tap);
      }
    };
    axis(0);
    if (!f_.average) return b_.let("pooled", sum[0]);
    // How many elements each window is divided by.
    const Array count = b_.registers("count", kernel::kFloat, 1);
    count[0] = 1.0f;
    for (int i = 0; i < rank; ++i) {
      const auto a = static_cast<size_t>(i);
      if (inside && i == rank - 1) {
        count[0] = count[0] * static_cast<float>(f_.window.kernel[a]);
        continue;
      }
      const Array own = b_.registers("own", kernel::kFloat, 1);
      own[0] = 0.0f;
      b_.loop("t", 0, f_.window.kernel[a], [&](const Expr& t) {
        const Expr position = place[a + 1] * f_.window.strides[a] + t * f_.window.dilations[a];
        const Expr counts = f_.include_pad ? position < padded_[a] : position >= pad_[a] && position - pad_[a] < in_[a];
        b_.when(counts, [&] { own[0] = own[0] + 1.0f; });
      });
      count[0] = count[0] * own[0];
    }
    const Expr n = b_.let("n", max(count[0], 1.0f));
    return b_.let("pooled", sum[0] / (lanes == 1 ? n : broadcast(n, lanes)));
  }

  // `lanes` elements from the index on, `stride` apart.
  Expr read(const Expr& index, int lanes, int64_t stride) {
    if (stride == 1 || lanes == 1) return x_[0].at(index, lanes);
    std::vector<Expr> parts;
    for (int l = 0; l < lanes; ++l) parts.push_back(x_[0][index + l * stride]);
    return kernel::vector(parts);
  }

  void add(const Array& sum, const Expr& value) {
    const Expr x = b_.let("x", value), before = b_.let("before", sum[0]);
    sum[0] = f_.average ? before + x : select(before < x, x, before);
  }

  const PoolForm& f_;
  int threads_;
  Builder b_;
  Expr planes_, elements_;
  std::vector<Expr> in_, pad_, padded_;
  std::vector<Array> x_;
};

}  // namespace

std::vector<std::string_view> pool_roots() {
  return {"MaxPool", "AveragePool"};
}

std::optional<Made> read_pool(const Workload& workload, const BasicOptions& options, std::string* why) {
  const Node& node = workload.root();
  const Value* x = node.inputs.front();
  if (!x->type.is_tensor() || !x->shape().has_rank() || x->dtype() != DType::Float32 || x->shape().rank() < 3 ||
      x->shape().rank() > 5) {
    return not_made(why, "the input is not float32 with 1 to 3 spatial axes");
  }
  if (workload.outputs.size() > 1 || node.outputs.front() == nullptr) return not_made(why, "indices are wanted");
  const Shape &in = x->shape(), &out = workload.outputs.front()->shape();
  const int rank = in.rank() - 2;
  PoolForm f;
  f.window = read_window(node, rank);
  f.average = node.op == "AveragePool";
  f.include_pad = node.int_attr("count_include_pad", 0) != 0;
  if (options.together != 1) {
    if (!in[1].is_constant() || in[1].value() < 2) return not_made(why, "it has no channels to block");
    f.block = channels_block(options.together, in[1].value());
  }
  for (const int64_t n : f.window.pads) {
    if (n > 1 << 10) return not_made(why, "its padding is too wide");
  }
  f.lanes = dividing_lanes(f.block, options.lanes);
  if (f.block == 1) {
    f.lanes = options.lanes;
    while (f.lanes > 1 && 2 * f.lanes > out[rank + 1].hint()) f.lanes /= 2;
  }
  const Layout layout = channels_layout(rank + 2, options.together);
  Made made;
  made.inputs = {0};
  made.layouts = {layout, layout};
  double taps = 1;
  for (const int64_t k : f.window.kernel) taps *= static_cast<double>(k);
  made.flops = 2 * taps * static_cast<double>(out.element_count().hint());
  const auto launches = [f, rank, layout](std::span<const Dims> shapes) {
    const Dims &in_dims = shapes[0], &out_dims = shapes[1];
    Launches all;
    if (element_count(out_dims) == 0) return all;
    const int64_t planes = in_dims[0] * ((in_dims[1] + f.block - 1) / f.block);
    const int64_t chunks = f.block > 1 ? f.block / f.lanes : (out_dims.back() + f.lanes - 1) / f.lanes;
    int64_t items = planes * chunks;
    for (int i = 0; i < rank - (f.block > 1 ? 0 : 1); ++i) items *= out_dims[static_cast<size_t>(i) + 2];
    KernelLaunch launch{0, {items, planes}};
    for (int i = 0; i < rank; ++i) {
      const auto a = static_cast<size_t>(i);
      const int64_t n = in_dims[a + 2], k = f.window.kernel[a];
      const int64_t pad = window_pad_begin(f.window, i, k, n);
      for (const int64_t size : {n, out_dims[a + 2], pad, n + window_pad_total(f.window, i, k, n)}) {
        launch.arguments.emplace_back(size);
      }
    }
    launch.arguments.emplace_back(chunks);
    launch.arguments.emplace_back(items / chunks);
    if (PoolWriter::guarded(f)) launch.arguments.emplace_back(element_count(layout.physical_dims(in_dims)));
    launch.arguments.emplace_back(Operand{0});
    launch.arguments.emplace_back(Operand{1});
    all.launches.push_back(std::move(launch));
    return all;
  };
  made.program = [=, &node] {
    std::vector<kernel::Kernel> kernels;
    kernels.push_back(PoolWriter(f, options.threads).write());
    return make_program(std::move(kernels), launches);
  };
  return made;
}

}  // namespace neo::gpu
