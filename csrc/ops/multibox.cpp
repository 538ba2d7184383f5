#include <cmath>
#include <numeric>

#include "base/budget.h"
#include "ops/boxes.h"
#include "ops/elements.h"
#include "ops/families.h"
#include "ops/movement.h"
#include "ops/sizes.h"

namespace neo {

// Heads of single-shot detectors, operators of the domain neo (docs/multibox.md says what they compute).

namespace {

// As float attributes hold them, those that are left out too.
std::vector<double> numbers(const Node& node, std::string_view key, size_t count, std::vector<double> fallback) {
  auto found = node.floats_attr(key, std::move(fallback));
  NEO_CHECK(count == 0 ? !found.empty() : found.size() == count, Model, node.op, key, " must have ",
            count == 0 ? std::string("at least one number") : str(count, " numbers"), ". Got ", found.size(), " - at ",
            node.place());
  std::transform(found.begin(), found.end(), found.begin(), as_float);
  return found;
}

std::vector<double> variances(const Node& node) {
  return numbers(node, "variances", 4, {0.1, 0.1, 0.2, 0.2});
}

// Positions in falling order of score, of equal ones the lower first, without what is not above `threshold`.
std::vector<int64_t> ranked(std::span<const float> scores, float threshold, int64_t most) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > threshold) order.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  if (most >= 0 && static_cast<int64_t>(order.size()) > most) order.resize(static_cast<size_t>(most));
  return order;
}

// Those of `order` that none before them hides.
std::vector<int64_t> not_hidden(const std::vector<int64_t>& order, std::span<const Box> boxes,
                                std::span<const float> classes, float threshold) {
  std::vector<int64_t> kept;
  for (const int64_t i : order) {
    checkpoint();
    const auto at = static_cast<size_t>(i);
    const bool hidden = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
      const auto other = static_cast<size_t>(k);
      return (classes.empty() || classes[at] == classes[other]) &&
             intersection_over_union(boxes[at], boxes[other]) > threshold;
    });
    if (!hidden) kept.push_back(i);
  }
  return kept;
}

// BoxNms

bool is_centered(const Node& node) {
  const std::string format = node.string_attr("in_format", "corner");
  NEO_CHECK(format == "corner" || format == "center", Model, node.op, "in_format must be corner or center. Got \"",
            format, "\" - at ", node.place());
  return format == "center";
}

void infer_box_nms(InferContext& ctx) {
  is_centered(ctx.node());
  check_dtype(ctx, 0, DTypeClass::Float);
  ctx.check_rank(0, 3);
  if (ctx.ranked(0)) {
    const int64_t needed =
        std::max({ctx.node().int_attr("coord_start", 2) + 4, ctx.node().int_attr("score_index", 1) + 1,
                  ctx.node().int_attr("id_index", -1) + 1});
    ctx.check(ctx.node().int_attr("coord_start", 2) >= 0 && ctx.node().int_attr("score_index", 1) >= 0,
              "coord_start and score_index must not be negative");
    ctx.require_less_equal(needed, ctx.shape(0)[2], "a row must hold score, class and coordinates");
  }
  infer_same(ctx);
}

void reference_box_nms(ReferenceContext& ctx) {
  const Node& node = ctx.node();
  const Dims dims = ctx.input(0).dims();
  const int64_t coordinates = node.int_attr("coord_start", 2), score = node.int_attr("score_index", 1);
  const int64_t id = node.int_attr("id_index", -1), background = node.int_attr("background_id", -1);
  ctx.check(dims.size() == 3 && std::max({coordinates + 4, score + 1, id + 1}) <= dims[2],
            str("a row must hold score, class and coordinates. Got ", to_string(dims)));
  const auto rows = ctx.doubles(0);
  const bool centered = is_centered(node);
  const bool by_class = id >= 0 && node.int_attr("force_suppress", 0) == 0;
  auto result = make_scratch<double>(static_cast<int64_t>(rows.size()), -1);
  for (int64_t image = 0; image < dims[0]; ++image) {
    const double* first = rows.data() + image * dims[1] * dims[2];
    double* to = result.data() + image * dims[1] * dims[2];
    std::vector<Box> boxes;
    std::vector<float> scores, classes;
    for (int64_t i = 0; i < dims[1]; ++i) {
      const double* row = first + i * dims[2];
      const auto at = [&](int64_t k) { return static_cast<float>(row[coordinates + k]); };
      boxes.push_back(centered ? Box{at(0) - at(2) / 2, at(0) + at(2) / 2, at(1) - at(3) / 2, at(1) + at(3) / 2}
                               : Box{at(0), at(2), at(1), at(3)});
      const bool is_background = id >= 0 && row[id] == static_cast<double>(background);
      scores.push_back(is_background ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(row[score]));
      if (by_class) classes.push_back(static_cast<float>(row[id]));
    }
    const auto order =
        ranked(scores, static_cast<float>(node.float_attr("valid_thresh", 0)), node.int_attr("topk", -1));
    for (const int64_t i :
         not_hidden(order, boxes, classes, static_cast<float>(node.float_attr("overlap_thresh", 0.5)))) {
      to = std::copy_n(first + i * dims[2], dims[2], to);
    }
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), dims), result);
}

