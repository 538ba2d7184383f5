#include "routines/gpu/device_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace neo::gpu {
namespace {

using kernel::Expr;
using kernel::Op;

std::vector<DeviceModel> make_models() {
  std::vector<DeviceModel> all;
  const auto add = [&](DeviceModel m) { all.push_back(std::move(m)); };
  // Midgard: threads of their own with vectors of four; sixteen registers of 128 bits, half as many threads beyond
  // eight. Local memory is ordinary memory.
  add({"mali_t860", 47, 8, 80, 40, 4, 1, 4, 64, 8192, 256, 64, 256, 32 << 10, 32 << 10, 0.002, false});
  // Bifrost and Valhall: waves of scalar threads.
  add({"mali_g52", 55, 12, 110, 30, 2, 8, 1, 64, 24576, 768, 256, 384, 32 << 10, 32 << 10, 0.001, false});
  add({"mali_g76", 480, 28, 800, 25, 12, 8, 1, 64, 24576, 768, 256, 384, 32 << 10, 32 << 10, 0.001, false});
  add({"mali_g78", 1100, 40, 1800, 20, 14, 16, 1, 64, 32768, 1024, 384, 512, 32 << 10, 32 << 10, 0.001, false});
  // Intel: 128 registers of 32 bytes for a hardware thread of 8, 16 or 32 work items, seven hardware threads of a unit.
  // The data port of six units (Xe: of sixteen) moves a line of 64 bytes (Xe: two) with every clock.
  const size_t intel = all.size();
  // Mali's texture units give half a texel of 16 bytes for each that they sample in a clock: one for a unit of Midgard,
  // two of Bifrost, four of Valhall. An image has 65536 texels, as many as OpenCL asks for.
  for (const auto& [i, gbps] : {std::pair(0, 21.0), {1, 27.0}, {2, 138.0}, {3, 380.0}}) {
    all[static_cast<size_t>(i)].image_texels = 1 << 16;
    all[static_cast<size_t>(i)].texel_gbps = gbps;
  }
  add({"intel_hd505", 216, 25, 144, 15, 18, 16, 1, 64, 7168, 112, 64, 256, 64 << 10, 22 << 10, 0.0005, true});
  add({"intel_xe", 2000, 60, 1000, 10, 96, 16, 1, 64, 7168, 112, 64, 512, 64 << 10, 8 << 10, 0.0003, true});
  for (size_t i = intel; i < all.size(); ++i) {
    all[i].block = 16;
    all[i].line = 64;
    all[i].load_bytes = 16;
    all[i].subgroup = 32;
    // The sampler of a subslice gives a texel of 16 bytes with every clock (Xe: two).
    all[i].image_texels = 1 << 27;
    all[i].texel_gbps = i == intel ? 36 : 250;
  }
  // NVIDIA: 65536 registers of a multiprocessor.
  const auto nvidia = [&](const char* name, double gflops, double gbps, int units, double launch) {
    add({name, gflops, gbps, gflops / 4, launch, units, 32, 1, 255, 65536, 2048, 512, 1024, 48 << 10, 64 << 10, 0.00003,
         true});
    // Texels come through the cache that read-only loads have too.
    all.back().image_texels = 1 << 27;
  };
  const auto matrices = [&](double gflops) { all.back().matrix_gflops = gflops; };
  nvidia("nvidia_maxwell", 236, 20, 1, 12);   // a Jetson Nano
  nvidia("nvidia_pascal", 1330, 50, 2, 10);   // a Jetson TX2
  nvidia("nvidia_volta", 15700, 900, 80, 5);  // V100
  nvidia("nvidia_turing", 8100, 300, 40, 5);  // T4
  nvidia("nvidia_orin", 5300, 180, 16, 8);    // a Jetson AGX Orin
  matrices(21000);
  nvidia("nvidia_ampere", 19500, 1500, 108, 4);  // A100
  matrices(156000);
  nvidia("nvidia_ada", 30300, 300, 58, 4);  // L4
  matrices(60000);
  nvidia("nvidia_hopper", 60000, 3000, 132, 4);  // H100
  matrices(494000);
  // PoCL: a group is a call, its threads a loop, barriers cut it into several; vectors are the CPU's own.
  add({"pocl", 220,  16,        900,       12,   2,     1, 16,  560, 1 << 20, 1024,
       1,      1024, 256 << 10, 256 << 10, 0.01, false, 0, 0.2, 0.5, 0.15,    16});
  // A texel is a call that looks at the image's format and size.
  all.back().image_texels = 1 << 27;
  all.back().texel_slots = 20;
  return all;
}

// Integer formulas with what is not known left out.
class KernelWalk {
 public:
  KernelWalk(const kernel::Kernel& kernel, const std::map<std::string, int64_t, std::less<>>& sizes) {
    for (const kernel::Parameter& parameter : kernel.parameters) {
      const auto* scalar = std::get_if<kernel::ScalarParameter>(&parameter);
      if (scalar == nullptr) continue;
      const auto found = sizes.find(scalar->variable->name);
      if (found != sizes.end()) values_[scalar->variable.get()] = static_cast<double>(found->second);
    }
    // The thread in the middle of the grid.
    for (const auto& axes : {kernel.groups, kernel.locals}) {
      for (const kernel::Axis& axis : axes) {
        if (axis.variable == nullptr) continue;
        if (const auto extent = value(axis.extent)) values_[axis.variable.get()] = std::floor(*extent / 2);
      }
    }
    body(kernel.body, 1);
  }

