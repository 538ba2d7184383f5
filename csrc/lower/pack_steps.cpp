#include "lower/pack_steps.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "routines/packed_store.h"

namespace neo {
namespace {

StepSpec step_spec_of(const Candidate& candidate, std::string text, const PackedStore& packed) {
  StepSpec spec;
  spec.routine = candidate.routine->name();
  spec.workload = std::move(text);
  spec.inputs = candidate.inputs;
  spec.outputs = candidate.outputs;
  spec.schedule = candidate.schedule;
  spec.in_place = candidate.in_place;
  spec.packed = packed.blobs();
  int inputs = 0;
  for (const Value* v : candidate.workload->inputs) {
    if (!v->constant) {
      const std::string name = str("i", inputs++);
      if (v->contents && v->shape().rank() <= 1) spec.contents[name] = *v->contents;
      continue;
    }
    const bool apart = v->constant->size() > kWrittenElements && !packed.holds(v);
    spec.constants.push_back(apart ? *v->constant : Tensor());
  }
  for (const Node* node : candidate.workload->nodes) {
    for (const auto& [key, attr] : node->attrs) {
      const auto* tensor = std::get_if<Tensor>(&attr);
      if (tensor && tensor->size() > kWrittenElements) spec.attributes.emplace(content_hash(*tensor), *tensor);
    }
  }
  return spec;
}

// Candidates with equal keys may pack the same bytes: routine, number of bytes, and where the constants lie.
using PackingKey = std::pair<std::string, std::vector<const void*>>;

// Finds constants of the same elements, as passes make them of one that several nodes read.
class PackingKeys {
 public:
  PackingKey of(const Candidate& c) {
    PackingKey key{str(c.routine->name(), " ", c.cost.packed_bytes), {}};
    for (const Value* v : c.workload->inputs) key.second.push_back(v->constant ? identity_of(*v->constant) : nullptr);
    return key;
  }

 private:
  // The identity of the first constant with these elements.
  const void* identity_of(const Tensor& constant) {
    // Elements that are not in memory are not written out for it.
    if (!constant.owner() || constant.dtype() == DType::String) return constant.identity();
    const auto [known, is_new] = first_.try_emplace(constant.identity(), constant.identity());
    if (!is_new) return known->second;
    std::vector<Tensor>& alike = by_sample_[sample_of(constant)];
    const auto same =
        std::find_if(alike.begin(), alike.end(), [&](const Tensor& other) { return identical(other, constant); });
    if (same == alike.end()) {
      alike.push_back(constant);
    } else {
      known->second = same->identity();
    }
    return known->second;
  }

  // Sizes and some elements, which seldom agree where others do not.
  static std::string sample_of(const Tensor& constant) {
    constexpr int64_t kSamples = 16;
    std::string sample = str(name(constant.dtype()), to_string(constant.dims()));
    const int64_t item = item_bytes(constant.dtype()), step = std::max<int64_t>(1, constant.size() / kSamples);
    for (int64_t i = 0; i < constant.size(); i += step)
      sample.append(constant.as<char>() + i * item, static_cast<size_t>(item));
    return sample;
  }

  std::unordered_map<const void*, const void*> first_;  // by identity
  std::unordered_map<std::string, std::vector<Tensor>> by_sample_;
};

// Whether the step of a candidate is the spec's but for what its key says: it packs the same bytes.
bool is_made_by(const StepSpec& spec, const Candidate& candidate, const std::string& text) {
  return spec.workload == text && spec.inputs == candidate.inputs && spec.outputs == candidate.outputs &&
         spec.schedule == candidate.schedule && spec.in_place == candidate.in_place;
}

// Whether a spec of it has elements of integer inputs, which its text does not hold.
bool has_contents(const Workload& workload) {
  return std::any_of(workload.inputs.begin(), workload.inputs.end(), [](const Value* v) { return v->contents; });
}

bool have_same_bytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& x, const Tensor& y) {
    return x.dtype() == y.dtype() && x.dims() == y.dims() && x.dtype() != DType::String &&
           (x.data() == y.data() || std::memcmp(x.data(), y.data(), static_cast<size_t>(x.bytes())) == 0);
  });
}

class StepPacker {
 public:
  StepPacker(const std::vector<const Candidate*>& candidates, const Target& target, const OpRegistry& ops,
             ConstantRelease* release)
      : candidates_(candidates),
        target_(target),
        ops_(ops),
        release_(release),
        made_(candidates.size()),
        first_like_(candidates.size()) {
    PackingKeys keys;
    std::map<PackingKey, size_t> first;
    std::map<std::pair<PackingKey, Schedule>, size_t> first_of_schedule;
    for (size_t i = 0; i < candidates.size(); ++i) {
      first_like_[i] = i;
      if (candidates[i]->cost.packed_bytes == 0) continue;
      const PackingKey key = keys.of(*candidates[i]);
      const size_t like = first.emplace(key, i).first->second;
      const size_t leader = first_of_schedule.emplace(std::pair(key, candidates[i]->schedule), i).first->second;
      first_like_[i] = leader == i ? like : leader;
    }
  }