// MultiboxPrior

void infer_multibox_prior(InferContext& ctx) {
  const auto sizes = numbers(ctx.node(), "sizes", 0, {1}), ratios = numbers(ctx.node(), "ratios", 0, {1});
  numbers(ctx.node(), "steps", 2, {-1, -1});
  numbers(ctx.node(), "offsets", 2, {0.5, 0.5});
  check_dtype(ctx, 0, DTypeClass::Float);
  ctx.check_rank(0, 4);
  const auto each = static_cast<int64_t>(sizes.size() + ratios.size() - 1);
  const Dim count = ctx.ranked(0) ? ctx.shape(0)[2] * ctx.shape(0)[3] * Dim(each) : ctx.fresh("anchors");
  ctx.set_output(0, ctx.dtype(0), Shape({1, count, 4}));
}

void reference_multibox_prior(ReferenceContext& ctx) {
  const Node& node = ctx.node();
  const Dims& dims = ctx.input(0).dims();
  ctx.check(dims.size() == 4, str("the feature map must have four axes. Got ", to_string(dims)));
  const auto sizes = numbers(node, "sizes", 0, {1}), ratios = numbers(node, "ratios", 0, {1});
  const auto steps = numbers(node, "steps", 2, {-1, -1}), offsets = numbers(node, "offsets", 2, {0.5, 0.5});
  const auto height = static_cast<double>(dims[2]), width = static_cast<double>(dims[3]);
  const double step_y = steps[0] > 0 ? steps[0] : 1 / height, step_x = steps[1] > 0 ? steps[1] : 1 / width;
  const bool clip = node.int_attr("clip", 0) != 0;
  std::vector<std::pair<double, double>> halves;  // of width and height
  const auto add = [&](double size, double ratio) {
    halves.emplace_back(size * height / width * std::sqrt(ratio) / 2, size / std::sqrt(ratio) / 2);
  };
  for (const double size : sizes) add(size, ratios[0]);
  for (size_t i = 1; i < ratios.size(); ++i) add(sizes[0], ratios[i]);
  const auto each = static_cast<int64_t>(halves.size());
  auto result = make_scratch<double>(dims[2] * dims[3] * each * 4);
  auto to = result.begin();
  for (int64_t y = 0; y < dims[2]; ++y) {
    for (int64_t x = 0; x < dims[3]; ++x) {
      checkpoint();
      const double center_y = (static_cast<double>(y) + offsets[0]) * step_y;
      const double center_x = (static_cast<double>(x) + offsets[1]) * step_x;
      for (const auto& [half_width, half_height] : halves) {
        for (const double at :
             {center_x - half_width, center_y - half_height, center_x + half_width, center_y + half_height}) {
          *to++ = clip ? std::clamp(at, 0.0, 1.0) : at;
        }
      }
    }
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), {1, dims[2] * dims[3] * each, 4}), result);
}

// MultiboxTarget

void infer_multibox_target(InferContext& ctx) {
  variances(ctx.node());
  for (int i = 0; i < 3; ++i) {
    check_dtype(ctx, i, DTypeClass::Float);
    ctx.check_rank(i, 3);
  }
  const Dim anchors = ctx.ranked(0) ? ctx.shape(0)[1] : ctx.fresh("anchors");
  if (ctx.ranked(0)) ctx.require_equal(ctx.shape(0)[2], 4, "an anchor must have four coordinates");
  if (ctx.ranked(1)) ctx.require_less_equal(5, ctx.shape(1)[2], "a label must be a class and four coordinates");
  const Dim images = ctx.ranked(1) ? ctx.shape(1)[0] : ctx.fresh("images");
  if (ctx.ranked(2)) {
    ctx.require_equal(ctx.shape(2)[0], images, "labels and scores must have one number of images");
    ctx.require_equal(ctx.shape(2)[2], anchors, "anchors and scores must have one number of anchors");
  }
  ctx.set_output(0, ctx.dtype(0), Shape({images, anchors * Dim(4)}));
  ctx.set_output(1, ctx.dtype(0), Shape({images, anchors * Dim(4)}));
  ctx.set_output(2, ctx.dtype(0), Shape({images, anchors}));
}

