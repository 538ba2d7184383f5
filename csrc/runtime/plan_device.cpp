#include "runtime/plan_device.h"

#include <algorithm>

#include "base/budget.h"
#include "base/check.h"

namespace neo {
namespace {

void each_body(const Item& item, const std::function<void(const Block&)>& visit) {
  if (const auto* branch = std::get_if<IfItem>(&item.what)) {
    visit(*branch->then_block);
    visit(*branch->else_block);
  } else if (const auto* loop = std::get_if<LoopItem>(&item.what)) {
    visit(*loop->body);
  }
}

bool has_device_slots(const Block& block) {
  bool found = std::any_of(block.slots.begin(), block.slots.end(),
                           [](const Slot& slot) { return slot.device != DeviceKind::Cpu; });
  for (const Region& region : block.regions) {
    for (const Item& item : region.items) {
      each_body(item, [&](const Block& body) { found = found || has_device_slots(body); });
    }
  }
  return found;
}

OpenDevice opener = nullptr;

}  // namespace

void open_devices_with(OpenDevice open) {
  opener = open;
}

bool grow(std::unique_ptr<DeviceBuffer>& buffer, int64_t bytes, Device& device) {
  if (buffer && buffer->bytes() >= bytes) return false;
  take_memory(bytes - (buffer ? buffer->bytes() : 0));
  buffer.reset();
  buffer = device.allocate(std::max<int64_t>(bytes, 1));
  return true;
}

std::shared_ptr<PlanDevice> PlanDevice::of(const std::shared_ptr<const Plan>& plan) {
  if (plan->device == DeviceKind::Cpu || !has_device_slots(*plan->root)) return nullptr;
  return std::make_shared<PlanDevice>(plan);
}

void PlanDevice::prepare() {
  const std::lock_guard lock(mutex_);
  if (is_ready_) return;
  NEO_CHECK(opener, Unsupported, "run", "a program must be made for devices. Got a plan for ", name(plan_->device),
            ", expected one for the CPU");
  if (!device_) device_ = opener(plan_->device);
  const auto queue = device_->make_queue(false);
  prepare_block(*plan_->root, *queue);
  queue->finish();
  programs_.clear();
  is_ready_ = true;
}

void PlanDevice::prepare_block(const Block& block, DeviceQueue& queue) {
  for (const Slot& slot : block.slots) {
    if (slot.storage == Slot::Storage::Constant && slot.device != DeviceKind::Cpu) upload(slot.constant, queue);
  }
  for (const Region& region : block.regions) {
    for (const Item& item : region.items) {
      each_body(item, [&](const Block& body) { prepare_block(body, queue); });
      const auto* call = std::get_if<StepItem>(&item.what);
      if (!call || call->step->kind() != Step::Kind::Device) continue;
      const auto& step = static_cast<const DeviceStep&>(*call->step);
      StepKernels kernels;
      for (int i = 0; i < step.kernel_count(); ++i) {
        checkpoint();
        KernelSource source = step.kernel(i, device_->info());
        auto& program = programs_[source.program.text];
        if (!program) program = device_->compile(source.program);
        kernels.programs.push_back(program);
        kernels.names.push_back(std::move(source.name));
      }
      for (const Tensor& constant : step.constants()) kernels.constants.push_back(upload(constant, queue));
      kernels_[&step] = std::move(kernels);
    }
  }
}

const DeviceBuffer* PlanDevice::upload(const Tensor& tensor, DeviceQueue& queue) {
  auto& buffer = constants_[tensor.data()];
  if (!buffer) {
    buffer = device_->allocate(std::max<int64_t>(tensor.bytes(), 1));
    queue.write(*buffer, 0, {static_cast<const std::byte*>(tensor.data()), static_cast<size_t>(tensor.bytes())});
  }
  return buffer.get();
}

DeviceRun::~DeviceRun() {
  try {
    if (queue_) queue_->finish();
  } catch (const Error&) {
    // The call that failed has said so.
  }
}

void DeviceRun::start(bool measures) {
  if (queue_ && measures_ == measures) return;
  plan_->prepare();
  if (queue_) queue_->finish();
  queue_ = plan_->device().make_queue(measures);
  measures_ = measures;
  ++changes_;
}

void DeviceRun::reserve_scratch(int64_t bytes) {
  if (bytes == 0) return;
  if (scratch_ && scratch_->bytes() < bytes) queue_->finish();
  if (grow(scratch_, bytes, plan_->device())) ++changes_;
}

int64_t DeviceRun::take_ns() {
  const std::vector<LaunchTime> times = queue_->take_times();
  return times.empty() ? 0 : times.back().end_ns - times.front().start_ns;
}

}  // namespace neo
