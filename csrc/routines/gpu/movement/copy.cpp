#include "routines/gpu/movement/copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/check.h"
#include "routines/gpu/movement/moved.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Builder;
using kernel::Expr;

namespace {

enum class Kind : uint8_t {
  Rows,    // contiguous along the last axis on both sides
  Planes,  // the source along the last axis but one, the target along the last
  Single,  // neither
};

struct CopyShape {
  Kind kind = Kind::Single;
  int axes = 1;
  friend auto operator<=>(const CopyShape&, const CopyShape&) = default;
};

CopyShape shape_of(const CopyPart& p) {
  const int last = p.axes - 1;
  if (p.from[last] == 1 && p.to[last] == 1) return {Kind::Rows, p.axes};
  if (last > 0 && p.from[last - 1] == 1 && p.to[last] == 1 && p.from[last] > 0 && p.to[last - 1] > 0) {
    return {Kind::Planes, p.axes};
  }
  return {Kind::Single, p.axes};
}

Expr wide(const Expr& x) {
  return cast(x, DType::Int64);
}

class CopyWriter {
 public:
  CopyWriter(DType item, const CopyShape& shape, const CopySchedule& schedule)
      : item_(item), shape_(shape), s_(schedule), b_(str(names().at(shape.kind), shape.axes, "_", item_bytes(item))) {}

  kernel::Kernel write() {
    const int axes = shape_.axes;
    const Expr items = b_.size("items", 1, kMaxElements / step());
    from_count_ = b_.size("from_count", 1, kMaxElements);
    to_count_ = b_.size("to_count", 1, kMaxElements);
    const Expr from_offset = b_.size("from_offset", 0, kMaxElements), to_offset = b_.size("to_offset", 0, kMaxElements);
    std::vector<Expr> counts, from, to;  // along each axis, in steps
    for (int i = 0; i < axes; ++i) {
      const std::string n = std::to_string(i);
      counts.push_back(b_.size("s" + n, 1, kMaxElements / step()));
      from.push_back(b_.size("from" + n, -kMaxElements, kMaxElements));
      to.push_back(b_.size("to" + n, -kMaxElements, kMaxElements));
    }
    const bool planes = shape_.kind == Kind::Planes;
    const Expr inner = b_.size("inner", 1, kMaxElements), outer = planes ? b_.size("outer", 1, kMaxElements) : Expr();
    // Strides inside a plane's block are known not to be negative.
    const Expr from_row = planes ? b_.size("from_row", 1, kMaxElements / s_.tile) : Expr();
    const Expr to_row = planes ? b_.size("to_row", 1, kMaxElements / s_.tile) : Expr();
    const Array x = b_.input("x", item_, from_count_), y = b_.output("y", item_, to_count_);
    each_item(b_, items, s_.threads, [&](const Expr& item) {
      const std::vector<Expr> at = split_index(b_, item, counts);
      const auto body = [&] {
        Expr source = wide(from_offset), target = wide(to_offset);
        for (int i = 0; i < axes; ++i) {
          const bool blocked = i == axes - 1 || (planes && i == axes - 2);
          const Expr place = wide(blocked ? at[i] * step() : at[i]);
          source = source + place * wide(from[i]);
          target = target + place * wide(to[i]);
        }
        source = b_.let("source", source);
        target = b_.let("target", target);
        const Expr first = b_.let("first", at[axes - 1] * step());
        if (planes) return plane(x, y, source, target, first, at[axes - 2] * step(), inner, outer, from_row, to_row);
        if (shape_.kind == Kind::Rows && step() > 1) return row(x, y, source, target, first, inner);
        b_.loop("i", first, min(first + step(), inner), [&](const Expr& i) {
          one(x, y, source + wide(i - first) * wide(from.back()), target + wide(i - first) * wide(to.back()));
        });
      };
      if (axes == 1) return body();
      b_.when(at[0] < counts[0], body);
    });
    return b_.finish();
  }

  // Elements along the innermost axis for one thread.
  int step() const { return shape_.kind == Kind::Rows ? s_.lanes : shape_.kind == Kind::Planes ? s_.tile : s_.run; }