enum class Match : uint8_t { Open, Negative, Positive };

// Which label each anchor stands for.
struct Matches {
  std::vector<Match> kinds;
  std::vector<int64_t> labels;
  std::vector<float> overlaps;  // with the best label of those that are not matched one to one
};

Matches match_anchors(std::span<const Box> anchors, std::span<const Box> labels, float threshold) {
  const size_t n = anchors.size(), m = labels.size();
  Matches out{std::vector<Match>(n, Match::Open), std::vector<int64_t>(n, -1), std::vector<float>(n, 0)};
  auto table = make_scratch<float>(static_cast<int64_t>(n * m));
  for (size_t j = 0; j < n; ++j) {
    checkpoint();
    for (size_t k = 0; k < m; ++k) {
      const float overlap = intersection_over_union(anchors[j], labels[k]);
      table[j * m + k] = overlap > 0 ? overlap : 0;
    }
  }
  // Every label gets its best anchor, the best pair first.
  std::vector<bool> done(m, false);
  for (size_t round = 0; round < m; ++round) {
    float best = 1e-6F;
    size_t best_anchor = n, best_label = m;
    for (size_t j = 0; j < n; ++j) {
      checkpoint();
      if (out.kinds[j] == Match::Positive) continue;
      for (size_t k = 0; k < m; ++k) {
        if (done[k] || !(table[j * m + k] > best)) continue;
        best = table[j * m + k];
        best_anchor = j;
        best_label = k;
      }
    }
    if (best_anchor == n) break;
    done[best_label] = true;
    out.kinds[best_anchor] = Match::Positive;
    out.labels[best_anchor] = static_cast<int64_t>(best_label);
  }
  for (size_t j = 0; j < n; ++j) {
    if (out.kinds[j] == Match::Positive) continue;
    for (size_t k = 0; k < m; ++k) {
      if (out.labels[j] >= 0 && !(table[j * m + k] > out.overlaps[j])) continue;
      out.overlaps[j] = table[j * m + k];
      out.labels[j] = static_cast<int64_t>(k);
    }
    if (threshold > 0 && out.overlaps[j] > threshold) out.kinds[j] = Match::Positive;
  }
  return out;
}

// The negatives: all that is left, or the anchors that take the most background for something else.
void mine_negatives(const Node& node, Matches& matches, const double* scores, int64_t classes) {
  const auto n = static_cast<int64_t>(matches.kinds.size());
  const double ratio = node.float_attr("negative_mining_ratio", -1);
  if (!(ratio > 0)) {
    std::replace(matches.kinds.begin(), matches.kinds.end(), Match::Open, Match::Negative);
    return;
  }
  const auto threshold = static_cast<float>(node.float_attr("negative_mining_thresh", 0.5));
  const auto positive = std::count(matches.kinds.begin(), matches.kinds.end(), Match::Positive);
  const int64_t wanted =
      std::max(node.int_attr("minimum_negative_samples", 0),
               static_cast<int64_t>(std::min(static_cast<double>(n), static_cast<double>(positive) * ratio)));
  std::vector<float> hardness(static_cast<size_t>(n), std::numeric_limits<float>::quiet_NaN());
  for (int64_t j = 0; j < n; ++j) {
    const auto at = static_cast<size_t>(j);
    if (matches.kinds[at] == Match::Positive || !(matches.overlaps[at] < threshold)) continue;
    double largest = scores[j], sum = 0;
    for (int64_t c = 1; c < classes; ++c) largest = std::max(largest, scores[c * n + j]);
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(scores[c * n + j] - largest);
    hardness[at] = static_cast<float>(-std::exp(scores[j] - largest) / sum);
  }
  for (const int64_t j : ranked(hardness, -std::numeric_limits<float>::infinity(), wanted)) {
    matches.kinds[static_cast<size_t>(j)] = Match::Negative;
  }
}

