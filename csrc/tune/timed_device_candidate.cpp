#include "tune/timed_device_candidate.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "exec/binding.h"
#include "tune/benchmark.h"

namespace neo {
namespace {

constexpr int64_t kWarmUpNs = 5'000'000;
constexpr int64_t kMinWarmUps = 3;
constexpr int64_t kMaxWarmUps = 64;
// A pause that is longer may be another program's doing.
constexpr int64_t kUsualPauseNs = 5'000;
constexpr int kTries = 3;
constexpr int64_t kAlignment = 256;

int64_t arg_bytes(const Arg& arg) {
  return element_count(arg.layout.physical_dims(arg.dims)) * item_bytes(arg.dtype);
}

std::span<const std::byte> arg_bytes(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data()), static_cast<size_t>(tensor.bytes())};
}

}  // namespace

DeviceStage::DeviceStage(std::shared_ptr<Device> device)
    : device_(std::move(device)), queue_(device_->make_queue(true)) {}

const DeviceBuffer* DeviceStage::upload(const Tensor& tensor) {
  auto& [kept, buffer] = uploads_[{tensor.data(), tensor.bytes()}];
  if (!buffer) {
    kept = tensor;
    buffer = device_->allocate(std::max<int64_t>(tensor.bytes(), 1));
    queue_->write(*buffer, 0, arg_bytes(tensor));
  }
  return buffer.get();
}

void DeviceStage::place() {
  if (!outputs_ || outputs_->bytes() < output_bytes_) outputs_ = device_->allocate(output_bytes_);
  if (!scratch_ || scratch_->bytes() < scratch_bytes_) scratch_ = device_->allocate(scratch_bytes_);
}

void DeviceStage::warm(const Tensor& input) {
  queue_->write(*uploads_.at({input.data(), input.bytes()}).second, 0, arg_bytes(input));
}

void DeviceStage::warm_outputs(int64_t bytes) {
  if (bytes == 0) return;
  read_.resize(std::max(read_.size(), static_cast<size_t>(bytes)));
  queue_->read(*outputs_, 0, std::span(read_).first(static_cast<size_t>(bytes)));
}

TimedDeviceCandidate::TimedDeviceCandidate(DeviceStage& stage, const DeviceStep* step, std::vector<Tensor> inputs,
                                           std::vector<bool> is_constant, std::vector<Arg> args, bool copies_in,
                                           bool copies_out)
    : stage_(stage),
      step_(step),
      inputs_(std::move(inputs)),
      is_constant_(std::move(is_constant)),
      args_(std::move(args)),
      copies_in_(copies_in),
      copies_out_(copies_out) {
  for (const Tensor& input : inputs_) operands_.push_back(stage_.upload(input));
  for (size_t i = inputs_.size(); i < args_.size(); ++i) {
    offsets_.push_back(output_bytes_);
    output_bytes_ += (arg_bytes(args_[i]) + kAlignment - 1) / kAlignment * kAlignment;
  }
  stage_.reserve_outputs(output_bytes_);
  if (copies_out_) host_.resize(static_cast<size_t>(arg_bytes(args_.back())));
  if (!step_) return;
  launches_ = step_->launches(args_);
  stage_.reserve_scratch(temporary_offsets(launches_, step_->counts()).back());
  for (int i = 0; i < step_->kernel_count(); ++i) {
    KernelSource source = step_->kernel(i, stage_.device().info());
    kernels_.programs.push_back(stage_.device().compile(source.program));
    kernels_.names.push_back(std::move(source.name));
  }
  for (const Tensor& constant : step_->constants()) kernels_.constants.push_back(stage_.upload(constant));
}

void TimedDeviceCandidate::place() {
  if (step_) {
    const auto argument = [&](size_t i) -> BufferArgument {
      if (i < operands_.size()) return {operands_[i], 0};
      return {stage_.outputs(), offsets_[i - operands_.size()]};
    };
    resolved_ = resolve_launches(*step_, launches_, kernels_, argument, stage_.scratch());
  }
  // The first launch may be compiled further; of the others the shortest pause is that of a queue that is full.
  warm_up(1);
  const int64_t took_ns = std::max<int64_t>(warm_up(1), 1);
  const auto runs = static_cast<int>(std::clamp<int64_t>(kWarmUpNs / took_ns, kMinWarmUps, kMaxWarmUps));
  for (int i = 0; i < kTries && (i == 0 || pause_ns_ > kUsualPauseNs); ++i) warm_up(runs);
  if (pause_ns_ < 0) pause_ns_ = 0;
}

int64_t TimedDeviceCandidate::warm_up(int runs) {
  DeviceQueue& queue = stage_.queue();
  queue.take_times();
  const int64_t start = steady_now_ns();
  for (int i = 0; i < runs; ++i) {
    for (const Launch& l : resolved_) queue.launch(l);
  }
  const std::vector<LaunchTime> times = queue.take_times();
  const int64_t took_ns = steady_now_ns() - start;
  const size_t each = resolved_.size();
  if (each == 0 || times.size() != static_cast<size_t>(runs) * each) return took_ns;
  for (size_t next = each; next < times.size(); next += each) {
    const int64_t pause_ns = std::max<int64_t>(times[next].start_ns - times[next - 1].end_ns, 0);
    if (pause_ns_ < 0 || pause_ns < pause_ns_) pause_ns_ = pause_ns;
  }
  return took_ns;
}

void TimedDeviceCandidate::run() {
  DeviceQueue& queue = stage_.queue();
  if (copies_in_) queue.write(const_cast<DeviceBuffer&>(*operands_.front()), 0, arg_bytes(inputs_.front()));
  for (const Launch& l : resolved_) queue.launch(l);
  if (copies_out_) {
    // A copy alone sends back what it was given.
    const DeviceBuffer& from = step_ ? *stage_.outputs() : *operands_.front();
    queue.read(from, 0, host_);
  }
  queue.finish();
}

int64_t TimedDeviceCandidate::time_ns() {
  stage_.queue().take_times();
  const int64_t start = steady_now_ns();
  run();
  const int64_t end = steady_now_ns();
  const std::vector<LaunchTime> times = stage_.queue().take_times();
  if (copies_in_ || copies_out_ || times.empty()) return end - start;
  return times.back().end_ns - times.front().start_ns + pause_ns_;
}

void TimedDeviceCandidate::warm() {
  if (!stage_.device().info().is_host_unified) return;
  stage_.warm_outputs(output_bytes_);
  for (size_t i = inputs_.size(); i-- > 0;) {
    if (!is_constant_[i]) stage_.warm(inputs_[i]);
  }
  stage_.queue().finish();
}

}  // namespace neo