 private:
  static const std::map<Kind, std::string_view>& names() {
    static const std::map<Kind, std::string_view> table = {
        {Kind::Rows, "copy_rows"}, {Kind::Planes, "copy_planes"}, {Kind::Single, "copy_elements"}};
    return table;
  }

  void one(const Array& x, const Array& y, const Expr& source, const Expr& target) {
    const Expr s = b_.let("s", cast(source, DType::Int32)), t = b_.let("t", cast(target, DType::Int32));
    b_.when(s >= 0 && s < from_count_ && t >= 0 && t < to_count_, [&] { y[t] = x[s]; });
  }

  void row(const Array& x, const Array& y, const Expr& source, const Expr& target, const Expr& first,
           const Expr& inner) {
    b_.when(
        first + s_.lanes <= inner,
        [&] {
          const Expr s = b_.let("s", cast(source, DType::Int32)), t = b_.let("t", cast(target, DType::Int32));
          b_.when(s >= 0 && s <= from_count_ - s_.lanes && t >= 0 && t <= to_count_ - s_.lanes,
                  [&] { y.at(t, s_.lanes) = x.at(s, s_.lanes); });
        },
        [&] {
          b_.loop("i", first, inner,
                  [&](const Expr& i) { one(x, y, source + wide(i - first), target + wide(i - first)); });
        });
  }

  // A block of tile x tile elements: `column` along the target's contiguous axis, `line` along the source's.
  void plane(const Array& x, const Array& y, const Expr& source, const Expr& target, const Expr& column,
             const Expr& line, const Expr& inner, const Expr& outer, const Expr& from_row, const Expr& to_row) {
    const int tile = s_.tile;
    b_.when(
        column + tile <= inner && line + tile <= outer,
        [&] {
          const Expr s = b_.let("s", cast(source, DType::Int32)), t = b_.let("t", cast(target, DType::Int32));
          b_.when(s >= 0 && wide(s) + wide(from_row) * (tile - 1) + tile <= wide(from_count_) && t >= 0 &&
                      wide(t) + wide(to_row) * (tile - 1) + tile <= wide(to_count_),
                  [&] {
                    std::vector<Expr> rows;
                    for (int i = 0; i < tile; ++i) rows.push_back(b_.let("r", x.at(s + from_row * i, tile)));
                    for (int j = 0; j < tile; ++j) {
                      std::vector<Expr> lanes;
                      for (int i = 0; i < tile; ++i) lanes.push_back(lane(rows[static_cast<size_t>(i)], j));
                      y.at(t + to_row * j, tile) = kernel::vector(lanes);
                    }
                  });
        },
        [&] {
          b_.loop("j", line, min(line + tile, outer), [&](const Expr& j) {
            b_.loop("i", column, min(column + tile, inner), [&](const Expr& i) {
              one(x, y, source + wide(j - line) + wide(i - column) * wide(from_row),
                  target + wide(j - line) * wide(to_row) + wide(i - column));
            });
          });
        });
  }

  DType item_;
  CopyShape shape_;
  CopySchedule s_;
  Builder b_;
  Expr from_count_, to_count_;
};

kernel::Kernel fill_kernel(DType item, const CopySchedule& schedule, int64_t value) {
  Builder b("copy_fill");
  const Expr n = b.size("n", 1, kMaxElements);
  const Array y = b.output("y", item, n);
  const int lanes = schedule.lanes;
  each_item(b, ceildiv(n, lanes), schedule.threads, [&](const Expr& i) {
    const Expr one = kernel::integer(value, {item, 1});
    b.loop("j", i * lanes, min(i * lanes + lanes, n), [&](const Expr& j) { y[j] = one; });
  });
  return b.finish();
}

// The parts with at most kMaxAxes axes: the outermost ones are counted here.
constexpr int kMaxCopyAxes = 6;
void split_axes(const CopyPart& part, std::vector<CopyPart>& out) {
  if (part.axes <= kMaxCopyAxes) return out.push_back(part);
  CopyPart rest = part;
  --rest.axes;
  std::copy(part.size + 1, part.size + part.axes, rest.size);
  std::copy(part.from + 1, part.from + part.axes, rest.from);
  std::copy(part.to + 1, part.to + part.axes, rest.to);
  for (int64_t i = 0; i < part.size[0]; ++i) {
    rest.from_offset = part.from_offset + i * part.from[0];
    rest.to_offset = part.to_offset + i * part.to[0];
    split_axes(rest, out);
  }
}

class CopyProgram final : public Program {
 public:
  CopyProgram(const CopyProblem& problem, const CopySchedule& schedule) : problem_(problem), s_(schedule) {
    const CopyWork work = problem.plan(problem.hint);
    std::vector<CopyPart> parts;
    for (const CopyPart& p : work.parts) split_axes(p, parts);
    for (const CopyPart& p : parts) add(shape_of(p));
    if (problem.any_dims) add({Kind::Single, kMaxCopyAxes});
    if (work.filled >= 0) {
      fill_ = static_cast<int>(kernels_.size());
      int64_t bits = 0;
      std::memcpy(&bits, work.fill.data(), static_cast<size_t>(problem.width));
      if (problem.width == 4) bits = static_cast<int32_t>(bits);
      kernels_.push_back(fill_kernel(moved_dtype(problem.width), s_, bits));
    }
  }

  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }

  Launches launches(std::span<const Dims> shapes) const override {
    const CopyWork work = problem_.plan(shapes);
    Launches all;
    if (work.filled >= 0 && work.fill_count > 0) {
      all.launches.push_back({fill_, {work.fill_count, Operand{work.filled}}});
    }
    std::vector<CopyPart> parts;
    for (const CopyPart& p : work.parts) split_axes(p, parts);
    for (const CopyPart& p : parts) {
      const auto count = [&](int64_t operand) {
        return problem_.count(static_cast<int>(operand), shapes[static_cast<size_t>(operand)]);
      };
      all.launches.push_back(launch(p, count(p.source), count(p.target)));
    }
    return all;
  }

 private:
  void add(const CopyShape& shape) {
    if (index_.contains(shape)) return;
    CopyWriter writer(moved_dtype(problem_.width), shape, s_);
    index_[shape] = {static_cast<int>(kernels_.size()), writer.step()};
    kernels_.push_back(writer.write());
  }

  KernelLaunch launch(CopyPart p, int64_t from_count, int64_t to_count) const {
    CopyShape shape = shape_of(p);
    if (!index_.contains(shape)) {  // any copy is one of single elements with more axes
      shape = {Kind::Single, kMaxCopyAxes};
      CopyPart wider = p;
      const int missing = kMaxCopyAxes - p.axes;
      wider.axes = kMaxCopyAxes;
      for (int i = 0; i < kMaxCopyAxes; ++i) {
        wider.size[i] = i < missing ? 1 : p.size[i - missing];
        wider.from[i] = i < missing ? 0 : p.from[i - missing];
        wider.to[i] = i < missing ? 0 : p.to[i - missing];
      }
      p = wider;
    }
    const auto [kernel, step] = index_.at(shape);
    const bool planes = shape.kind == Kind::Planes;
    const int last = p.axes - 1;
    std::vector<int64_t> counts(p.size, p.size + p.axes);
    const auto steps = [step = step](int64_t n) { return (n + step - 1) / step; };
    counts.back() = steps(p.size[last]);
    if (planes) counts[static_cast<size_t>(last - 1)] = steps(p.size[last - 1]);
    KernelLaunch l{kernel, {element_count(counts), from_count, to_count, p.from_offset, p.to_offset}};
    for (int i = 0; i < p.axes; ++i) {
      for (const int64_t x : {counts[static_cast<size_t>(i)], p.from[i], p.to[i]}) l.arguments.emplace_back(x);
    }
    l.arguments.emplace_back(p.size[last]);
    if (planes) {
      for (const int64_t x : {p.size[last - 1], p.from[last], p.to[last - 1]}) l.arguments.emplace_back(x);
    }
    l.arguments.emplace_back(Operand{static_cast<int>(p.source)});
    l.arguments.emplace_back(Operand{static_cast<int>(p.target)});
    return l;
  }

  CopyProblem problem_;
  CopySchedule s_;
  std::vector<kernel::Kernel> kernels_;
  std::map<CopyShape, std::pair<int, int>> index_;  // kernel and step
  int fill_ = -1;
};