  const Profile& profile() const { return profile_; }
  double registers() const { return std::max(most_, registers_); }  // of all that is declared at once

 private:
  std::optional<double> value(const Expr& e) const {
    if (const auto constant = e.constant()) return static_cast<double>(*constant);
    if (e->op == Op::Variable) {
      const auto found = values_.find(e->variable.get());
      return found == values_.end() ? std::nullopt : std::optional(found->second);
    }
    if (e->type.lanes != 1 || e->operands.size() != 2) return std::nullopt;
    const auto a = value(e->operands[0]), b = value(e->operands[1]);
    if (!a || !b) return std::nullopt;
    switch (e->op) {
      case Op::Add:
        return *a + *b;
      case Op::Sub:
        return *a - *b;
      case Op::Mul:
        return *a * *b;
      case Op::Div:
        return *b == 0 ? std::nullopt : std::optional(std::trunc(*a / *b));
      case Op::Mod:
        return *b == 0 ? std::nullopt : std::optional(std::fmod(*a, *b));
      case Op::Min:
        return std::min(*a, *b);
      case Op::Max:
        return std::max(*a, *b);
      case Op::BitAnd:
        return static_cast<double>(static_cast<int64_t>(*a) & static_cast<int64_t>(*b));
      default:
        return std::nullopt;
    }
  }

  void expression(const Expr& e, double times) {
    walk(e, [&](const Expr& part) {
      const kernel::ValueType type = part->type;
      const DType held = part->buffer == nullptr ? type.dtype : part->buffer->stored();
      const double bytes = static_cast<double>(item_bytes(held)) * type.lanes;
      switch (part->op) {
        case Op::Integer:
        case Op::Real:
        case Op::Variable:
        case Op::Broadcast:
        case Op::Vector:
          return true;
        case Op::Lane:
          profile_.lane_reads += times;
          return true;
        case Op::BlockRead:
          profile_.block_bytes += times * bytes;
          profile_.loads += times;
          return true;
        case Op::Load:
          if (part->buffer->space == kernel::Space::Image) {
            profile_.texels += times;
          } else if (part->buffer->space == kernel::Space::Global) {
            profile_.loaded_bytes += times * bytes;
            profile_.loads += times;
          } else if (part->buffer->space == kernel::Space::Local) {
            profile_.local_loaded_bytes += times * bytes;
          }
          return part->buffer->space != kernel::Space::Register;  // the index of a register is a number
        case Op::Fma:
          profile_.flops += times * 2 * type.lanes;
          profile_.lanes = std::max(profile_.lanes, type.lanes);
          return true;
        case Op::Exp:
        case Op::Log:
        case Op::Tanh:
        case Op::Sin:
        case Op::Cos:
        case Op::Erf:
        case Op::Pow:
          profile_.other += times * type.lanes * 16;
          return true;
        default:
          if (is_integer(type.dtype)) {
            profile_.other += times * 0.5 * type.lanes;  // most of them are shared by accesses
          } else {
            profile_.flops += times * type.lanes;
          }
          return true;
      }
    });
  }

