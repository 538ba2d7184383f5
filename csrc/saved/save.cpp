#include <cstring>
#include <deque>
#include <unordered_map>

#include "base/check.h"
#include "base/json.h"
#include "saved/format.h"
#include "saved/safetensors.h"
#include "saved/saved.h"
#include "saved/variants.h"

namespace neo {
namespace {

template <class T, class F>
Json::Array list(const T& items, F json_of) {
  Json::Array out;
  out.reserve(items.size());
  for (const auto& item : items) out.push_back(json_of(item));
  return out;
}

Json::Array ints(const std::vector<int>& items) {
  return list(items, [](int x) { return Json(x); });
}

uint64_t hash_of(std::span<const std::byte> bytes) {
  uint64_t hash = bytes.size() * 0x9E3779B97F4A7C15u;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    hash = (hash ^ word) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
  }
  for (const std::byte b : bytes) hash = (hash ^ static_cast<uint64_t>(b)) * 0xD6E8FEB86659FD93u;
  return hash;
}

// The blobs of a file, equal ones once.
class Blobs {
 public:
  // [number of the blob or -1, dtype, sizes ...]
  Json add(const Tensor& tensor) {
    Json::Array reference{tensor.size() == 0 ? -1 : number_of(tensor), name(tensor.dtype())};
    for (int64_t d : tensor.dims()) reference.push_back(d);
    return reference;
  }
  std::span<const Blob> all() const { return blobs_; }

 private:
  int number_of(const Tensor& tensor) {
    if (tensor.dtype() == DType::String) return add(DType::UInt8, spell(tensor));
    return add(tensor.dtype(), {static_cast<const std::byte*>(tensor.data()), static_cast<size_t>(tensor.bytes())});
  }

  // Each string as eight bytes of length, lowest first, and its bytes.
  std::span<const std::byte> spell(const Tensor& tensor) {
    std::string text;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const std::string& s = tensor.strings()[i];
      for (int b = 0; b < 8; ++b) text += static_cast<char>(uint64_t{s.size()} >> 8 * b & 0xFF);
      text += s;
    }
    const std::string& kept = spelled_.emplace_back(std::move(text));
    return std::as_bytes(std::span(kept));
  }

  int add(DType dtype, std::span<const std::byte> bytes) {
    auto& same = by_hash_[hash_of(bytes)];
    for (int number : same) {
      const Blob& other = blobs_[static_cast<size_t>(number)];
      if (other.bytes.size() == bytes.size() && std::memcmp(other.bytes.data(), bytes.data(), bytes.size()) == 0)
        return number;
    }
    same.push_back(static_cast<int>(blobs_.size()));
    blobs_.push_back({dtype, bytes});
    return same.back();
  }

  std::vector<Blob> blobs_;
  std::unordered_map<uint64_t, std::vector<int>> by_hash_;
  std::deque<std::string> spelled_;
};

class PlanWriter {
 public:
  explicit PlanWriter(Blobs& blobs) : blobs_(blobs) {}

  Json write(const SavedModule& module) {
    const Plan& plan = *module.plan;
    number_of(*plan.root);
    Json::Array blocks;
    // Bodies are found on the way and come after the blocks that hold them.
    for (size_t i = 0; i < blocks_.size(); ++i) blocks.push_back(write(*blocks_[i]));
    const auto strings = [](const std::vector<std::string>& names) {
      return list(names, [](const std::string& n) { return Json(n); });
    };
    const Json::Array symbols = list(symbols_, [](const auto& entry) {
      const Symbol& s = entry.second;
      return Json(Json::Array{s.name, s.range.lo, s.range.hi, s.hint});
    });
    Json::Object out{{"target", write(module.target)},
                     {"inputs", strings(plan.input_names)},
                     {"outputs", strings(plan.output_names)},
                     {"estimate_us", plan.estimate_us},
                     {"keeps_denormals", plan.denormals == Denormals::Keep},
                     {"symbols", symbols},
                     {"blocks", std::move(blocks)}};
    if (module.chosen) out.emplace_back("executors", Json::Array{module.chosen->executors, module.chosen->threads});
    return out;
  }

 private:
  int number_of(const Block& block) {
    blocks_.push_back(&block);
    return static_cast<int>(blocks_.size()) - 1;
  }

  static Json write(const Target& t) {
    return Json::Object{{"name", t.name},
                        {"isa", isa_name(t.isa)},
                        {"threads", t.threads},
                        {"gflops_per_thread", t.gflops_per_thread},
                        {"l2_gbps", t.l2_gbps},
                        {"memory_gbps", t.memory_gbps},
                        {"l1_bytes", t.l1_bytes},
                        {"l2_bytes", t.l2_bytes},
                        {"kept_bytes", t.kept_bytes},
                        {"cold_constants", t.cold_constants},
                        {"image_texels", t.figures.image_texels}};
  }

  Json write(const Dim& dim) {
    dim.collect_symbols(symbols_);
    return dim.is_constant() ? Json(dim.value()) : Json(dim.to_string());
  }

  Json write(const Type& type) {
    const Type* t = &type;
    while (t->element) t = t->element.get();
    if (t->shape.has_rank()) {
      for (const Dim& d : t->shape.dims()) d.collect_symbols(symbols_);
    }
    return type.to_string();
  }

  Json write(const Slot& slot) {
    NEO_ASSERT(slot.strides.empty(), "a saved module has no views with strides");
    Json::Object out{
        {"storage", kStorageNames[static_cast<size_t>(slot.storage)]}, {"name", slot.name}, {"type", write(slot.type)}};
    if (slot.device != DeviceKind::Cpu) out.emplace_back("device", name(slot.device));
    if (!slot.layout.is_plain()) out.emplace_back("layout", slot.layout.to_string());
    if (slot.storage == Slot::Storage::Constant) out.emplace_back("constant", blobs_.add(slot.constant));
    if (slot.storage == Slot::Storage::View) {
      out.emplace_back("base", slot.base);
      out.emplace_back("offset", write(slot.offset));
    }
    return out;
  }

