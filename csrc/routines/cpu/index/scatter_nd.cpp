#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "routines/cpu/index/index.h"
#include "routines/cpu/index/scatter.h"
#include "routines/cpu/tasks.h"
#include "routines/families.h"
#include "routines/patterns/epilogue.h"

namespace neo {
namespace {

// Neighbouring updates that go to neighbouring places; in elements.
struct ScatterRun {
  int64_t to = 0;
  int64_t from = 0;
  int64_t count = 0;
};

struct ScatterCall {
  int64_t data_bytes = 0;
  int64_t width = 4;  // bytes of an element
  int64_t runs = 0;   // behind this in the prepared bytes
  TaskSplit copy;     // of chunks of the data
  TaskSplit scatter;  // of runs
};

constexpr int64_t kCopyChunk = 1 << 16;

// Combines a run of elements with updates.
using CombineRun = void (*)(std::byte* to, const std::byte* from, int64_t count);

template <class T, class C, ScatterReduction reduction>
void combine_run(std::byte* to, const std::byte* from, int64_t count) {
  // Loops are vectors' where the reduction and the number of elements are known.
  constexpr C combine{reduction};
  constexpr int64_t kBlock = 64 / sizeof(T);
  auto* y = reinterpret_cast<T*>(to);
  const auto* x = reinterpret_cast<const T*>(from);
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
#pragma GCC ivdep
    for (int64_t j = 0; j < kBlock; ++j) y[i + j] = combine(y[i + j], x[i + j]);
  }
  for (; i < count; ++i) y[i] = combine(y[i], x[i]);
}

// Null where updates replace elements.
CombineRun combine_run_of(DType dtype, ScatterReduction reduction) {
  CombineRun run = nullptr;
  with_combine(dtype, reduction, [&]<class T, class C>(T, C) {
    switch (reduction) {
      case ScatterReduction::None:
        break;
      case ScatterReduction::Add:
        run = combine_run<T, C, ScatterReduction::Add>;
        break;
      case ScatterReduction::Mul:
        run = combine_run<T, C, ScatterReduction::Mul>;
        break;
      case ScatterReduction::Max:
        run = combine_run<T, C, ScatterReduction::Max>;
        break;
      case ScatterReduction::Min:
        run = combine_run<T, C, ScatterReduction::Min>;
        break;
    }
  });
  return run;
}

// Constant indices: which runs go where is known once the sizes are.
class ScatterStep final : public KernelStep {
 public:
  ScatterStep(std::vector<int64_t> indices, int64_t tuples, int data, int updates, DType dtype,
              ScatterReduction reduction)
      : indices_(std::move(indices)),
        tuples_(tuples),
        data_(data),
        updates_(updates),
        combine_(combine_run_of(dtype, reduction)) {}

  Prepared prepare(std::span<const Arg> args) const override {
    const Arg& data = args[static_cast<size_t>(data_)];
    NEO_ASSERT(data.is_dense() && args[static_cast<size_t>(updates_)].is_dense() && args.back().is_dense(),
               "a scatter takes dense tensors");
    const auto runs = runs_of(data.dims);
    ScatterCall call;
    call.width = item_bytes(data.dtype);
    call.data_bytes = element_count(data.dims) * call.width;
    call.runs = static_cast<int64_t>(runs.size());
    call.copy = TaskSplit::of(ceil_div(call.data_bytes, kCopyChunk), call.data_bytes);
    int64_t moved = 0;
    bool ascending = true;
    for (size_t i = 0; i < runs.size(); ++i) {
      moved += runs[i].count + 8;
      ascending = ascending && (i == 0 || runs[i].to >= runs[i - 1].to + runs[i - 1].count);
    }
    // The last of two updates of one place counts, and sums have an order.
    call.scatter = TaskSplit::of(call.runs, ascending ? moved : 0);
    Prepared prepared = Prepared::of(call);
    const size_t at = prepared.bytes.size();
    prepared.bytes.resize(at + runs.size() * sizeof(ScatterRun));
    if (!runs.empty()) std::memcpy(prepared.bytes.data() + at, runs.data(), runs.size() * sizeof(ScatterRun));
    return prepared;
  }

