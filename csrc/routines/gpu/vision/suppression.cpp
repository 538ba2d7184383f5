#include "routines/gpu/vision/suppression.h"

#include "base/check.h"
#include "base/function_ref.h"
#include "routines/gpu/sort/keys.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

constexpr int kSuppressionThreads = 64, kWord = 32;
constexpr ValueType kBits{DType::UInt32, 1};

Expr bit(const Expr& place) {
  return integer(1, kBits) << cast(place, DType::UInt32);
}

// The kept boxes, in planes of `limit` for each segment.
struct KeptArrays {
  std::vector<Array> planes;  // x0 y0 x1 y1, class

  BoxExpr box(const Expr& at) const { return {planes[0][at], planes[1][at], planes[2][at], planes[3][at]}; }
};

struct Parameters {
  Expr segments, per_image, image_boxes, boxes, limit, chunk, first, considered;
  Overlap::Numbers numbers;

  Parameters(Builder& b, const Overlap& overlap)
      : segments(b.size("segments", 1, kMaxElements)),
        per_image(b.size("per_image", 1, kMaxElements)),
        image_boxes(b.size("image_boxes", 1, kMaxElements / 4)),
        boxes(b.size("boxes", 1, kMaxElements)),
        limit(b.size("limit", 1, kMaxElements)),
        chunk(b.size("chunk", 1, kMaxElements)),
        first(b.size("first", 0, kMaxElements)),
        considered(b.size("considered", 1, kMaxElements)),
        numbers(overlap.declare(b)) {}
};

// Box number `index` of the segment's image.
void read_candidate(Builder& b, const Parameters& p, const Array& corners, const Expr& segment, const Expr& index,
                    const Array& box) {
  const Expr at = unproven(b, "corner", (segment / p.per_image * p.boxes + index) * 4);
  b.when(at >= 0 && at + 3 < p.image_boxes * 4, [&] {
    for (int i = 0; i < 4; ++i) box[i] = corners[at + i];
  });
}

}  // namespace

Suppression::Suppression(float threshold, bool by_class, const SuppressionSchedule& schedule,
                         std::vector<Kernel>& kernels)
    : overlap_(threshold), by_class_(by_class), schedule_(schedule), first_(static_cast<int>(kernels.size())) {
  NEO_ASSERT(schedule.chunk > 0 && schedule.chunk % kSuppressionThreads == 0, "Got ", schedule.chunk);
  kernels.push_back(check_kernel());
  kernels.push_back(resolve_kernel());
}

