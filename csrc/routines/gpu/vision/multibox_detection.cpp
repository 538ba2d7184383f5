#include "routines/gpu/sort/keys.h"
#include "routines/gpu/vision/programs.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

constexpr int kDetectionThreads = 64;

class MultiboxDetection final : public Program {
 public:
  MultiboxDetection(const MultiboxDetectionChoice& choice, const NmsSchedule& schedule)
      : choice_(choice),
        sort_(DType::Int32, schedule.sort, kernels_),
        suppression_(choice.nms_threshold, choice.by_class, schedule.suppression, kernels_),
        own_(static_cast<int>(kernels_.size())) {
    kernels_.push_back(decode_kernel());
    kernels_.push_back(rows_kernel());
  }

  const std::vector<Kernel>& kernels() const override { return kernels_; }

  Launches launches(std::span<const Dims> shapes) const override {
    const int64_t images = shapes[0][0], classes = shapes[0][1], anchors = shapes[0][2], rows = images * anchors;
    const int64_t most = choice_.top_k < 0 ? anchors : std::min(choice_.top_k, anchors);
    const int64_t limit = std::max<int64_t>(most, 1);
    Launches out;
    if (rows == 0) return out;
    out.temporaries = {rows * 4, rows * 16, rows * 4, rows * 4};
    KernelLaunch decode{own_,
                        {rows, anchors, classes, rows * classes, choice_.background + 1, double{choice_.threshold}}};
    for (const float v : choice_.variances) decode.arguments.emplace_back(double{v});
    decode.arguments.insert(decode.arguments.end(), {Operand{0}, Operand{1}, Operand{2}, Temporary{0}, Temporary{1},
                                                     Temporary{2}, Temporary{3}});
    out.launches.push_back(std::move(decode));
    const int order = sort_.append(out, 0, images, anchors, limit);
    const Suppression::Kept kept = suppression_.append(out, {.segments = images,
                                                             .boxes = anchors,
                                                             .considered = limit,
                                                             .limit = limit,
                                                             .keys = sort_.sorted_keys(order),
                                                             .order = order,
                                                             .corners = 1,
                                                             .classes = 2});
    out.launches.push_back({own_ + 1,
                            {rows, anchors, images, limit, most, Temporary{kept.counts}, Temporary{kept.indices},
                             Temporary{1}, Temporary{2}, Temporary{3}, Operand{3}}});
    return out;
  }