void reference_multibox_target(ReferenceContext& ctx) {
  const Node& node = ctx.node();
  const Dims &anchor_dims = ctx.input(0).dims(), &label_dims = ctx.input(1).dims(), &dims = ctx.input(2).dims();
  ctx.check(anchor_dims.size() == 3 && label_dims.size() == 3 && dims.size() == 3 && anchor_dims[2] == 4 &&
                label_dims[2] >= 5 && dims[0] == label_dims[0] && dims[2] == anchor_dims[1],
            str("anchors, labels and scores must fit. Got ", to_string(anchor_dims), ", ", to_string(label_dims),
                " and ", to_string(dims)));
  const auto scale = variances(node);
  const auto anchors = ctx.doubles(0), labels = ctx.doubles(1), scores = ctx.doubles(2);
  const int64_t n = dims[2], width = label_dims[2];
  const double ignored = node.float_attr("ignore_label", -1);
  const auto corners = [](const double* at) {
    return Box{static_cast<float>(at[0]), static_cast<float>(at[2]), static_cast<float>(at[1]),
               static_cast<float>(at[3])};
  };
  std::vector<Box> boxes;
  for (int64_t j = 0; j < n; ++j) boxes.push_back(corners(anchors.data() + j * 4));
  auto offsets = make_scratch<double>(dims[0] * n * 4), mask = make_scratch<double>(dims[0] * n * 4);
  auto targets = make_scratch<double>(dims[0] * n, ignored);
  for (int64_t image = 0; image < dims[0]; ++image) {
    const double* first = labels.data() + image * label_dims[1] * width;
    std::vector<Box> truth;
    for (int64_t k = 0; k < label_dims[1] && first[k * width] != -1; ++k)
      truth.push_back(corners(first + k * width + 1));
    if (truth.empty()) continue;
    Matches matches = match_anchors(boxes, truth, static_cast<float>(node.float_attr("overlap_threshold", 0.5)));
    mine_negatives(node, matches, scores.data() + image * dims[1] * n, dims[1]);
    for (int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<size_t>(image * n + j);
      if (matches.kinds[static_cast<size_t>(j)] == Match::Open) continue;
      targets[at] = 0;
      if (matches.kinds[static_cast<size_t>(j)] == Match::Negative) continue;
      const double* label = first + matches.labels[static_cast<size_t>(j)] * width;
      const double* anchor = anchors.data() + j * 4;
      targets[at] = label[0] + 1;
      for (size_t a = 0; a < 2; ++a) {
        const double size = anchor[a + 2] - anchor[a], target = label[a + 3] - label[a + 1];
        const double shift = (label[a + 1] + label[a + 3] - anchor[a] - anchor[a + 2]) / 2;
        offsets[at * 4 + a] = shift / size / scale[a];
        offsets[at * 4 + a + 2] = std::log(target / size) / scale[a + 2];
      }
      std::fill_n(mask.begin() + static_cast<int64_t>(at) * 4, 4, 1.0);
    }
  }
  const DType dtype = ctx.input(0).dtype();
  if (ctx.has_output(0)) store_doubles(ctx.output(0, dtype, {dims[0], n * 4}), offsets);
  if (ctx.output_count() > 1 && ctx.has_output(1)) store_doubles(ctx.output(1, dtype, {dims[0], n * 4}), mask);
  if (ctx.output_count() > 2 && ctx.has_output(2)) store_doubles(ctx.output(2, dtype, {dims[0], n}), targets);
}

// MultiboxDetection

void infer_multibox_detection(InferContext& ctx) {
  variances(ctx.node());
  check_dtype(ctx, 0, DTypeClass::Float);
  ctx.check_rank(0, 3);
  ctx.check_rank(1, 2);
  ctx.check_rank(2, 3);
  const Dim images = ctx.ranked(0) ? ctx.shape(0)[0] : ctx.fresh("images");
  const Dim anchors = ctx.ranked(0) ? ctx.shape(0)[2] : ctx.fresh("anchors");
  if (ctx.ranked(1)) {
    ctx.require_equal(ctx.shape(1)[0], images, "scores and offsets must have one number of images");
    ctx.require_equal(ctx.shape(1)[1], anchors * Dim(4), "offsets must be four for each anchor");
  }
  if (ctx.ranked(2)) {
    ctx.require_equal(ctx.shape(2)[0], 1, "anchors must be for all images");
    ctx.require_equal(ctx.shape(2)[1], anchors, "anchors and scores must have one number of anchors");
    ctx.require_equal(ctx.shape(2)[2], 4, "an anchor must have four coordinates");
  }
  ctx.set_output(0, ctx.dtype(0), Shape({images, anchors, 6}));
}