  // In memory the constants lie in the order of the steps, many of which prefetch what lies behind their own. Those
  // with the most are packed first.
  std::vector<StepItem> pack(Team& team) {
    std::vector<int64_t> at(candidates_.size());  // byte of the slab
    int64_t bytes = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      at[i] = bytes;
      if (first_like_[i] == i) bytes += slab_bytes(i);
    }
    const PackedSlab slab(bytes);
    std::vector<size_t> order(candidates_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return candidates_[a]->cost.packed_bytes > candidates_[b]->cost.packed_bytes;
    });
    const auto followers =
        std::stable_partition(order.begin(), order.end(), [&](size_t i) { return first_like_[i] == i; });
    for_each(team, {order.begin(), followers}, [&](size_t i, int) {
      make(i, candidates_[i]->workload->text(), PackedStore(slab, at[i], at[i] + slab_bytes(i)));
    });
    int64_t largest = 0;
    for (auto i = followers; i != order.end(); ++i) largest = std::max(largest, packed_bytes(*i));
    std::vector<std::optional<PackedSlab>> scratch(static_cast<size_t>(team.size()));
    // One step of each schedule comes before those that follow it.
    const auto rest = std::stable_partition(followers, order.end(),
                                            [&](size_t i) { return first_like_[first_like_[i]] == first_like_[i]; });
    for (const auto& [begin, end] : {std::pair(followers, rest), std::pair(rest, order.end())}) {
      for_each(team, {begin, end}, [&](size_t i, int member) {
        follow(i, [&]() -> const PackedSlab& {
          auto& slab = scratch[static_cast<size_t>(member)];
          return slab ? *slab : slab.emplace(PackedSlab::scratch(largest));
        });
      });
    }
    return std::move(made_);
  }

 private:
  int64_t packed_bytes(size_t i) const {
    constexpr int64_t kRounding = 256;
    return candidates_[i]->cost.packed_bytes + kRounding;
  }

  // Bytes of the slab for what a candidate packs: none where that is so large that it has memory of its own.
  int64_t slab_bytes(size_t i) const {
    constexpr int64_t kMaxBytes = int64_t{64} << 20;
    return packed_bytes(i) < kMaxBytes ? packed_bytes(i) : 0;
  }

  // `spec`: the step's own, where there is one already.
  void make(size_t i, std::string text, PackedStore packed, std::shared_ptr<const StepSpec> spec = nullptr) {
    const Candidate& candidate = *candidates_[i];
    made_[i].step = candidate.routine->make(candidate, target_, ops_, packed);
    if (!spec) spec = std::make_shared<StepSpec>(step_spec_of(candidate, std::move(text), packed));
    made_[i].spec = std::move(spec);
    if (release_) release_->made(*candidate.workload, packed);
  }

  // Makes a step behind the first with the same key. Where it could pack other bytes, they go into `scratch`, to be
  // compared.
  template <class Scratch>
  void follow(size_t i, const Scratch& scratch) {
    const Candidate& candidate = *candidates_[i];
    const std::shared_ptr<const StepSpec> first = made_[first_like_[i]].spec;
    std::string text = candidate.workload->text();
    if (is_made_by(*first, candidate, text)) {
      make(i, std::move(text), PackedStore(first->packed), has_contents(*candidate.workload) ? nullptr : first);
      return;
    }
    PackedStore compared(scratch(), 0, packed_bytes(i));
    candidate.routine->make(candidate, target_, ops_, compared);
    const bool is_same = have_same_bytes(compared.blobs(), first->packed);
    make(i, std::move(text), is_same ? PackedStore(first->packed) : PackedStore());
  }

  template <class Make>
  static void for_each(Team& team, const std::vector<size_t>& indices, const Make& make) {
    std::vector<std::exception_ptr> errors(indices.size());
    std::atomic<size_t> next{0};
    team.parallel_for(team.size(), [&](int64_t begin, int64_t end, int member) {
      if (begin == end) return;
      for (size_t k = next++; k < indices.size(); k = next++) {
        try {
          make(indices[k], member);
        } catch (...) {
          errors[k] = std::current_exception();
        }
      }
    });
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }

  const std::vector<const Candidate*>& candidates_;
  const Target& target_;
  const OpRegistry& ops_;
  ConstantRelease* release_;
  std::vector<StepItem> made_;
  // The first candidate with the same key and schedule; of that, the first with the same key.
  std::vector<size_t> first_like_;
};

}  // namespace

std::vector<StepItem> pack_steps(const std::vector<const Candidate*>& candidates, const Target& target,
                                 const OpRegistry& ops, Team& team, ConstantRelease* release) {
  return StepPacker(candidates, target, ops, release).pack(team);
}

std::vector<int64_t> packed_forms(const SelectionProblem& problem) {
  PackingKeys keys;
  std::map<PackingKey, int64_t> numbers;
  std::vector<int64_t> forms;
  for (const auto& variable : problem.nodes) {
    for (const auto& choice : variable.choices) {
      const bool packs = choice.candidate && choice.candidate->cost.packed_bytes > 0;
      forms.push_back(packs ? numbers.emplace(keys.of(*choice.candidate), numbers.size()).first->second : -1);
    }
  }
  forms.resize(forms.size() + 2 * problem.schemas.size(), -1);
  return forms;
}

}  // namespace neo