 private:
  // The best class of each anchor, its score, and the box.
  Kernel decode_kernel() const {
    Builder b(std::string("multibox_decode") + (choice_.clip ? "_clip" : ""));
    const Expr rows = b.size("rows", 1, kMaxElements / 4), anchors = b.size("anchors", 1, kMaxElements / 4);
    const Expr classes = b.size("classes", 0, kMaxElements), n = b.size("n", 0, kMaxElements);
    const Expr background = b.size("after_background", 0, kMaxElements);  // 0: there is none
    const Expr threshold = b.number("threshold", DType::Float32);
    Expr variance[4];
    for (int i = 0; i < 4; ++i) variance[i] = b.number("variance" + std::to_string(i), DType::Float32);
    const Array scores = b.input("scores", DType::Float32, n), offsets = b.input("offsets", DType::Float32, rows * 4);
    const Array boxes = b.input("boxes", DType::Float32, anchors * 4), keys = b.output("keys", DType::Int32, rows);
    const Array corners = b.output("corners", DType::Float32, rows * 4);
    const Array ids = b.output("ids", DType::Float32, rows), best_out = b.output("best", DType::Float32, rows);
    const Expr row = b.let("row", b.group(0, "group", ceildiv(rows, kDetectionThreads)) * kDetectionThreads +
                                      b.local(0, "thread", kDetectionThreads));
    b.when(row < rows, [&] {
      const Expr anchor = b.let("anchor", row % anchors);
      const Array best = b.registers("best_score", kFloat, 1), id = b.registers("id", kInt, 1);
      best[0] = 0.0f;
      id[0] = -1;
      b.loop("c", 0, classes, [&](Expr c) {
        const Expr from = unproven(b, "from", (row / anchors * classes + c) * anchors + anchor);
        b.when(from >= 0 && from < n && c + 1 != background, [&] {
          const Expr score = b.let("score", scores[from]), so_far = b.let("so_far", best[0]);
          b.when(id[0] < 0 || score > so_far || so_far != so_far, [&] {
            best[0] = score;
            id[0] = select(background > 0 && c >= background, c - 1, c);
          });
        });
      });
      const Expr score = b.let("best", best[0]);
      keys[row] = select(id[0] >= 0 && score > threshold, ordered_key(score, true), Expr(static_cast<int>(kLastKey)));
      best_out[row] = score;
      ids[row] = cast(id[0], DType::Float32);
      within(b, anchor, anchors, [&] {
        for (int a = 0; a < 2; ++a) {
          const Expr low = b.let("low", boxes[anchor * 4 + a]), high = b.let("high", boxes[anchor * 4 + (a + 2)]);
          const Expr size = b.let("size", high - low), center = (low + high) * 0.5f;
          const Expr middle = b.let("middle", fma(offsets[row * 4 + a] * variance[a], size, center));
          const Expr half =
              b.let("half", make(kernel::Op::Exp, {offsets[row * 4 + (a + 2)] * variance[a + 2]}) * size * 0.5f);
          const auto clipped = [&](const Expr& at) { return choice_.clip ? min(max(at, 0.0f), 1.0f) : at; };
          corners[row * 4 + a] = clipped(middle - half);
          corners[row * 4 + (a + 2)] = clipped(middle + half);
        }
      });
    });
    return b.finish();
  }

  static Kernel rows_kernel() {
    Builder b("multibox_rows");
    const Expr rows = b.size("rows", 1, kMaxElements / 6), anchors = b.size("anchors", 1, kMaxElements);
    const Expr images = b.size("images", 1, kMaxElements), limit = b.size("limit", 1, kMaxElements);
    const Expr most = b.size("most", 0, kMaxElements);
    const Array counts = b.input("counts", DType::Int32, images);
    const Array indices = b.input("indices", DType::Int32, images * limit);
    const Array corners = b.input("corners", DType::Float32, rows * 4);
    const Array ids = b.input("ids", DType::Float32, rows), best = b.input("best", DType::Float32, rows);
    const Array y = b.output("y", DType::Float32, rows * 6);
    const Expr at = b.let("at", b.group(0, "group", ceildiv(rows, kDetectionThreads)) * kDetectionThreads +
                                    b.local(0, "thread", kDetectionThreads));
    b.when(at < rows, [&] {
      const Expr image = b.let("image", at / anchors), row = b.let("row", at % anchors);
      const Array values = b.registers("values", kFloat, 6);
      for (int k = 0; k < 6; ++k) values[k] = -1.0f;
      b.when(image >= 0 && image < images && row >= 0 && row < limit, [&] {
        b.when(row < min(Expr(counts[image]), most), [&] {
          const Expr from = unproven(b, "from", image * anchors + indices[image * limit + row]);
          within(b, from, rows, [&] {
            values[0] = ids[from];
            values[1] = best[from];
            for (int k = 0; k < 4; ++k) values[k + 2] = corners[from * 4 + k];
          });
        });
      });
      for (int k = 0; k < 6; ++k) y[at * 6 + k] = values[k];
    });
    return b.finish();
  }

  MultiboxDetectionChoice choice_;
  std::vector<Kernel> kernels_;
  Argsort sort_;
  Suppression suppression_;
  int own_;
};

}  // namespace

std::unique_ptr<Program> make_multibox_detection(const MultiboxDetectionChoice& choice, const NmsSchedule& schedule) {
  return std::make_unique<MultiboxDetection>(choice, schedule);
}

}  // namespace neo::gpu
