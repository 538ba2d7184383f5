#include <algorithm>

#include "base/check.h"
#include "routines/cost/loop_nest.h"
#include "routines/cost/step_cost.h"
#include "routines/routine.h"
#include "routines/space.h"

namespace neo {
Workload Workload::of(const Node& node) {
  return of(std::vector<const Node*>{&node});
}

bool Workload::is_exact() const {
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->int_attr("exact", 0) != 0; });
}

Workload Workload::parsed(std::vector<const Node*> nodes) {
  std::vector<Value*> inner;
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    for (Value* v : nodes[i]->outputs) {
      if (v && v->name.size() > 1 && v->name[0] == 'y' &&
          v->name.find_first_not_of("0123456789", 1) == std::string::npos)
        inner.push_back(v);
    }
  }
  return of(std::move(nodes), std::move(inner));
}

Workload Workload::of(std::vector<const Node*> nodes, std::vector<Value*> inner) {
  NEO_ASSERT(!nodes.empty());
  Workload w;
  w.nodes = std::move(nodes);
  for (const Node* node : w.nodes) {
    for (Value* v : node->inputs) {
      if (!v || w.input_index(v) >= 0) continue;
      if (v->producer && std::find(w.nodes.begin(), w.nodes.end(), v->producer) != w.nodes.end()) continue;
      w.inputs.push_back(v);
    }
  }
  for (Value* v : w.root().outputs) {
    if (v) w.outputs.push_back(v);
  }
  w.outputs.insert(w.outputs.end(), inner.begin(), inner.end());
  return w;
}

int Workload::input_index(const Value* value) const {
  const auto it = std::find(inputs.begin(), inputs.end(), value);
  return it == inputs.end() ? -1 : static_cast<int>(it - inputs.begin());
}

Work Workload::work(const OpRegistry& ops) const {
  Work total;
  for (const Node* node : nodes) {
    const Op* op = ops.find(node->op);
    if (op && op->work) {
      total.flops = total.flops + op->work(*node).flops;
    } else {
      for (const Value* v : node->outputs) {
        if (v && v->shape().has_rank()) total.flops = total.flops + v->shape().element_count();
      }
    }
  }
  const auto traffic = [&](const Value* v) {
    if (v->type.is_tensor() && v->shape().has_rank())
      total.bytes = total.bytes + v->shape().element_count() * Dim(item_bytes(v->dtype()));
  };
  for (const Value* v : inputs) traffic(v);
  for (const Value* v : outputs) traffic(v);
  return total;
}

Schema plain_schema(const Type& type) {
  return Schema::plain(type.dtype, type.is_tensor() && type.shape.has_rank() ? type.shape.rank() : 0);
}

std::string to_string(const Schedule& schedule) {
  std::string text;
  for (const auto& [key, value] : schedule) text += str(text.empty() ? "" : " ", key, "=", value);
  return "{" + text + "}";
}

Candidate Candidate::plain(const Workload& workload) {
  Candidate c;
  for (const Value* v : workload.inputs) c.inputs.emplace_back(plain_schema(v->type));
  for (const Value* v : workload.outputs) c.outputs.push_back(plain_schema(v->type));
  return c;
}

Candidate Candidate::reading(const Workload& workload, std::initializer_list<const Value*> read) {
  Candidate c = plain(workload);
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (std::find(read.begin(), read.end(), workload.inputs[i]) == read.end()) c.inputs[i].reset();
  }
  return c;
}

std::string Candidate::text() const {
  std::string text(routine->name());
  if (!schedule.empty()) text += to_string(schedule);
  return text;
}

std::vector<Workload> Routine::matches(const Node& root, const Graph::Users&, const Graph&) const {
  return {Workload::of(root)};
}

Space Routine::space(const Workload&, const Target&) const {
  return {};
}

Candidate Routine::candidate(const Workload& workload, const Target& target, const OpRegistry& ops,
                             const Schedule& schedule) const {
  for (Candidate& c : candidates(workload, target, ops)) {
    if (c.schedule == schedule) return std::move(c);
  }
  NEO_ASSERT(false, name(), " has no schedule ", to_string(schedule));
}

LoopNest Routine::loops(const Candidate&, const Target&) const {
  return {};
}

double schema_bytes(const Type& type, const Schema& schema) {
  if (!type.is_tensor() || !type.shape.has_rank() || type.dtype == DType::String) return 0;
  double bytes = static_cast<double>(item_bytes(type.dtype));
  for (const int64_t d : schema.layout.physical_dims(type.shape.hint_dims())) bytes *= static_cast<double>(d);
  return bytes;
}

Arg hint_arg(const Type& type, const Schema& schema) {
  const Dims dims = type.shape.hint_dims();
  return {type.dtype, schema.layout, dims, dense_strides(schema.layout.physical_dims(dims)), true};
}

void price(Candidate& candidate, const Workload& workload, StepLoad load, const Target& target) {
  if (load.reads == 0) {
    for (size_t i = 0; i < workload.inputs.size(); ++i) {
      if (candidate.inputs[i]) load.reads += schema_bytes(workload.inputs[i]->type, *candidate.inputs[i]);
    }
  }
  if (load.writes == 0) {
    for (size_t i = 0; i < workload.outputs.size(); ++i)
      load.writes += schema_bytes(workload.outputs[i]->type, candidate.outputs[i]);
  }
  candidate.cost.load = load;
  candidate.cost.time_us = step_us(load, target);
}

}  // namespace neo