Kernel Suppression::check_kernel() const {
  Builder b(std::string("nms_check_") + overlap_.suffix() + (by_class_ ? "_by_class" : ""));
  const Parameters p(b, overlap_);
  const Array keys = b.input("keys", DType::Int32, p.segments * p.boxes);
  const Array order = b.input("order", DType::Int32, p.segments * p.boxes);
  const Array corners = b.input("corners", DType::Float32, p.image_boxes * 4);
  const Array counts = b.input("counts", DType::Int32, p.segments);
  KeptArrays kept;
  std::vector<Array> classes;
  for (const char* name : {"kept_x0", "kept_y0", "kept_x1", "kept_y1"}) {
    kept.planes.push_back(b.input(name, DType::Float32, p.segments * p.limit));
  }
  if (by_class_) {
    classes.push_back(b.input("classes", DType::Float32, p.image_boxes));
    kept.planes.push_back(b.input("kept_class", DType::Float32, p.segments * p.limit));
  }
  const Array hidden_out = b.output("hidden", DType::Int32, p.segments * p.chunk);
  const Expr segment = b.group(0, "segment", p.segments),
             block = b.group(1, "block", ceildiv(p.chunk, kSuppressionThreads));
  const Expr inside = b.let("inside", block * kSuppressionThreads + b.local(0, "thread", kSuppressionThreads));
  const Expr i = b.let("i", p.first + inside);
  b.when(inside < p.chunk && i < p.considered && i < p.boxes, [&] {
    const Expr at = segment * p.boxes + i;
    const Expr kept_before = b.let("kept_before", counts[segment]);
    const Expr wanted = b.let("wanted", keys[at] != static_cast<int>(kLastKey) && kept_before < p.limit);
    const Array box = b.registers("box", kFloat, 4), type = b.registers("type", kFloat, 1);
    const Array hidden = b.registers("is_hidden", kInt, 1);
    for (int c = 0; c < 4; ++c) box[c] = 0.0f;
    type[0] = 0.0f;
    hidden[0] = 0;
    const Expr index = b.let("index", order[at]);
    read_candidate(b, p, corners, segment, index, box);
    if (by_class_) {
      const Expr of = unproven(b, "of", segment / p.per_image * p.boxes + index);
      within(b, of, p.image_boxes, [&] { type[0] = classes[0][of]; });
    }
    const BoxExpr mine{b.let("x0", box[0]), b.let("y0", box[1]), b.let("x1", box[2]), b.let("y1", box[3])};
    const Expr size = b.let("size", area(mine)), my_type = b.let("my_type", type[0]);
    b.loop("j", 0, min(select(wanted, kept_before, Expr(0)), p.limit), [&](Expr j) {
      const Expr other = segment * p.limit + j;
      const BoxExpr read = kept.box(other);
      const BoxExpr theirs{b.let("other_x0", read.x0), b.let("other_y0", read.y0), b.let("other_x1", read.x1),
                           b.let("other_y1", read.y1)};
      Expr hides = overlap_.overlaps(b, mine, size, theirs, b.let("other_size", area(theirs)), p.numbers);
      if (by_class_) hides = kept.planes[4][other] == my_type && hides;
      hidden[0] = hidden[0] | select(hides, Expr(1), Expr(0));
    });
    hidden_out[segment * p.chunk + inside] = hidden[0];
  });
  return b.finish();
}