  Json write(const StepSpec& spec) {
    const auto tensor = [&](const Tensor& t) { return t.defined() ? blobs_.add(t) : Json(); };
    Json::Object schedule, attributes;
    for (const auto& [key, value] : spec.schedule) schedule.emplace_back(key, value);
    for (const auto& [hash, value] : spec.attributes) attributes.emplace_back(hash, blobs_.add(value));
    const auto schema = [](const std::optional<Schema>& s) { return s ? Json(s->to_string()) : Json(); };
    Json::Object out{{"routine", spec.routine},
                     {"workload", spec.workload},
                     {"inputs", list(spec.inputs, schema)},
                     {"outputs", list(spec.outputs, [](const Schema& s) { return Json(s.to_string()); })}};
    if (!schedule.empty()) out.emplace_back("schedule", std::move(schedule));
    if (spec.in_place >= 0) out.emplace_back("in_place", spec.in_place);
    if (!spec.packed.empty()) out.emplace_back("packed", list(spec.packed, tensor));
    if (!spec.constants.empty()) out.emplace_back("constants", list(spec.constants, tensor));
    Json::Object contents;
    for (const auto& [input, elements] : spec.contents)
      contents.emplace_back(input, list(elements, [&](const Dim& d) { return write(d); }));
    if (!contents.empty()) out.emplace_back("contents", std::move(contents));
    if (!attributes.empty()) out.emplace_back("attributes", std::move(attributes));
    return out;
  }

  static Json::Array write(const std::vector<LoopItem::Axis>& axes) {
    return list(axes, [](const LoopItem::Axis& a) { return Json(Json::Array{a.axis, a.reverse}); });
  }

  Json write(const Item& item) {
    Json::Object out{{"node", item.node}, {"op", item.op}, {"routine", item.routine}};
    const auto add = [&](const char* key, Json value) { out.emplace_back(key, std::move(value)); };
    add("estimate_us", item.estimate_us);
    if (item.alone_us > 0) add("alone_us", item.alone_us);
    add("flops", write(item.flops));
    add("bytes", write(item.bytes));
    if (const auto* step = std::get_if<StepItem>(&item.what)) {
      add("kind", "step");
      add("reads", ints(step->inputs));
      add("writes", ints(step->outputs));
      add(kSpecKey.data(), write(*step->spec));
    } else if (const auto* dims = std::get_if<DimsItem>(&item.what)) {
      add("kind", "dims");
      add("elements", list(dims->elements, [&](const Dim& d) { return write(d); }));
      add("output", dims->output);
    } else if (const auto* branch = std::get_if<IfItem>(&item.what)) {
      add("kind", "if");
      add("predicate", branch->predicate);
      add("arguments", ints(branch->arguments));
      add("results", ints(branch->results));
      add("then", number_of(*branch->then_block));
      add("else", number_of(*branch->else_block));
    } else {
      const auto& loop = std::get<LoopItem>(item.what);
      add("kind", loop.kind == LoopItem::Kind::Loop ? "loop" : "scan");
      add("trip_count", loop.trip_count);
      add("condition", loop.condition);
      add("carried", ints(loop.carried));
      add("scanned", ints(loop.scanned));
      add("scanned_axes", write(loop.scanned_axes));
      add("captured", ints(loop.captured));
      add("results", ints(loop.results));
      add("collected_axes", write(loop.collected_axes));
      add("body", number_of(*loop.body));
    }
    return out;
  }

  Json write(const Region& region) {
    return Json::Object{
        {"items", list(region.items, [&](const Item& i) { return write(i); })},
        {"sources", list(region.sources,
                         [&](const SymbolSource& s) {
                           symbols_.emplace(s.symbol.name, s.symbol);
                           Json::Array source{s.symbol.name, s.symbol.range.lo, s.symbol.range.hi, s.slot, s.axis};
                           if (s.symbol.formula) source.push_back(write(*s.symbol.formula));
                           return Json(std::move(source));
                         })},
        {"guards", list(region.guards, [&](const Guard& g) {
           return Json(
               Json::Array{kRelationNames[static_cast<size_t>(g.relation)], write(g.left), write(g.right), g.message});
         })}};
  }

  Json write(const Block& block) {
    return Json::Object{{"slots", list(block.slots, [&](const Slot& s) { return write(s); })},
                        {"arguments", ints(block.arguments)},
                        {"results", ints(block.results)},
                        {"regions", list(block.regions, [&](const Region& r) { return write(r); })}};
  }

  Blobs& blobs_;
  std::vector<const Block*> blocks_;
  std::map<std::string, Symbol> symbols_;
};

}  // namespace

void save_variants(const std::string& path, std::span<const SavedModule> variants) {
  Blobs blobs;
  std::vector<std::string> plans;
  for (const SavedModule& v : variants) plans.push_back(PlanWriter(blobs).write(v).dump());
  const std::map<std::string, std::string> metadata = variants_metadata(variants, std::move(plans));
  const std::string header = safetensors_header(metadata, blobs.all());
  const std::vector<std::byte> zeros(static_cast<size_t>(kBlobAlignment));
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(header))};
  for (const Blob& blob : blobs.all()) {
    pieces.push_back(blob.bytes);
    pieces.push_back(std::span(zeros).first(static_cast<size_t>(padded_bytes(blob)) - blob.bytes.size()));
  }
  write_file(path, pieces);
}

}  // namespace neo
