#include "routines/gpu/sort/keys.h"
#include "routines/gpu/vision/programs.h"

namespace neo::gpu {

using namespace kernel;  // NOLINT: kernels read like the algorithm

namespace {

constexpr int kBoxNmsThreads = 64;

class BoxNms final : public Program {
 public:
  BoxNms(const BoxNmsChoice& choice, const NmsSchedule& schedule)
      : choice_(choice),
        sort_(DType::Int32, schedule.sort, kernels_),
        suppression_(choice.overlap_threshold, choice.by_class, schedule.suppression, kernels_),
        own_(static_cast<int>(kernels_.size())) {
    kernels_.push_back(read_kernel());
    kernels_.push_back(rows_kernel());
  }

  const std::vector<Kernel>& kernels() const override { return kernels_; }

  Launches launches(std::span<const Dims> shapes) const override {
    const int64_t images = shapes[0][0], boxes = shapes[0][1], width = shapes[0][2], rows = images * boxes;
    const int64_t most = choice_.top_k < 0 ? boxes : std::min(choice_.top_k, boxes);
    Launches out;
    if (rows * width == 0) return out;
    out.temporaries = {rows * 4, rows * 16, rows * 4};
    KernelLaunch read{
        own_,
        {rows, width, choice_.coordinates, choice_.score, std::max<int64_t>(choice_.id, 0),
         double{choice_.valid_threshold}, double{choice_.background}, Operand{0}, Temporary{0}, Temporary{1}}};
    if (choice_.by_class) read.arguments.emplace_back(Temporary{2});
    out.launches.push_back(std::move(read));
    const int order = sort_.append(out, 0, images, boxes, std::max<int64_t>(most, 1));
    const Suppression::Kept kept = suppression_.append(out, {.segments = images,
                                                             .boxes = boxes,
                                                             .considered = std::max<int64_t>(most, 1),
                                                             .limit = std::max<int64_t>(most, 1),
                                                             .keys = sort_.sorted_keys(order),
                                                             .order = order,
                                                             .corners = 1,
                                                             .classes = 2});
    out.launches.push_back({own_ + 1,
                            {rows * width, width, boxes, images, std::max<int64_t>(most, 1), most,
                             Temporary{kept.counts}, Temporary{kept.indices}, Operand{0}, Operand{1}}});
    return out;
  }

 private:
  Kernel read_kernel() const {
    Builder b(std::string("box_nms_read") + (choice_.id >= 0 ? choice_.by_class ? "_by_class" : "_id" : "") +
              (choice_.centered ? "_centered" : ""));
    const Expr rows = b.size("rows", 1, kMaxElements / 4), width = b.size("width", 1, kMaxElements);
    const Expr coordinates = b.size("coordinates", 0, kMaxElements), score_at = b.size("score_at", 0, kMaxElements);
    const Expr id_at = b.size("id_at", 0, kMaxElements);
    const Expr threshold = b.number("valid_threshold", DType::Float32),
               background = b.number("background", DType::Float32);
    const Array data = b.input("data", DType::Float32, rows * width);
    const Array keys = b.output("keys", DType::Int32, rows), corners = b.output("corners", DType::Float32, rows * 4);
    std::vector<Array> classes;
    if (choice_.by_class) classes.push_back(b.output("classes", DType::Float32, rows));
    const Expr row = b.let("row", b.group(0, "group", ceildiv(rows, kBoxNmsThreads)) * kBoxNmsThreads +
                                      b.local(0, "thread", kBoxNmsThreads));
    b.when(row < rows, [&] {
      const auto read = [&](const char* name, const Expr& column) {
        const Array held = b.registers(std::string(name) + "_read", kFloat, 1);
        held[0] = 0.0f;
        b.when(column < width, [&] { held[0] = data[row * width + column]; });
        return b.let(name, held[0]);
      };
      const Expr score = read("score", score_at);
      Expr wanted = score > threshold;
      if (choice_.id >= 0) {
        const Expr id = read("id", id_at);
        wanted = wanted && id != background;
        if (choice_.by_class) classes[0][row] = id;
      }
      keys[row] = select(wanted, ordered_key(score, true), Expr(static_cast<int>(kLastKey)));
      Expr at[4];
      for (int k = 0; k < 4; ++k) at[k] = read("at", coordinates + k);
      if (choice_.centered) {
        const Expr half_width = at[2] * 0.5f, half_height = at[3] * 0.5f;
        corners[row * 4] = at[0] - half_width;
        corners[row * 4 + 1] = at[1] - half_height;
        corners[row * 4 + 2] = at[0] + half_width;
        corners[row * 4 + 3] = at[1] + half_height;
      } else {
        for (int k = 0; k < 4; ++k) corners[row * 4 + k] = at[k];
      }
    });
    return b.finish();
  }

  static Kernel rows_kernel() {
    Builder b("box_nms_rows");
    const Expr n = b.size("n", 1, kMaxElements), width = b.size("width", 1, kMaxElements);
    const Expr boxes = b.size("boxes", 1, kMaxElements), images = b.size("images", 1, kMaxElements);
    const Expr limit = b.size("limit", 1, kMaxElements), most = b.size("most", 0, kMaxElements);
    const Array counts = b.input("counts", DType::Int32, images);
    const Array indices = b.input("indices", DType::Int32, images * limit);
    const Array data = b.input("data", DType::Float32, n), y = b.output("y", DType::Float32, n);
    const Expr at = b.let(
        "at", b.group(0, "group", ceildiv(n, kBoxNmsThreads)) * kBoxNmsThreads + b.local(0, "thread", kBoxNmsThreads));
    b.when(at < n, [&] {
      const Expr row = b.let("row", at / width % boxes), image = unproven(b, "image", at / width / boxes);
      const Array value = b.registers("value", kFloat, 1);
      value[0] = -1.0f;
      b.when(image >= 0 && image < images && row >= 0 && row < limit, [&] {
        b.when(row < min(Expr(counts[image]), most), [&] {
          const Expr from = unproven(b, "from", (image * boxes + indices[image * limit + row]) * width + at % width);
          within(b, from, n, [&] { value[0] = data[from]; });
        });
      });
      y[at] = value[0];
    });
    return b.finish();
  }

  BoxNmsChoice choice_;
  std::vector<Kernel> kernels_;
  Argsort sort_;
  Suppression suppression_;
  int own_;
};

}  // namespace

std::unique_ptr<Program> make_box_nms(const BoxNmsChoice& choice, const NmsSchedule& schedule) {
  return std::make_unique<BoxNms>(choice, schedule);
}

}  // namespace neo::gpu
