#include "routines/gpu/sort/keys.h"
#include "routines/gpu/sort/scan.h"
#include "routines/gpu/vision/programs.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

constexpr int kNmsThreads = 64;

Kernel no_rows() {
  Builder b("nms_none");
  const Array count = b.output("count", DType::Int32, 1);
  const Expr thread = b.local(0, "thread", 1);
  b.when(thread == 0, [&] { count[0] = 0; });
  return b.finish();
}

Kernel keys_kernel() {
  Builder b("nms_keys");
  const Expr n = b.size("n", 1, kMaxElements), threshold = b.number("score_threshold", DType::Float32);
  const Array scores = b.input("scores", DType::Float32, n), keys = b.output("keys", DType::Int32, n);
  const Expr i =
      b.let("i", b.group(0, "group", ceildiv(n, kNmsThreads)) * kNmsThreads + b.local(0, "thread", kNmsThreads));
  b.when(i < n, [&] {
    const Expr score = b.let("score", scores[i]);
    keys[i] = select(score >= threshold, ordered_key(score, true), Expr(static_cast<int>(kLastKey)));
  });
  return b.finish();
}

Kernel corners_kernel(bool centered) {
  Builder b(centered ? "nms_corners_centered" : "nms_corners");
  const Expr n = b.size("n", 1, kMaxElements / 4);
  const Array boxes = b.input("boxes", DType::Float32, n * 4), corners = b.output("corners", DType::Float32, n * 4);
  const Expr i =
      b.let("i", b.group(0, "group", ceildiv(n, kNmsThreads)) * kNmsThreads + b.local(0, "thread", kNmsThreads));
  b.when(i < n, [&] {
    Expr at[4];
    for (int k = 0; k < 4; ++k) at[k] = b.let("at", boxes[i * 4 + k]);
    const Expr half_width = at[2] * 0.5f, half_height = at[3] * 0.5f;
    const BoxExpr box = centered
                            ? BoxExpr{at[0] - half_width, at[1] - half_height, at[0] + half_width, at[1] + half_height}
                            : BoxExpr{first_smaller(at[1], at[3]), first_smaller(at[0], at[2]),
                                      first_larger(at[1], at[3]), first_larger(at[0], at[2])};
    corners[i * 4] = box.x0;
    corners[i * 4 + 1] = box.y0;
    corners[i * 4 + 2] = box.x1;
    corners[i * 4 + 3] = box.y1;
  });
  return b.finish();
}

// Row by row: image, class, box. The begins of segments and the number of all rows are known.
Kernel rows_kernel() {
  Builder b("nms_rows");
  const Expr segments = b.size("segments", 1, kMaxElements), per_image = b.size("per_image", 1, kMaxElements);
  const Expr limit = b.size("limit", 1, kMaxElements), found = b.size("found", 1, kMaxElements / 3);
  const Array starts = b.input("starts", DType::Int32, segments);
  const Array indices = b.input("indices", DType::Int32, segments * limit);
  const Array rows = b.output("rows", DType::Int64, found * 3);
  const Expr segment = b.group(0, "segment", segments);
  const Expr j =
      b.let("j", b.group(1, "block", ceildiv(limit, kNmsThreads)) * kNmsThreads + b.local(0, "thread", kNmsThreads));
  b.when(j < limit, [&] {
    const Array end = b.registers("end", kInt, 1);
    end[0] = found;
    b.when(segment + 1 < segments, [&] { end[0] = starts[segment + 1]; });
    const Expr row = b.let("row", starts[segment] + j);
    b.when(row < end[0] && row >= 0 && row < found, [&] {
      rows[row * 3] = cast(segment / per_image, DType::Int64);
      rows[row * 3 + 1] = cast(segment % per_image, DType::Int64);
      rows[row * 3 + 2] = cast(indices[segment * limit + j], DType::Int64);
    });
  });
  return b.finish();
}

class NonMaxSuppression final : public DataDependentProgram {
 public:
  NonMaxSuppression(const NonMaxSuppressionChoice& choice, const NmsSchedule& schedule)
      : choice_(choice),
        sort_(DType::Int32, schedule.sort, kernels_),
        suppression_(choice.iou_threshold, false, schedule.suppression, kernels_),
        own_(static_cast<int>(kernels_.size())) {
    kernels_.push_back(keys_kernel());
    kernels_.push_back(corners_kernel(choice.centered));
    kernels_.push_back(scan_totals(DType::Int32, false));
    kernels_.push_back(rows_kernel());
    kernels_.push_back(no_rows());
  }

  const std::vector<Kernel>& kernels() const override { return kernels_; }

  int counts() const override { return 1; }

  Launches count(std::span<const Dims> inputs) const override { return search(inputs).first; }

  std::vector<Dims> sizes(std::span<const Dims>, std::span<const int32_t> counts) const override {
    return {{counts[0], 3}};
  }

  Launches launches(std::span<const Dims> shapes) const override {
    const auto [made, kept] = search(shapes.first(2));
    const int64_t classes = shapes[1][1], segments = shapes[1][0] * classes, found = shapes[2][0];
    Launches out{made.temporaries, {}};
    if (found == 0) return out;
    out.launches.push_back(
        {own_ + 3,
         {segments, classes, limit_of(shapes), found, Temporary{kept.counts}, Temporary{kept.indices}, Operand{2}}});
    return out;
  }

 private:
  int64_t limit_of(std::span<const Dims> shapes) const { return std::min(choice_.limit, shapes[1][2]); }

  // Finds what is kept; the counts of the segments become where their rows start.
  std::pair<Launches, Suppression::Kept> search(std::span<const Dims> shapes) const {
    const int64_t images = shapes[1][0], classes = shapes[1][1], boxes = shapes[1][2], segments = images * classes;
    const int64_t limit = limit_of(shapes);
    Launches out;
    if (segments == 0 || limit <= 0) {
      out.launches.push_back({own_ + 4, {Operand{2}}});
      return {out, {}};
    }
    out.temporaries = {segments * boxes * 4, images * boxes * 16};
    out.launches.push_back({own_, {segments * boxes, double{choice_.score_threshold}, Operand{1}, Temporary{0}}});
    out.launches.push_back({own_ + 1, {images * boxes, Operand{0}, Temporary{1}}});
    const int order = sort_.append(out, 0, segments, boxes, boxes);
    const Suppression::Kept kept = suppression_.append(out, {.segments = segments,
                                                             .per_image = classes,
                                                             .boxes = boxes,
                                                             .considered = boxes,
                                                             .limit = limit,
                                                             .keys = sort_.sorted_keys(order),
                                                             .order = order,
                                                             .corners = 1});
    out.launches.push_back({own_ + 2, {segments, Temporary{kept.counts}, Operand{2}}});
    return {out, kept};
  }

  NonMaxSuppressionChoice choice_;
  std::vector<Kernel> kernels_;
  Argsort sort_;
  Suppression suppression_;
  int own_;  // first of the kernels made here
};

}  // namespace

std::unique_ptr<DataDependentProgram> make_non_max_suppression(const NonMaxSuppressionChoice& choice,
                                                               const NmsSchedule& schedule) {
  return std::make_unique<NonMaxSuppression>(choice, schedule);
}

}  // namespace neo::gpu