  void run(const std::byte* prepared, std::byte* const* args, std::byte*, Team& team) const override {
    const auto& call = *reinterpret_cast<const ScatterCall*>(prepared);
    const auto* runs = reinterpret_cast<const ScatterRun*>(prepared + sizeof(ScatterCall));
    const std::byte* data = args[data_];
    const std::byte* updates = args[updates_];
    std::byte* y = args[std::max(data_, updates_) + 1];
    if (data != y) {
      run_tasks(team, call.copy, [&](int64_t begin, int64_t end, int) {
        const int64_t last = std::min(call.data_bytes, end * kCopyChunk);
        std::memcpy(y + begin * kCopyChunk, data + begin * kCopyChunk, static_cast<size_t>(last - begin * kCopyChunk));
      });
    }
    run_tasks(team, call.scatter, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const ScatterRun& r = runs[i];
        std::byte* to = y + r.to * call.width;
        const std::byte* from = updates + r.from * call.width;
        if (combine_) {
          combine_(to, from, r.count);
        } else {
          std::memcpy(to, from, static_cast<size_t>(r.count * call.width));
        }
      }
    });
  }

 private:
  std::vector<ScatterRun> runs_of(const Dims& dims) const {
    std::vector<ScatterRun> runs;
    const int64_t depth = tuples_ == 0 ? 0 : static_cast<int64_t>(indices_.size()) / tuples_;
    int64_t run = 1;
    for (size_t i = static_cast<size_t>(depth); i < dims.size(); ++i) run *= dims[i];
    if (run == 0) return runs;
    for (int64_t t = 0; t < tuples_; ++t) {
      int64_t to = 0;
      for (int64_t d = 0; d < depth; ++d) {
        const int64_t size = dims[static_cast<size_t>(d)];
        const int64_t index = indices_[static_cast<size_t>(t * depth + d)];
        to = to * size + (index < 0 ? index + size : index);
      }
      if (!runs.empty() && runs.back().to + runs.back().count == to * run) {
        runs.back().count += run;
      } else {
        runs.push_back({to * run, t * run, run});
      }
    }
    return runs;
  }

  std::vector<int64_t> indices_;
  int64_t tuples_;
  int data_;
  int updates_;
  CombineRun combine_;
};

// Indices that are known when it runs.
class ScatterHostStep final : public HostStep {
 public:
  ScatterHostStep(const Node& node, int data, int indices, int updates)
      : data_(data), indices_(indices), updates_(updates), reduction_(scatter_reduction(node)) {
    copy_outline(node, node_);
  }

  void run(std::span<const HostValue> inputs, std::span<HostValue> outputs, Team&) const override {
    ReferenceContext ctx(node_, inputs, outputs);
    const Tensor& x = ctx.input(data_);
    const Tensor& indices = ctx.input(indices_);
    const Tensor& updates = ctx.input(updates_);
    const Dims& shape = indices.dims();
    NEO_CHECK(!shape.empty() && shape.back() <= x.rank(), Shape, node_.op,
              "the last axis of indices must fit data's rank. Got indices ", to_string(shape), " for ",
              to_string(x.dims()), " - at ", node_.place());
    const auto depth = static_cast<int>(shape.back());
    const int64_t tuples = count_between(shape, 0, static_cast<int>(shape.size()) - 1);
    const int64_t run = count_between(x.dims(), depth, x.rank());
    NEO_CHECK(updates.size() == tuples * run, Shape, node_.op, "updates must fit indices and data. Got ",
              to_string(updates.dims()), ", expected ", tuples, " slices of ", run, " - at ", node_.place());
    const Tensor& y = ctx.output(0, x.dtype(), x.dims());
    copy_tensor(x, y);
    const auto* index = indices.as<int64_t>();
    const int64_t bytes = run * item_bytes(x.dtype());
    const auto* from = updates.as<std::byte>();
    auto* to = y.as<std::byte>();
    const CombineRun combine = combine_run_of(x.dtype(), reduction_);
    with_width(combine ? 0 : bytes, [&](auto fixed) {
      const int64_t width = fixed > 0 ? fixed : bytes;
      for (int64_t t = 0; t < tuples; ++t, from += width) {
        int64_t at = 0;
        for (int d = 0; d < depth; ++d) {
          const int64_t size = x.dims()[static_cast<size_t>(d)];
          at = at * size + index_inside(ctx, *index++, size);
        }
        if (combine) {
          combine(to + at * width, from, run);
        } else {
          std::memcpy(to + at * width, from, static_cast<size_t>(width));
        }
      }
    });
  }

