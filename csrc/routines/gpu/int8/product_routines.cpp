#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "routines/gpu/int8/codes_product.h"
#include "routines/gpu/int8/codes_window.h"
#include "routines/gpu/remember.h"
#include "routines/gpu/routine.h"
#include "routines/gpu/schedule.h"
#include "routines/gpu/search.h"
#include "routines/gpu/target_model.h"
#include "routines/patterns/int8_columns.h"

namespace neo::gpu {
namespace {

constexpr int64_t kMaxSum = 1 << 30;

// A group's product, and how a schedule has it held.
struct CodesWork {
  Int8Product product;
  CodesProduct form;

  static std::optional<CodesWork> read(const Workload& workload, std::string* why) {
    auto product = read_int8_product(workload, why);
    if (!product) return std::nullopt;
    CodesWork w;
    w.product = std::move(*product);
    const Int8Product& p = w.product;
    const auto reject = [&](const char* reason) {
      if (why) *why = reason;
      return std::nullopt;
    };
    if (p.x_scale || p.x_zero) return reject("the scale or zero point of the input is known to the call alone");
    ConvGeometry& g = w.form.geometry;
    if (const char* reason = read_int8_geometry(p, g)) return reject(reason);
    if (!p.w->constant->is_absent() && !sums_fit(p, kMaxSum)) return reject("a sum may leave int32");
    if (!p.is_conv()) {
      g.ic = p.depth();
      g.oc = p.channels();
      w.form.in_together = w.form.out_together = kAllChannels;
    }
    w.form.x_is_signed = p.x_grid.is_signed();
    w.form.x_zero = p.x_grid.zero;
    w.form.result = codes_result(p);
    w.form.form = CodesForm::of(w.form.result, p.residual != nullptr, p.addend != nullptr, !p.function.nodes.empty());
    return w;
  }

  // The pixels of an image, at the hint.
  int64_t pixels(const Value* v, int64_t channels) const {
    const int64_t count = element_count(v->shape().hint_dims());
    return std::max<int64_t>(1, count / std::max<int64_t>(1, channels * images()));
  }
  int64_t images() const { return product.is_conv() ? std::max<int64_t>(1, product.x->shape().hint_dims()[0]) : 1; }
  int64_t in_plane() const { return pixels(product.x, form.geometry.ic); }
  int64_t plane() const { return pixels(product.y, form.geometry.oc); }

  // The facts that estimates read, as a part of a key.
  std::string key() const {
    const ConvGeometry& g = form.geometry;
    std::string key = str(g.axes, " ", g.groups, " ", g.ic, " ", g.oc, " ", g.taps(), " ", images(), " ", in_plane(),
                          " ", plane(), " ", form.row_sums, form.in_together, " ", form.out_together, form.form.tag());
    for (const int64_t s : g.window.strides) key += str(" ", s);
    return key;
  }

  void hold(const Workload& workload, const Target& target, Candidate& c) const {
    const auto schema = [&](const Value* v, int64_t together) {
      Schema s = device_schema(*v, target);
      if (product.is_conv() && together != 1) s.layout = channels_layout(v->shape().rank(), together);
      return s;
    };
    c.inputs.resize(workload.inputs.size());
    if (product.residual) {
      c.inputs[static_cast<size_t>(workload.input_index(product.residual))] =
          schema(product.residual, form.out_together);
    }
    c.inputs[static_cast<size_t>(workload.input_index(product.x))] = schema(product.x, form.in_together);
    c.outputs.push_back(schema(product.y, form.out_together));
  }

  void find_places(const Candidate& candidate) {
    Places& p = form.places;
    p.x = argument_of(candidate, product.x);
    p.residual = argument_of(candidate, product.residual);
    p.y = static_cast<int>(
        std::count_if(candidate.inputs.begin(), candidate.inputs.end(), [](const auto& s) { return s.has_value(); }));
  }

