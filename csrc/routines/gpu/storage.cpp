#include "routines/gpu/storage.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.h"
#include "base/int_math.h"

namespace neo::gpu {
namespace {

class StoredProgram final : public Program {
 public:
  StoredProgram(std::unique_ptr<Program> program, DType storage) : program_(std::move(program)) {
    for (const kernel::Kernel& k : program_->kernels()) kernels_.push_back(kernel::with_storage(k, storage));
  }
  const std::vector<kernel::Kernel>& kernels() const override { return kernels_; }
  Launches launches(std::span<const Dims> shapes) const override { return program_->launches(shapes); }

 private:
  std::unique_ptr<Program> program_;
  std::vector<kernel::Kernel> kernels_;
};

Type widened(Type type) {
  if (type.is_tensor() && is_half(type.dtype)) type.dtype = DType::Float32;
  return type;
}

}  // namespace

DType storage_of(const Workload& workload) {
  for (const Value* v : workload.root().inputs) {
    if (v && v->type.is_tensor() && is_half(v->dtype())) return v->dtype();
  }
  return DType::Float32;
}

ConstantFloats::ConstantFloats(const Value* value) {
  const Tensor& tensor = *value->constant;
  if (tensor.dtype() == DType::Float32) {
    given_ = tensor.as<float>();
    return;
  }
  NEO_ASSERT(is_half(tensor.dtype()), "Got ", name(tensor.dtype()));
  wide_.resize(static_cast<size_t>(tensor.size()));
  const uint16_t* bits = tensor.as<uint16_t>();
  for (size_t i = 0; i < wide_.size(); ++i) {
    wide_[i] = tensor.dtype() == DType::Float16 ? from_float16(bits[i]) : from_bfloat16(bits[i]);
  }
}

void pack_stored(PackedStore& packed, DType storage, int64_t count, std::initializer_list<const Value*> of,
                 FunctionRef<void(float*)> fill) {
  if (storage == DType::Float32) {
    packed.floats(count, of, fill);
    return;
  }
  // The store counts floats: two halves take the place of one.
  const int64_t bytes = packed_bytes(count, storage);
  packed.floats(ceil_div(bytes, int64_t{sizeof(float)}), of, [&](float* to) {
    std::vector<float> wide(static_cast<size_t>(count));
    fill(wide.data());
    auto* at = reinterpret_cast<std::byte*>(to);
    for (const float x : wide) {
      store_double(storage, at, x);
      at += item_bytes(storage);
    }
    if (count % 2 != 0) std::memset(at, 0, static_cast<size_t>(item_bytes(storage)));
  });
}

std::unique_ptr<Program> stored_program(std::unique_ptr<Program> program, DType storage) {
  if (storage == DType::Float32) return program;
  return std::make_unique<StoredProgram>(std::move(program), storage);
}

WideTwin::WideTwin(const Workload& workload) {
  const Node& node = workload.root();
  NEO_ASSERT(workload.nodes.size() == 1, "Got ", workload.nodes.size(), " nodes");
  std::map<const Value*, Value*> twins;
  std::vector<Value*> inputs;
  for (const Value* v : node.inputs) {
    Value*& twin = twins[v];
    if (v && !twin) {
      twin = graph_.add_input(v->name, widened(v->type));
      twin->contents = v->contents;
      if (v->constant && is_half(v->dtype()) && v->constant->is_absent()) {
        twin->constant = Tensor::absent(DType::Float32, v->constant->dims());
      } else if (v->constant && is_half(v->dtype())) {
        const ConstantFloats floats(v);
        Tensor wide(DType::Float32, v->constant->dims());
        std::copy_n(floats.data(), wide.size(), wide.as<float>());
        twin->constant = std::move(wide);
      } else {
        twin->constant = v->constant;
      }
    }
    inputs.push_back(twin);
  }
  std::vector<std::string> outputs;
  for (const Value* v : node.outputs) outputs.push_back(v ? v->name : "");
  Node* twin = graph_.add_node(node.op, std::move(inputs), outputs, node.attrs, node.name);
  twin->symbols = node.symbols;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (twin->outputs[i]) twin->outputs[i]->type = widened(node.outputs[i]->type);
  }
  workload_ = Workload::of(*twin);
}

}  // namespace neo::gpu
