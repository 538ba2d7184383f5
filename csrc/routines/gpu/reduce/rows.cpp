#include "routines/gpu/reduce/rows.h"

#include <algorithm>

#include "base/check.h"

namespace neo::gpu {

using kernel::Array;
using kernel::Expr;
using kernel::lane;
using kernel::real;

namespace {

constexpr int64_t kMaxAlong = int64_t{1} << 28;

Expr in_lanes(const Expr& x, int lanes) {
  return lanes == 1 || x->type.lanes == lanes ? x : kernel::broadcast(x, lanes);
}

}  // namespace

Expr Walk::number(double value, DType dtype) const {
  const Expr one = is_float(dtype) ? real(value, {dtype, 1}) : kernel::integer(static_cast<int64_t>(value), {dtype, 1});
  return in_lanes(one, columns_);
}

Expr Walk::place(const Expr& at) const {
  return column_.defined() ? (row * along + at) * inner_ + column_ : row * along + at;
}

// One thread's values to the value of all threads of the row.
void Walk::across(const Array& one, Combine combine) {
  const Array& shared = *shared_;
  b_->barrier();  // what was there before has been read
  shared[thread_] = one[0];
  for (int distance = s_.together / 2; distance > 0; distance /= 2) {
    b_->barrier();
    b_->when(thread_ < distance, [&] { shared[thread_] = combine(shared[thread_], shared[thread_ + distance]); });
  }
  b_->barrier();
  one[0] = shared[0];
}

Expr Walk::reduce(const Expr& initial, Map map, Combine combine) {
  const kernel::ValueType type = initial->type.scalar();
  if (column_.defined()) {
    const Array sum = b_->registers("sum", type.with_lanes(columns_), 1);
    sum[0] = in_lanes(initial, columns_);
    b_->loop("j", 0, along, [&](const Expr& j) {
      const Expr x = b_->let("x", x_->at(place(j), columns_));
      sum[0] = combine(sum[0], map(x, j));
    });
    return b_->let("all", sum[0]);
  }
  const int lanes = s_.lanes, together = s_.together;
  const Array one = b_->registers("one", type, 1);
  one[0] = initial;
  const Expr vectors = b_->let("vectors", along / lanes);
  if (lanes > 1) {
    const Array sums = b_->registers("sums", type.with_lanes(lanes), 1);
    sums[0] = in_lanes(initial, lanes);
    const auto vector = [&](const Expr& i) {
      const Expr x = b_->let("x", x_->at(place(i * lanes), lanes));
      sums[0] = combine(sums[0], map(x, i * lanes));
    };
    if (together == 1) {
      b_->loop("i", 0, vectors, vector);
    } else {
      b_->loop("i", 0, ceildiv(vectors, together), [&](const Expr& i) {
        b_->when(i * together + thread_ < vectors, [&] { vector(i * together + thread_); });
      });
    }
    std::vector<Expr> parts;
    for (int l = 0; l < lanes; ++l) parts.push_back(b_->let("part", lane(sums[0], l)));
    while (parts.size() > 1) {
      const size_t half = parts.size() / 2;
      for (size_t l = 0; l < half; ++l) parts[l] = b_->let("part", combine(parts[l], parts[l + half]));
      parts.resize(half);
    }
    one[0] = combine(one[0], parts[0]);
  }
  const auto single = [&](const Expr& j) {
    const Expr x = b_->let("x", (*x_)[place(j)]);
    one[0] = combine(one[0], map(x, j));
  };
  const Expr first = lanes == 1 ? Expr(0) : vectors * lanes;
  if (together == 1) {
    b_->loop("j", first, along, single);
  } else {
    b_->loop("j", 0, ceildiv(along - first, together), [&](const Expr& j) {
      b_->when(first + j * together + thread_ < along, [&] { single(first + j * together + thread_); });
    });
    across(one, combine);
  }
  return b_->let("all", one[0]);
}

void Walk::each(FunctionRef<void(const Expr&, const Expr&, const Expr&)> body) {
  if (column_.defined()) {
    b_->loop("j", 0, along, [&](const Expr& j) { body(b_->let("x", x_->at(place(j), columns_)), j, place(j)); });
    return;
  }
  const int lanes = s_.lanes, together = s_.together;
  const Expr vectors = b_->let("vectors", along / lanes);
  if (lanes > 1) {
    const auto vector = [&](const Expr& i) {
      body(b_->let("x", x_->at(place(i * lanes), lanes)), i * lanes, place(i * lanes));
    };
    if (together == 1) {
      b_->loop("i", 0, vectors, vector);
    } else {
      b_->loop("i", 0, ceildiv(vectors, together), [&](const Expr& i) {
        b_->when(i * together + thread_ < vectors, [&] { vector(i * together + thread_); });
      });
    }
  }
  const auto single = [&](const Expr& j) { body(b_->let("x", (*x_)[place(j)]), j, place(j)); };
  const Expr first = lanes == 1 ? Expr(0) : vectors * lanes;
  if (together == 1) return b_->loop("j", first, along, single);
  b_->loop("j", 0, ceildiv(along - first, together), [&](const Expr& j) {
    b_->when(first + j * together + thread_ < along, [&] { single(first + j * together + thread_); });
  });
}

void Walk::each_in_order(FunctionRef<void(const Expr&, const Expr&)> body) {
  b_->loop("j", 0, along, [&](const Expr& j) { body(b_->let("x", x_->at(place(j), columns_)), j); });
}

void Walk::once(FunctionRef<void()> body) {
  if (s_.together == 1) return body();
  b_->when(thread_ == 0, body);
}

RowKernel::RowKernel(const std::string& name, const RowForm& form, const RowSchedule& schedule)
    : b_(name), form_(form), s_(schedule) {
  NEO_ASSERT(form.is_last || schedule.together == 1, "Got ", schedule.together);
  outer = b_.size("outer", 1, kMaxElements);
  along = b_.size("along", 0, kMaxAlong);
  inner = 1;
  if (!form.is_last) {
    items_ = b_.size("items", 1, kMaxElements);
    inner = b_.size("inner", 1, kMaxAlong);
    chunks_ = b_.size("chunks", 1, kMaxAlong / schedule.lanes);  // of a row of columns
  }
  x_ = b_.input("x", form.dtype, form.is_last ? outer * along : outer * along * inner);
}

kernel::Kernel RowKernel::write(FunctionRef<void(Walk&)> body) {
  Walk walk;
  walk.b_ = &b_;
  walk.x_ = &*x_;
  walk.form_ = form_;
  walk.s_ = s_;
  walk.along = along;
  walk.inner_ = inner;
  if (form_.is_last && s_.together > 1) {
    walk.row = walk.result = b_.group(0, "row", outer);
    walk.thread_ = b_.local(0, "lx", s_.together);
    walk.shared_ = b_.shared("shared", form_.dtype, s_.together);
    body(walk);
    return b_.finish();
  }
  if (form_.is_last) {
    each_item(b_, outer, s_.threads, [&](const Expr& item) {
      walk.row = walk.result = item;
      body(walk);
    });
    return b_.finish();
  }
  const int lanes = s_.lanes;
  each_item(b_, items_, s_.threads, [&](const Expr& item) {
    walk.row = b_.let("row", item / chunks_);
    const Expr first = b_.let("first", item % chunks_ * lanes);
    const auto columns = [&](const Expr& column, int count) {
      walk.column_ = column;
      walk.columns_ = count;
      walk.result = walk.row * inner + column;
      body(walk);
    };
    b_.when(walk.row < outer, [&] {
      if (lanes == 1) return b_.when(first < inner, [&] { columns(first, 1); });
      b_.when(
          first <= inner - lanes, [&] { columns(first, lanes); },
          [&] { b_.loop("column", first, inner, [&](const Expr& column) { columns(column, 1); }); });
    });
  });
  return b_.finish();
}

std::vector<LaunchArgument> row_arguments(const RowForm& form, const RowSchedule& schedule, int64_t outer,
                                          int64_t along, int64_t inner) {
  std::vector<LaunchArgument> arguments = {outer, along};
  if (!form.is_last) {
    const int64_t chunks = (inner + schedule.lanes - 1) / schedule.lanes;
    for (const int64_t size : {outer * chunks, inner, chunks}) arguments.emplace_back(size);
  }
  arguments.emplace_back(Operand{0});
  return arguments;
}

RowSizes row_sizes(const Dims& dims, const AxisRun& run) {
  RowSizes s;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    (i < run.first ? s.outer : i <= run.last ? s.along : s.inner) *= dims[static_cast<size_t>(i)];
  }
  return s;
}

RowSchedule row_schedule(const RowForm& form, const RowSizes& hint, const BasicOptions& options) {
  RowSchedule s{options.lanes, options.threads, 1};
  const int64_t contiguous = form.is_last ? hint.along : hint.inner;
  while (s.lanes > 1 && s.lanes > contiguous) s.lanes /= 2;
  if (form.dtype != DType::Float32) s.lanes = 1;
  const bool few = hint.outer < options.few_rows;
  while (form.is_last && few && s.together < options.threads && int64_t{s.together} * s.lanes * 4 <= hint.along) {
    s.together *= 2;
  }
  return s;
}

}  // namespace neo::gpu