  // Behind the weights: the columns, and the table of a function.
  void pack_rest(PackedStore& packed, int32_t zero) const {
    const Int8Product& p = product;
    const int64_t channels = form.geometry.oc;
    packed.floats(kCodesColumns * channels, {p.w, p.w_scale, p.w_zero, p.bias, p.addend}, [&](float* to) {
      const Int8Columns columns(p, zero);
      const void* const arrays[kCodesColumns] = {columns.init.data(), columns.scale.data(), columns.add.data(),
                                                 columns.addend.data(), columns.shift.data()};
      for (const void* array : arrays) {
        std::memcpy(to, array, static_cast<size_t>(channels) * sizeof(float));
        to += channels;
      }
    });
    if (p.function.nodes.empty()) return;
    packed.floats(kCodeTable / 4, {},
                  [&](float* to) { fill_code_table(p.function, standard_ops(), reinterpret_cast<uint8_t*>(to)); });
  }
  int64_t packed_bytes(int64_t words) const {
    return 4 * (words + kCodesColumns * form.geometry.oc) + (product.function.nodes.empty() ? 0 : kCodeTable);
  }
};

// Groups of products of codes by constant codes: those of the CPU's routines.
class CodesProductRoutine : public ProgramRoutine {
 public:
  std::vector<std::string_view> roots() const final {
    std::vector<std::string_view> roots = products();
    roots.emplace_back("QuantizeLinear");
    return roots;
  }
  std::vector<Workload> matches(const Node& root, const Graph::Users& users, const Graph& graph) const final {
    return match_int8_products(root, products(), users, graph);
  }
  std::optional<std::string> rejects(const Workload& workload, const Target& target) const final {
    if (auto reason = cannot_hold(workload)) return reason;
    std::string why;
    const auto work = CodesWork::read(workload, &why);
    if (!work) return why;
    const auto all = schedules(*work, target);
    return all.empty() ? std::optional<std::string>(reject(*work)) : std::nullopt;
  }
  std::vector<Candidate> candidates(const Workload& workload, const Target& target, const OpRegistry& ops) const final {
    std::vector<Candidate> all;
    for (const Schedule& s : schedules(*CodesWork::read(workload, nullptr), target))
      all.push_back(candidate(workload, target, ops, s));
    return all;
  }
  Candidate candidate(const Workload& workload, const Target& target, const OpRegistry&,
                      const Schedule& schedule) const final {
    CodesWork work = *CodesWork::read(workload, nullptr);
    apply(schedule, work);
    Candidate c;
    work.hold(workload, target, c);
    c.schedule = schedule;
    const DeviceModel model = model_of(target);
    c.cost.time_us = estimate(profile(work, schedule, target), model).time_us;
    c.cost.packed_bytes = work.packed_bytes(words(work));
    return c;
  }

 protected:
  virtual std::vector<std::string_view> products() const { return {"Conv", "ConvInteger"}; }
  // The best one of each layout; none where reject() says why.
  virtual std::vector<Schedule> schedules(const CodesWork& work, const Target& target) const = 0;
  virtual const char* reject(const CodesWork& work) const = 0;
  virtual Profile profile(const CodesWork& work, const Schedule& schedule, const Target& target) const = 0;
  virtual int64_t words(const CodesWork& work) const = 0;  // of the packed weights

  static void apply(const Schedule& schedule, CodesWork& work) {
    CodesProduct& p = work.form;
    p.row_sums = value_of(schedule, "row_sums") != 0;
    if (!work.product.is_conv()) return;
    p.in_together = value_of(schedule, "in");
    p.out_together = value_of(schedule, "out");
  }
  static Schedule held_as(int64_t in, int64_t out) {
    Schedule s;
    if (in != kAllChannels) s["in"] = in;
    if (out != kAllChannels) s["out"] = out;
    return s;
  }
  // How the channels of input and result may lie together.
  static std::vector<std::pair<int64_t, int64_t>> layouts(const CodesWork& work) {
    const CodesProduct& p = work.form;
    if (!work.product.is_conv()) return {{kAllChannels, kAllChannels}};
    std::vector<std::pair<int64_t, int64_t>> all{{1, 1}};
    if (p.geometry.oc < 2) return all;
    if (p.geometry.ic >= 4) all.emplace_back(4, 4);
    if (p.geometry.ic >= 2) all.emplace_back(kAllChannels, kAllChannels);
    if (p.geometry.ic < 4 && work.product.residual != work.product.x) all.emplace_back(1, 4);
    return all;
  }
};

// Products by words of four codes, of any kind.
class TiledCodesRoutine final : public CodesProductRoutine {
 public:
  explicit TiledCodesRoutine(bool is_conv) : is_conv_(is_conv) {}
  std::string_view name() const override { return is_conv_ ? "gpu:int8/conv_tiled" : "gpu:int8/gemm"; }

  Space space(const Workload& workload, const Target&) const override {
    const CodesWork work = *CodesWork::read(workload, nullptr);
    return codes_product_space(work.form, work.plane(), kinds(work));
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&,
                                         PackedStore& packed) const override {
    CodesWork work = *CodesWork::read(*candidate.workload, nullptr);
    apply(candidate.schedule, work);
    work.find_places(candidate);
    const Int8Product& p = work.product;
    const CodesProduct& form = work.form;
    packed.floats(words(work), {p.w, p.w_scale, p.w_zero, p.bias, p.addend}, [&](float* to) {
      const Int8Weights weights(p);
      pack_codes_weights(
          form,
          [&](int64_t c, int64_t ic, int64_t tap) {
            return weights.at(c, ic * form.geometry.taps() + tap) - (form.row_sums ? weights.shift(c) : 0);
          },
          reinterpret_cast<int32_t*>(to));
    });
    work.pack_rest(packed, form.x_zero - form.middle());
    return std::make_unique<CodesProductProgram>(form, TiledConvSchedule::of(candidate.schedule));
  }

 protected:
  std::vector<std::string_view> products() const override {
    if (is_conv_) return CodesProductRoutine::products();
    return {"MatMul", "Gemm", "MatMulInteger"};
  }