  void body(const kernel::Body& statements, double times) {
    for (const auto& stmt : statements) {
      kernel::each_expression(*stmt, [&](const Expr& e) {
        if (!std::holds_alternative<kernel::Loop>(stmt->what)) expression(e, times);
      });
      if (const auto* let = std::get_if<kernel::Let>(&stmt->what)) {
        if (const auto known = value(let->value)) values_[let->variable.get()] = *known;
      } else if (const auto* declare = std::get_if<kernel::Declare>(&stmt->what)) {
        registers_ +=
            static_cast<double>(declare->buffer->elements.constant().value_or(0)) * declare->buffer->type.lanes;
      } else if (const auto* loop = std::get_if<kernel::Loop>(&stmt->what)) {
        const auto begin = value(loop->begin), end = value(loop->end);
        const double trips = begin && end ? std::max(0.0, *end - *begin) : 1;
        if (begin) values_[loop->variable.get()] = *begin;
        nested(loop->body, times * trips);
      } else if (const auto* branch = std::get_if<kernel::If>(&stmt->what)) {
        nested(branch->then_body, times);
      } else if (std::holds_alternative<kernel::MatrixMultiply>(stmt->what)) {
        profile_.matrix_flops += times * 2 * 16 * 8 * 8 / 32;
      } else if (std::holds_alternative<kernel::Barrier>(stmt->what)) {
        profile_.barriers += times;
      } else if (const auto* store = std::get_if<kernel::Store>(&stmt->what)) {
        if (store->buffer->space == kernel::Space::Global) profile_.loads += times;
        if (store->block) profile_.block_bytes += times * static_cast<double>(item_bytes(store->buffer->stored()));
      }
    }
  }

  void nested(const kernel::Body& statements, double times) {
    const double outside = registers_;
    body(statements, times);
    most_ = std::max(most_, registers_);
    registers_ = outside;
  }

  std::map<const kernel::VariableInfo*, double> values_;
  Profile profile_;
  double registers_ = 0, most_ = 0;
};

}  // namespace

const std::vector<DeviceModel>& device_models() {
  static const std::vector<DeviceModel> all = make_models();
  return all;
}

const DeviceModel* find_device_model(std::string_view name) {
  for (const DeviceModel& m : device_models()) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

Profile profile_of(const kernel::Kernel& kernel, const std::map<std::string, int64_t, std::less<>>& sizes) {
  const kernel::Geometry geometry = kernel::geometry(kernel, sizes);
  KernelWalk walk(kernel, sizes);
  Profile p = walk.profile();
  constexpr int kAddresses = 12;  // registers beside those of the kernel's own arrays
  p.registers = static_cast<int>(walk.registers()) + kAddresses;
  for (const int64_t count : geometry.groups) p.groups *= static_cast<double>(count);
  p.threads = kernel.threads();
  p.subgroup = kernel.subgroup_size;
  p.local_bytes = kernel.local_bytes();
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const auto* memory = std::get_if<kernel::Memory>(&kernel.parameters[i]);
    if (memory != nullptr) {
      p.unique_bytes += static_cast<double>(geometry.elements[i] * (*memory)->bytes());
    }
  }
  return p;
}