// Pieces of an axis that both layouts cut the same way: `count` pieces of `size` elements, the sizes after the first
// one inside a piece.
struct Cut {
  std::vector<int64_t> sizes;  // outermost first
  int64_t begin = 0;           // the first element
};

}  // namespace

std::unique_ptr<Program> make_copy(const CopyProblem& problem, const CopySchedule& schedule) {
  return std::make_unique<CopyProgram>(problem, schedule);
}

CopyProblem layout_copy(DType dtype, const Layout& from, const Layout& to, const Dims& hint, bool any_dims) {
  // Offset of an element along one axis: (i / block) * outer + (i % block) * inner.
  struct Axis {
    int64_t block = 1, outer = 0, inner = 0;
    int64_t at(int64_t i) const { return i / block * outer + i % block * inner; }
  };
  const auto axes_of = [](const Layout& layout, const Dims& dims) {
    NEO_ASSERT(layout.blocks().size() <= 1, "Got ", layout.to_string());
    const Dims strides = dense_strides(layout.physical_dims(dims));
    std::vector<Axis> axes(dims.size());
    for (size_t i = 0; i < layout.order().size(); ++i) axes[static_cast<size_t>(layout.order()[i])].outer = strides[i];
    for (const Layout::Block& b : layout.blocks()) {
      Axis& axis = axes[static_cast<size_t>(b.axis)];
      axis.block = b.size;
      axis.inner = strides.back();
    }
    return axes;
  };
  const auto plan = [from, to, axes_of](std::span<const Dims> shapes) {
    const Dims& dims = shapes[0];
    const std::vector<Axis> a = axes_of(from, dims), b = axes_of(to, dims);
    CopyWork work;
    if (element_count(dims) == 0) return work;
    if (to.has_padding(dims)) {
      work.filled = 1;
      work.fill_count = element_count(to.physical_dims(dims));
    }
    // By axis, how it is cut; every combination of cuts is one copy.
    std::vector<std::vector<Cut>> cuts;
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t large = std::max(a[i].block, b[i].block), small = std::min(a[i].block, b[i].block);
      NEO_ASSERT(large % small == 0, "Got blocks of ", large, " and ", small);
      std::vector<Cut> own;
      int64_t begin = 0;
      if (const int64_t n = dims[i] / large; n > 0) {
        own.push_back({{n, large / small, small}, 0});
        begin = n * large;
      }
      if (const int64_t n = (dims[i] - begin) / small; n > 0) {
        own.push_back({{1, n, small}, begin});
        begin += n * small;
      }
      if (begin < dims[i]) own.push_back({{1, 1, dims[i] - begin}, begin});
      cuts.push_back(std::move(own));
    }
    std::vector<size_t> choice(dims.size(), 0);
    for (bool more = true; more;) {
      CopyPart part;
      part.target = 1;
      struct Loop {
        int64_t size, from, to;
      };
      std::vector<Loop> loops;
      for (size_t i = 0; i < dims.size(); ++i) {
        const Cut& cut = cuts[i][choice[i]];
        const int64_t large = std::max(a[i].block, b[i].block), small = std::min(a[i].block, b[i].block);
        part.from_offset += a[i].at(cut.begin);
        part.to_offset += b[i].at(cut.begin);
        const std::array<int64_t, 3> steps = {large, small, 1};
        for (size_t k = 0; k < 3; ++k) {
          if (cut.sizes[k] > 1) loops.push_back({cut.sizes[k], a[i].at(steps[k]), b[i].at(steps[k])});
        }
      }
      std::stable_sort(loops.begin(), loops.end(), [](const Loop& x, const Loop& y) { return x.to > y.to; });
      for (const Loop& l : loops) part.add_axis(l.size, l.from, l.to);
      order_axes(part);
      work.parts.push_back(part);
      more = false;
      for (size_t i = 0; i < choice.size() && !more; ++i) {
        more = ++choice[i] < cuts[i].size();
        if (!more) choice[i] = 0;
      }
    }
    return work;
  };
  const auto count = [from, to](int operand, const Dims& dims) {
    return element_count((operand == 0 ? from : to).physical_dims(dims));
  };
  return {item_bytes(dtype), plan, count, {hint, hint}, any_dims};
}

}  // namespace neo::gpu