  std::vector<Schedule> schedules(const CodesWork& work, const Target& target) const override {
    std::vector<Schedule> all;
    if (work.product.is_conv() != is_conv_) return all;
    const DeviceModel model = model_of(target);
    for (const Schedule& kind : kinds(work)) {
      CodesWork one = work;
      apply(kind, one);
      const auto best =
          remember_schedules(str(name(), " ", key_of(model), " ", target.figures.has_dots, " ", one.key()), [&] {
            return search_by_estimate(
                codes_product_space(one.form, one.plane(), {kind}), model,
                [&](std::span<const int64_t> v) { return profile_of(one, TiledConvSchedule::of(v), target); });
          });
      all.insert(all.end(), best.begin(), best.end());
    }
    return all;
  }
  const char* reject(const CodesWork& work) const override {
    if (work.product.is_conv() != is_conv_) return "a product of the other kind";
    const char* reason = reject_codes_product(work.form);
    return reason ? reason : "the device runs no schedule of it";
  }
  Profile profile(const CodesWork& work, const Schedule& schedule, const Target& target) const override {
    return profile_of(work, TiledConvSchedule::of(schedule), target);
  }
  int64_t words(const CodesWork& work) const override { return work.form.geometry.oc * work.form.words(); }

 private:
  static Profile profile_of(const CodesWork& work, const TiledConvSchedule& schedule, const Target& target) {
    return codes_product_profile(work.form, schedule, work.images(), work.in_plane(), work.plane(),
                                 target.figures.has_dots);
  }

  // Layouts, and whether weights are less than they should be.
  static std::vector<Schedule> kinds(const CodesWork& work) {
    std::vector<Schedule> all;
    for (const bool bytes : may_be_bytes(work.product)) {
      for (const auto& [in, out] : layouts(work)) {
        Schedule s;
        if (work.product.is_conv()) s = held_as(in, out);
        if (!bytes) s["row_sums"] = 1;
        CodesWork one = work;
        apply(s, one);
        if (reject_codes_product(one.form) == nullptr) all.push_back(s);
      }
    }
    return all;
  }

  const bool is_conv_;
};

// Convolutions whose groups have one channel.
class DepthwiseCodesRoutine final : public CodesProductRoutine {
 public:
  std::string_view name() const override { return "gpu:int8/conv_depthwise"; }

  Space space(const Workload& workload, const Target&) const override {
    const CodesWork work = *CodesWork::read(workload, nullptr);
    std::vector<int64_t> held;
    for (const auto& [in, out] : layouts(work)) {
      if (in == out) held.push_back(in);
    }
    return Space({{"in", held}, {"out", held}, {"threads", {32, 64, 128, 256}}},
                 [](std::span<const int64_t> v) { return v[0] == v[1]; });
  }

  std::unique_ptr<const Program> program(const Candidate& candidate, const Target&,
                                         PackedStore& packed) const override {
    CodesWork work = *CodesWork::read(*candidate.workload, nullptr);
    apply(candidate.schedule, work);
    work.find_places(candidate);
    const Int8Product& p = work.product;
    packed.floats(words(work), {p.w, p.w_scale, p.w_zero, p.bias, p.addend}, [&](float* to) {
      const Int8Weights weights(p);
      pack_codes_depthwise(
          work.form, [&](int64_t c, int64_t tap) { return weights.at(c, tap); }, reinterpret_cast<int32_t*>(to));
    });
    work.pack_rest(packed, 0);
    return make_codes_depthwise(work.form, threads_of(candidate.schedule));
  }

 protected:
  std::vector<Schedule> schedules(const CodesWork& work, const Target& target) const override {
    constexpr int64_t kThreads = 64;
    std::vector<Schedule> all;
    const auto most = std::min<int64_t>(kThreads, model_of(target).group_threads);
    for (const auto& [in, out] : layouts(work)) {
      CodesWork one = work;
      Schedule s = held_as(in, out);
      s["threads"] = most;
      apply(s, one);
      if (work.product.is_conv() && reject_codes_depthwise(one.form) == nullptr) all.push_back(s);
    }
    return all;
  }
  const char* reject(const CodesWork& work) const override {
    const char* reason = reject_codes_depthwise(work.form);
    return reason ? reason : "no layout suits it";
  }
  Profile profile(const CodesWork& work, const Schedule& schedule, const Target&) const override {
    return codes_depthwise_profile(work.form, threads_of(schedule), work.product.x->shape().hint_dims(),
                                   work.product.y->shape().hint_dims());
  }
  int64_t words(const CodesWork& work) const override { return codes_depthwise_words(work.form); }

 private:
  static int threads_of(const Schedule& schedule) { return static_cast<int>(value_of(schedule, "threads")); }
};

}  // namespace

}  // namespace neo::gpu

namespace neo {

NEO_DEFINE_PROGRAM_ROUTINE(gpu_int8_conv_tiled, gpu::TiledCodesRoutine, true)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_int8_gemm, gpu::TiledCodesRoutine, false)
NEO_DEFINE_PROGRAM_ROUTINE(gpu_int8_conv_depthwise, gpu::DepthwiseCodesRoutine)

}  // namespace neo