Kernel Suppression::resolve_kernel() const {
  Builder b(std::string("nms_resolve_") + overlap_.suffix() + (by_class_ ? "_by_class" : ""));
  const Parameters p(b, overlap_);
  const Array keys = b.input("keys", DType::Int32, p.segments * p.boxes);
  const Array order = b.input("order", DType::Int32, p.segments * p.boxes);
  const Array corners = b.input("corners", DType::Float32, p.image_boxes * 4);
  const Array hidden = b.input("hidden", DType::Int32, p.segments * p.chunk);
  const Array counts = b.inout("counts", DType::Int32, p.segments);
  const Array indices = b.output("indices", DType::Int32, p.segments * p.limit);
  KeptArrays kept;
  std::vector<Array> classes;
  for (const char* name : {"kept_x0", "kept_y0", "kept_x1", "kept_y1"}) {
    kept.planes.push_back(b.inout(name, DType::Float32, p.segments * p.limit));
  }
  if (by_class_) {
    classes.push_back(b.input("classes", DType::Float32, p.image_boxes));
    kept.planes.push_back(b.inout("kept_class", DType::Float32, p.segments * p.limit));
  }
  const Expr segment = b.group(0, "segment", p.segments), thread = b.local(0, "thread", kSuppressionThreads);
  // The 64 candidates at hand: what they are, which of them overlap those before them, where they are kept.
  const Array tile = b.shared("tile", DType::Float32, 6 * kSuppressionThreads);  // planes: x0 y0 x1 y1 area class
  const Array live = b.shared("live", DType::Int32, kSuppressionThreads),
              hiders = b.shared("hiders", DType::UInt32, 2 * kSuppressionThreads);
  const Array slots = b.shared("slots", DType::Int32, kSuppressionThreads), count = b.shared("count", DType::Int32, 1);
  const Array box = b.registers("box", kFloat, 4), flag = b.registers("flag", kInt, 1);
  const Expr before = b.let("before", select(p.first == 0, Expr(0), counts[segment]));
  b.when(thread == 0, [&] { count[0] = before; });
  const auto overlaps = [&](const BoxExpr& mine, const Expr& size, const Expr& my_type, const BoxExpr& theirs,
                            const Expr& their_size, FunctionRef<Expr()> their_type) {
    const Expr hides = overlap_.overlaps(b, mine, size, theirs, their_size, p.numbers);
    return by_class_ ? their_type() == my_type && hides : hides;
  };
  b.loop("step", 0, ceildiv(p.chunk, kSuppressionThreads), [&](Expr step) {
    b.barrier();
    const Expr inside = b.let("inside", step * kSuppressionThreads + thread), i = b.let("i", p.first + inside);
    const Array index = b.registers("index", kInt, 1), type = b.registers("type", kFloat, 1);
    flag[0] = 0;
    index[0] = 0;
    type[0] = 0.0f;
    for (int c = 0; c < 4; ++c) box[c] = 0.0f;
    b.when(inside < p.chunk && i < p.considered && i < p.boxes, [&] {
      const Expr at = segment * p.boxes + i;
      const Array seen = b.registers("seen", kInt, 1);
      seen[0] = 0;
      b.when(p.first != 0, [&] { seen[0] = hidden[segment * p.chunk + inside]; });
      flag[0] = select(keys[at] != static_cast<int>(kLastKey) && seen[0] == 0 && count[0] < p.limit, Expr(1), Expr(0));
      index[0] = order[at];
    });
    b.when(flag[0] != 0, [&] {
      read_candidate(b, p, corners, segment, index[0], box);
      if (!by_class_) return;
      const Expr of = unproven(b, "of", segment / p.per_image * p.boxes + index[0]);
      within(b, of, p.image_boxes, [&] { type[0] = classes[0][of]; });
    });
    const BoxExpr mine{b.let("x0", box[0]), b.let("y0", box[1]), b.let("x1", box[2]), b.let("y1", box[3])};
    const Expr size = b.let("size", area(mine)), my_type = b.let("my_type", type[0]);
    b.loop("j", before, min(select(flag[0] != 0, count[0], Expr(0)), p.limit), [&](Expr j) {
      b.when(j >= 0, [&] {
        const Expr other = segment * p.limit + j;
        const BoxExpr read = kept.box(other);
        const BoxExpr theirs{b.let("other_x0", read.x0), b.let("other_y0", read.y0), b.let("other_x1", read.x1),
                             b.let("other_y1", read.y1)};
        const Expr hides = overlaps(mine, size, my_type, theirs, b.let("other_size", area(theirs)),
                                    [&] { return Expr(kept.planes[4][other]); });
        flag[0] = flag[0] & select(hides, Expr(0), Expr(1));
      });
    });
    live[thread] = flag[0];
    const Expr planes[] = {mine.x0, mine.y0, mine.x1, mine.y1, size, my_type};
    for (int c = 0; c < 6; ++c) tile[thread + c * kSuppressionThreads] = planes[c];
    b.barrier();
    const Array words = b.registers("words", kBits, 2);
    words[0] = 0;
    words[1] = 0;
    for (int word = 0; word < 2; ++word) {
      const Expr end = min(max(thread - word * kWord, 0), kWord);
      b.loop("u", 0, select(flag[0] != 0, end, Expr(0)), [&](Expr u) {
        b.when(u < kWord, [&] {
          const Expr at = u + word * kWord;
          const auto plane = [&](int c) { return Expr(tile[at + c * kSuppressionThreads]); };
          const BoxExpr theirs{b.let("other_x0", plane(0)), b.let("other_y0", plane(1)), b.let("other_x1", plane(2)),
                               b.let("other_y1", plane(3))};
          const Expr hides =
              overlaps(mine, size, my_type, theirs, b.let("other_size", plane(4)), [&] { return plane(5); });
          words[word] = words[word] | select(hides && live[at] != 0, bit(u), integer(0, kBits));
        });
      });
      hiders[thread + word * kSuppressionThreads] = words[word];
    }
    b.barrier();
    b.when(thread == 0, [&] {
      const Array chosen = b.registers("chosen", kBits, 2), so_far = b.registers("so_far", kInt, 1);
      chosen[0] = 0;
      chosen[1] = 0;
      so_far[0] = count[0];
      for (int word = 0; word < 2; ++word) {
        b.loop("u", 0, kWord, [&](Expr u) {
          const Expr at = u + word * kWord;
          const Expr hiding =
              b.let("hiding", (hiders[at] & chosen[0]) | (hiders[at + kSuppressionThreads] & chosen[1]));
          const Expr keeps = b.let("keeps", live[at] != 0 && hiding == integer(0, kBits) && so_far[0] < p.limit);
          slots[at] = select(keeps, so_far[0], Expr(-1));
          b.when(keeps, [&] {
            chosen[word] = chosen[word] | bit(u);
            so_far[0] = so_far[0] + 1;
          });
        });
      }
      count[0] = so_far[0];
    });
    b.barrier();
    const Expr slot = b.let("slot", slots[thread]);
    within(b, slot, p.limit, [&] {
      const Expr to = segment * p.limit + slot;
      indices[to] = index[0];
      kept.planes[0][to] = mine.x0;
      kept.planes[1][to] = mine.y0;
      kept.planes[2][to] = mine.x1;
      kept.planes[3][to] = mine.y1;
      if (by_class_) kept.planes[4][to] = my_type;
    });
  });
  b.barrier();
  b.when(thread == 0, [&] { counts[segment] = count[0]; });
  return b.finish();
}