 private:
  Node node_;
  int data_;
  int indices_;
  int updates_;
  ScatterReduction reduction_;
};

// True where the indices are constants that lie inside the data whatever its sizes are.
bool are_known(const Node& node) {
  const Value* data = node.inputs[0];
  const Value* indices = node.inputs[1];
  if (!indices->constant || !data->shape().has_rank() || !node.inputs[2]->shape().has_rank()) return false;
  const int64_t depth = indices->constant->dims().back();
  if (depth > data->shape().rank()) return false;
  const auto list = load_ints(*indices->constant);
  for (size_t i = 0; i < list.size(); ++i) {
    if (!is_inside(list[i], data->shape()[static_cast<int>(static_cast<int64_t>(i) % depth)])) return false;
  }
  return true;
}

class ScatterNdRoutine final : public RoutineOf<ScatterNdRoutine> {
 public:
  std::string_view name() const override { return "cpu/scatter_nd"; }
  std::vector<std::string_view> roots() const override { return {"ScatterND"}; }

  std::optional<std::string> rejects(const Workload& workload, const Target&) const override {
    const Node& node = workload.root();
    for (const Value* v : workload.inputs) {
      if (!v->type.is_tensor()) return "an input is no tensor";
    }
    const DType dtype = node.inputs[0]->dtype();
    if (dtype == DType::String) return "strings have owners of their own";
    if (node.inputs[1]->dtype() != DType::Int64) return "the indices are not int64";
    if (scatter_reduction(node) != ScatterReduction::None && !has_combine(dtype)) {
      return "there is no kernel that reduces its dtype";
    }
    return std::nullopt;
  }

  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry&) const override {
    const Node& node = workload.root();
    Candidate c;
    const bool known = are_known(node);
    c.kind = known ? Candidate::Kind::Step : Candidate::Kind::Host;
    for (const Value* v : workload.inputs) {
      const bool read = !known || v == node.inputs[0] || v == node.inputs[2];
      c.inputs.push_back(read ? std::optional(plain_schema(v->type)) : std::nullopt);
    }
    c.outputs.push_back(plain_schema(workload.outputs.front()->type));
    if (known && node.inputs[0] != node.inputs[2]) c.in_place = workload.input_index(node.inputs[0]);
    const Value* updates = node.inputs[2];
    const double bytes = schema_bytes(updates->type, plain_schema(updates->type));
    StepLoad load{StepFamily::ScatterNd, known ? 0 : bytes / static_cast<double>(item_bytes(updates->dtype())), 1,
                  known ? 0.0 : 1.0};
    // Data that lie in place are not copied.
    if (c.in_place >= 0) load.reads = load.writes = std::max(bytes, 1.0);
    price(c, workload, load, target);
    return {std::move(c)};
  }

  static std::unique_ptr<Step> make_step(const Candidate& candidate, const Target&, const OpRegistry&, PackedStore&) {
    const Node& node = candidate.workload->root();
    const int data = argument_of(candidate, node.inputs[0]);
    const int updates = argument_of(candidate, node.inputs[2]);
    if (candidate.kind == Candidate::Kind::Host) {
      return std::make_unique<ScatterHostStep>(node, data, argument_of(candidate, node.inputs[1]), updates);
    }
    const Tensor& indices = *node.inputs[1]->constant;
    return std::make_unique<ScatterStep>(load_ints(indices), count_between(indices.dims(), 0, indices.rank() - 1), data,
                                         updates, node.inputs[0]->dtype(), scatter_reduction(node));
  }
};

}  // namespace

NEO_DEFINE_ROUTINE(scatter_nd, ScatterNdRoutine)

}  // namespace neo