void reference_multibox_detection(ReferenceContext& ctx) {
  const Node& node = ctx.node();
  const Dims &dims = ctx.input(0).dims(), &offset_dims = ctx.input(1).dims(), &anchor_dims = ctx.input(2).dims();
  ctx.check(dims.size() == 3 && offset_dims == Dims{dims[0], dims[2] * 4} && anchor_dims == Dims{1, dims[2], 4},
            str("scores, offsets and anchors must fit. Got ", to_string(dims), ", ", to_string(offset_dims), " and ",
                to_string(anchor_dims)));
  const auto scores = ctx.doubles(0), offsets = ctx.doubles(1), anchors = ctx.doubles(2);
  const auto scale = variances(node);
  const int64_t classes = dims[1], n = dims[2], background = node.int_attr("background_id", 0);
  const bool clip = node.int_attr("clip", 1) != 0, by_class = node.int_attr("force_suppress", 0) == 0;
  auto result = make_scratch<double>(dims[0] * n * 6, -1);
  for (int64_t image = 0; image < dims[0]; ++image) {
    std::vector<Box> boxes;
    std::vector<float> best(static_cast<size_t>(n), std::numeric_limits<float>::quiet_NaN()), ids(best.size());
    for (int64_t j = 0; j < n; ++j) {
      float& score = best[static_cast<size_t>(j)];
      for (int64_t c = 0; c < classes; ++c) {
        const auto value = static_cast<float>(scores[static_cast<size_t>((image * classes + c) * n + j)]);
        if (c == background || !(value > score || std::isnan(score))) continue;
        score = value;
        ids[static_cast<size_t>(j)] = static_cast<float>(background >= 0 && c > background ? c - 1 : c);
      }
      float sides[4];
      for (size_t a = 0; a < 2; ++a) {
        const double *anchor = anchors.data() + j * 4, *offset = offsets.data() + (image * n + j) * 4;
        const double size = anchor[a + 2] - anchor[a], center = (anchor[a] + anchor[a + 2]) / 2;
        const double middle = offset[a] * scale[a] * size + center;
        const double half = std::exp(offset[a + 2] * scale[a + 2]) * size / 2;
        sides[a] = static_cast<float>(clip ? std::clamp(middle - half, 0.0, 1.0) : middle - half);
        sides[a + 2] = static_cast<float>(clip ? std::clamp(middle + half, 0.0, 1.0) : middle + half);
      }
      boxes.push_back({sides[0], sides[2], sides[1], sides[3]});
    }
    const auto order =
        ranked(best, static_cast<float>(node.float_attr("threshold", 0.01)), node.int_attr("nms_topk", -1));
    double* to = result.data() + image * n * 6;
    for (const int64_t i : not_hidden(order, boxes, by_class ? std::span<const float>(ids) : std::span<const float>(),
                                      static_cast<float>(node.float_attr("nms_threshold", 0.5)))) {
      const auto at = static_cast<size_t>(i);
      for (const float x : {ids[at], best[at], boxes[at].x_min, boxes[at].y_min, boxes[at].x_max, boxes[at].y_max}) {
        *to++ = x;
      }
    }
  }
  store_doubles(ctx.output(0, ctx.input(0).dtype(), {dims[0], n, 6}), result);
}

}  // namespace

void add_multibox_ops(OpRegistry& ops) {
  ops.add({.name = "neo.BoxNms", .infer = infer_box_nms, .reference = reference_box_nms});
  ops.add({.name = "neo.MultiboxPrior", .infer = infer_multibox_prior, .reference = reference_multibox_prior});
  ops.add({.name = "neo.MultiboxTarget",
           .min_inputs = 3,
           .max_inputs = 3,
           .max_outputs = 3,
           .infer = infer_multibox_target,
           .reference = reference_multibox_target});
  ops.add({.name = "neo.MultiboxDetection",
           .min_inputs = 3,
           .max_inputs = 3,
           .infer = infer_multibox_detection,
           .reference = reference_multibox_detection});
}

}  // namespace neo