Suppression::Kept Suppression::append(Launches& out, const Candidates& c) const {
  NEO_ASSERT(c.segments > 0 && c.boxes > 0 && c.limit > 0 && c.considered > 0, "sizes");
  const auto temporary = [&](int64_t elements) {
    out.temporaries.push_back(elements * 4);
    return static_cast<int>(out.temporaries.size()) - 1;
  };
  const int64_t chunk = std::min<int64_t>(schedule_.chunk, c.considered),
                image_boxes = c.segments / c.per_image * c.boxes;
  const Kept kept{temporary(c.segments), temporary(c.segments * c.limit)};
  const int hidden = temporary(c.segments * chunk);
  std::vector<LaunchArgument> planes;
  for (int i = 0; i < 4; ++i) planes.emplace_back(Temporary{temporary(c.segments * c.limit)});
  if (by_class_) {
    planes.emplace_back(Temporary{c.classes});
    planes.emplace_back(Temporary{temporary(c.segments * c.limit)});
  }
  for (int64_t first = 0; first < c.considered; first += chunk) {
    const std::vector<LaunchArgument> common{c.segments,
                                             c.per_image,
                                             image_boxes,
                                             c.boxes,
                                             c.limit,
                                             chunk,
                                             first,
                                             c.considered,
                                             overlap_.threshold(),
                                             overlap_.half(),
                                             Temporary{c.keys},
                                             Temporary{c.order},
                                             Temporary{c.corners}};
    if (first > 0) {
      KernelLaunch check{first_, common};
      check.arguments.emplace_back(Temporary{kept.counts});
      check.arguments.insert(check.arguments.end(), planes.begin(), planes.end());
      check.arguments.emplace_back(Temporary{hidden});
      out.launches.push_back(std::move(check));
    }
    KernelLaunch resolve{first_ + 1, common};
    resolve.arguments.insert(resolve.arguments.end(),
                             {Temporary{hidden}, Temporary{kept.counts}, Temporary{kept.indices}});
    resolve.arguments.insert(resolve.arguments.end(), planes.begin(), planes.end());
    out.launches.push_back(std::move(resolve));
  }
  return kept;
}

}  // namespace neo::gpu