Estimate estimate(const Profile& p, const DeviceModel& m) {
  Estimate out;
  const int wave = p.subgroup > 0 ? p.subgroup : m.wave;
  // Waves of another size share the registers and the unit in other parts.
  const auto of_wave = [&](int count) { return m.wave == wave ? count : count * m.wave / wave; };
  const int registers = of_wave(m.registers);
  if (p.threads > m.group_threads) {
    out.reject = str("a group has ", p.threads, " threads, at most ", m.group_threads);
  } else if (p.local_bytes > m.local_bytes) {
    out.reject = str("a group has ", p.local_bytes, " bytes of local memory, at most ", m.local_bytes);
  } else if (p.registers > 2 * registers) {
    out.reject = str("a thread has ", p.registers, " registers, at most ", registers);
  } else if (!m.reads_blocks(p.subgroup)) {
    out.reject = str("a subgroup has ", p.subgroup, " threads, the largest that reads blocks ", m.subgroup);
  }
  if (p.matrix_flops > 0 && m.matrix_gflops == 0) out.reject = "the device multiplies no matrices";
  if (p.texels > 0 && m.image_texels == 0) out.reject = "the device has no images";
  const double waves = std::ceil(static_cast<double>(p.threads) / wave), threads = waves * wave;
  // Threads that a unit holds at once: whole groups.
  const double most = static_cast<double>(m.unit_threads) * wave / m.wave;
  double held = std::min(most, m.unit_registers / std::max(1.0, static_cast<double>(p.registers)));
  if (p.local_bytes > 0 && m.local_is_fast) {
    const auto local = static_cast<double>(p.local_bytes);
    held = std::min(held, threads * std::max(1.0, std::floor(static_cast<double>(m.unit_local_bytes) / local)));
  }
  held = std::max(held, 1.0);
  const double available = std::ceil(p.groups / m.units) * threads;
  out.occupancy = std::min(1.0, std::min(held, available) * m.wave / wave / m.busy_threads);
  // Issue slots of a thread: vectors beyond the device's lanes are issued in parts, those below leave lanes empty.
  const double width = std::min(p.lanes, m.lanes);
  const double per_slot = 2 * width;
  const double loads = std::max(p.loads, p.loaded_bytes / m.load_bytes);
  double slots = p.flops / per_slot + p.other * m.other_slots + loads * m.load_slots + p.lane_reads * m.lane_slots;
  slots += p.texels * m.texel_slots;
  if (p.matrix_flops > 0 && !out.reject) slots += p.matrix_flops / (2 * m.lanes) * m.gflops / m.matrix_gflops;
  if (p.registers > registers) slots *= 3;                        // spilled
  const double slots_per_us = m.gflops * 1e3 / (2.0 * m.lanes);   // of all units
  const double rounds = std::ceil(p.groups / m.units) * m.units;  // the last one is not full
  const double hidden = 0.25 + 0.75 * out.occupancy;
  const double compute_us = rounds * threads * slots / slots_per_us / hidden;
  const double all_threads = p.groups * threads;
  // Threads of a wave that ask for one place together are served once.
  const double shared = m.wave > 1 ? 4.0 : 1.0;
  // A texture unit serves each of them on its own.
  const double texel_bytes = p.texels * static_cast<double>(kernel::kTexel.bytes());
  const bool has_texture_unit = m.texel_gbps > 0;
  const double read_bytes = p.loaded_bytes + (has_texture_unit ? 0 : texel_bytes);
  const double loaded_bytes = read_bytes / shared + p.apart * m.line + p.block_bytes;
  const double local_bytes = m.local_is_fast ? p.local_loaded_bytes / 4 : p.local_loaded_bytes;
  const double cache_us = all_threads * (loaded_bytes + local_bytes / shared) / (m.cache_gbps * 1e3);
  const double texels_us = has_texture_unit ? all_threads * texel_bytes / (m.texel_gbps * 1e3) : 0;
  const double memory_us = p.unique_bytes / (m.gbps * 1e3);
  const double barriers_us = p.barriers * m.barrier_us * all_threads / m.units;
  const double groups_us = rounds / m.units * m.group_us;
  out.time_us = m.launch_us + std::max({compute_us, cache_us, texels_us, memory_us}) + barriers_us + groups_us;
  out.time_us *= 1 + 1e-4 * p.written;
  return out;
}

}  // namespace neo::gpu
