#include <algorithm>
#include <limits>

#include "base/budget.h"
#include "ops/sizes.h"
#include "routines/cpu/index/host_functions.h"
#include "routines/cpu/index/index.h"

namespace neo {
namespace {

// Boxes side by side, in blocks that loops are vectorized for; those behind the last meet nothing.
struct KeptBoxes {
  static constexpr int64_t kBlock = 8;

  std::vector<float> x_min, x_max, y_min, y_max;
  int64_t count = 0;

  void clear() {
    for (auto* list : {&x_min, &x_max, &y_min, &y_max}) list->clear();
    count = 0;
  }

  void add(float left, float right, float top, float bottom) {
    if (count % kBlock == 0) {
      for (auto* list : {&x_min, &x_max, &y_min, &y_max}) list->resize(static_cast<size_t>(count + kBlock), 0.0F);
    }
    const auto at = static_cast<size_t>(count++);
    x_min[at] = left;
    x_max[at] = right;
    y_min[at] = top;
    y_max[at] = bottom;
  }

  // Whether a box's intersection over union with one of them is above the threshold (intersection_over_union()).
  bool hide(float left, float right, float top, float bottom, float threshold) const {
    const float area = (right - left) * (bottom - top);
    if (!(area > 0)) return false;
    for (int64_t first = 0; first < count; first += kBlock) {
      const float *l = x_min.data() + first, *r = x_max.data() + first, *t = y_min.data() + first,
                  *b = y_max.data() + first;
      int hidden = 0;
      for (int64_t i = 0; i < kBlock; ++i) {
        const float width = (right < r[i] ? right : r[i]) - (left > l[i] ? left : l[i]);
        const float height = (bottom < b[i] ? bottom : b[i]) - (top > t[i] ? top : t[i]);
        const float other = (r[i] - l[i]) * (b[i] - t[i]);
        const float both = width * height, either = area + other - both;
        const int meets = (width > 0) & (height > 0) & (other > 0) & (either > 0);
        hidden |= meets & (both / either > threshold);
      }
      if (hidden != 0) return true;
    }
    return false;
  }
};

struct ScoredBox {
  float score;
  int64_t index;

  // The order of the heap, whose first is the best: the larger score, then the lower index.
  bool operator<(const ScoredBox& other) const {
    return score < other.score || (score == other.score && index > other.index);
  }
};

}  // namespace

void run_non_max_suppression(ReferenceContext& ctx) {
  const Dims& dims = ctx.input(0).dims();
  const Dims& score_dims = ctx.input(1).dims();
  if (!(dims.size() == 3 && score_dims.size() == 3 && dims[2] == 4 && dims[0] == score_dims[0] &&
        dims[1] == score_dims[2]))
    ctx.fail(ErrorKind::Shape, str("boxes and scores must fit. Got ", to_string(dims), " and ", to_string(score_dims)));
  const auto given = [&](int input) { return ctx.has_input(input) && ctx.input(input).size() > 0; };
  const int64_t limit = given(2) ? std::max<int64_t>(0, scalar_int(ctx, 2)) : 0;
  const auto iou_threshold = given(3) ? static_cast<float>(scalar_double(ctx, 3)) : 0.0F;
  const double score_threshold = given(4) ? scalar_double(ctx, 4) : -std::numeric_limits<double>::infinity();
  const bool centered = ctx.node().int_attr("center_point_box", 0) != 0;
  const int64_t count = dims[1];
  std::vector<ScoredBox> heap;
  KeptBoxes kept;
  std::vector<int64_t> selected;
  for (int64_t batch = 0; batch < score_dims[0]; ++batch) {
    const float* boxes = ctx.input(0).as<float>() + batch * count * 4;
    for (int64_t c = 0; c < score_dims[1]; ++c) {
      checkpoint();
      const float* score = ctx.input(1).as<float>() + (batch * score_dims[1] + c) * count;
      heap.clear();
      kept.clear();
      for (int64_t i = 0; i < count; ++i) {
        if (static_cast<double>(score[i]) >= score_threshold) heap.push_back({score[i], i});
      }
      std::make_heap(heap.begin(), heap.end());
      for (; !heap.empty() && kept.count < limit; heap.pop_back()) {
        std::pop_heap(heap.begin(), heap.end());
        const int64_t i = heap.back().index;
        const float p = boxes[4 * i], q = boxes[4 * i + 1], r = boxes[4 * i + 2], s = boxes[4 * i + 3];
        const float left = centered ? p - r / 2 : std::min(q, s), right = centered ? p + r / 2 : std::max(q, s);
        const float top = centered ? q - s / 2 : std::min(p, r), bottom = centered ? q + s / 2 : std::max(p, r);
        if (kept.hide(left, right, top, bottom, iou_threshold)) continue;
        kept.add(left, right, top, bottom);
        selected.insert(selected.end(), {batch, c, i});
      }
    }
  }
  const Tensor& y = ctx.output(0, DType::Int64, {std::ssize(selected) / 3, 3});
  std::copy(selected.begin(), selected.end(), y.as<int64_t>());
}

}  // namespace neo
