#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "base/check.h"
#include "ir/literal.h"
#include "ir/text.h"
#include "ops/infer.h"
#include "routines/routine.h"

namespace neo {
namespace {

class Printer {
 public:
  explicit Printer(const Workload& workload) : workload_(workload) {
    int inputs = 0;
    int constants = 0;
    int outputs = 0;
    for (const Value* v : workload.inputs) names_[v] = v->constant ? str("k", constants++) : str("i", inputs++);
    for (const Value* v : workload.outputs) {
      names_[v] = workload.outputs.size() == 1 ? "y" : str("y", outputs++);
    }
  }

  std::string run() {
    std::string text;
    for (const Node* node : workload_.nodes) text += str(text.empty() ? "" : " ", print_node(*node));
    std::string operands;
    for (const Value* v : workload_.inputs) {
      operands += str(operands.empty() ? " <- " : ", ", names_.at(v), ": ", print_operand(*v));
    }
    std::string symbols;
    std::map<std::string, Symbol> used;
    for (const Value* v : workload_.inputs) collect(*v, used);
    for (const auto& [name, symbol] : used) {
      symbols += str(symbols.empty() ? " where " : ", ", print_name(name), " in [", symbol.range.lo, ",",
                     symbol.range.hi, "]");
      if (symbol.hint > 0) symbols += str(" hint ", symbol.hint);
    }
    return text + (operands.empty() ? " <-" : operands) + symbols;
  }

 private:
  static void collect(const Value& value, std::map<std::string, Symbol>& used) {
    if (!value.type.is_tensor() || !value.shape().has_rank()) return;
    for (const Dim& d : value.shape().dims()) d.collect_symbols(used);
  }

  static std::string print_operand(const Value& value) {
    if (value.constant && value.constant->size() <= kWrittenElements)
      return print_tensor(*value.constant, kWrittenElements);
    return value.type.to_string();
  }

  std::string name_of(const Value* value) {
    if (!value) return "-";
    const auto [it, fresh] = names_.try_emplace(value, str("t", temporaries_));
    if (fresh) ++temporaries_;
    return it->second;
  }

  std::string print_node(const Node& node) {
    std::string inputs;
    for (const Value* v : node.inputs) inputs += str(inputs.empty() ? "" : ", ", name_of(v));
    std::string outputs;
    for (const Value* v : node.outputs) outputs += str(outputs.empty() ? "" : ", ", name_of(v));
    std::string attrs;
    for (const auto& [key, value] : node.attrs)
      attrs += str(attrs.empty() ? " {" : ", ", key, "=", print_attr(value, kWrittenElements));
    return str(outputs, " = ", print_name(node.op), "(", inputs, ")", attrs, attrs.empty() ? "" : "}");
  }

  const Workload& workload_;
  std::map<const Value*, std::string> names_;
  int temporaries_ = 0;
};

// The short form of a square convolution or a matrix product: "conv n1 c64 hw56 k64 f3 s1 p1 float32", "gemm m1 n1000
// k2048 float32".
class ShortForm {
 public:
  explicit ShortForm(std::string_view text) {
    std::istringstream in{std::string(text)};
    in >> op_;
    for (std::string field; in >> field;) {
      const size_t digits = field.find_first_of("0123456789");
      if (find_dtype(field)) {
        dtype_ = field;
      } else if (field == "relu" || field == "bias") {
        fields_[field] = 1;
      } else {
        NEO_CHECK(digits != std::string::npos && digits > 0 &&
                      field.find_first_not_of("0123456789", digits) == std::string::npos && field.size() - digits < 10,
                  Model, "workload", "a field must be letters and a number. Got \"", field,
                  "\", expected for example c64");
        fields_[field.substr(0, digits)] = std::stoll(field.substr(digits));
      }
    }
  }

  bool known() const { return op_ == "conv" || op_ == "gemm"; }

  std::string expand() const {
    const std::string bias = fields_.count("bias") ? "k1" : "-";
    const std::string clamp = fields_.count("relu") ? "clamp_min=0.0, " : "";
    if (op_ == "gemm") {
      const std::string bias_type = fields_.count("bias") ? str(", k1: ", dtype_, "[", get("n"), "]") : "";
      const std::string attrs = clamp.empty() ? "" : " {clamp_min=0.0}";
      return str("y = MatMul(i0, k0, ", bias, ")", attrs, " <- i0: ", dtype_, "[", get("m"), ",", get("k"),
                 "], k0: ", dtype_, "[", get("k"), ",", get("n"), "]", bias_type);
    }
    const int64_t h = get("h", get("hw", 0)), w = get("w", get("hw", 0)), f = get("f"), s = get("s", 1),
                  p = get("p", 0), d = get("d", 1);
    const int64_t group = get("g", 1);
    NEO_CHECK(group > 0 && get("c") % group == 0, Model, "workload", "channels must be divisible by groups. Got c",
              get("c"), " g", group);
    const std::string bias_type = fields_.count("bias") ? str(", k1: ", dtype_, "[", get("k"), "]") : "";
    return str("y = Conv(i0, k0, ", bias, ") {", clamp, "dilations=[", d, ", ", d, "], group=", group,
               ", kernel_shape=[", f, ", ", f, "], pads=[", p, ", ", p, ", ", p, ", ", p, "], strides=[", s, ", ", s,
               "]} <- i0: ", dtype_, "[", get("n", 1), ",", get("c"), ",", h, ",", w, "], k0: ", dtype_, "[", get("k"),
               ",", get("c") / group, ",", f, ",", f, "]", bias_type);
  }

 private:
  int64_t get(const std::string& field, std::optional<int64_t> fallback = std::nullopt) const {
    const auto it = fields_.find(field);
    NEO_CHECK(it != fields_.end() || fallback, Model, "workload", op_, " needs the field ", field, ". Got none");
    return it != fields_.end() ? it->second : *fallback;
  }

  std::string op_;
  std::string dtype_ = "float32";
  std::map<std::string, int64_t> fields_;
};

// "i0: type, k0: tensor" cut at its commas outside brackets, braces and quotes.
std::vector<std::pair<std::string, std::string>> split_operands(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> operands;
  if (text.empty()) return operands;
  int depth = 0;
  bool quoted = false;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
      continue;
    }
    quoted = c == '"';
    depth += (c == '[' || c == '{' || c == '(') - (c == ']' || c == '}' || c == ')');
    if (c != ',' || depth > 0) continue;
    const std::string_view part = text.substr(start, i - start);
    start = i + 1;
    const size_t colon = part.find(':');
    NEO_CHECK(colon != std::string_view::npos, Model, "workload", "an operand must have a type. Got \"", part,
              "\", expected \"i0: float32[1,64]\"");
    const size_t first = part.find_first_not_of(' ');
    operands.emplace_back(part.substr(first, colon - first), part.substr(colon + 1));
  }
  return operands;
}

}  // namespace

std::string Workload::text() const {
  return Printer(*this).run();
}

ParsedWorkload parse_workload(std::string_view given, const OpRegistry& ops, const WorkloadFacts* facts) {
  std::string text(given);
  if (const ShortForm form(given.find('=') == std::string_view::npos ? given : std::string_view()); form.known())
    text = form.expand();
  if (text.ends_with(" <-")) text += " ";  // nothing is read
  const size_t arrow = text.rfind(" <- ");
  NEO_CHECK(arrow != std::string::npos, Model, "workload", "a workload must name its operands. Got \"",
            given.substr(0, 60), "\", expected \"... <- i0: float32[1,64]\"");
  std::string operands = text.substr(arrow + 4);
  std::string symbols;
  if (const size_t where = operands.rfind(" where "); where != std::string::npos) {
    symbols = "symbols " + operands.substr(where + 7) + "\n";
    operands.resize(where);
  }
  std::string inputs;
  std::string constants;
  for (const auto& [name, type] : split_operands(operands)) {
    if (name.starts_with("k")) {
      const bool whole = type.find('{') != std::string::npos || type.find("splat") != std::string::npos;
      const std::string contents = whole ? "" : !facts ? " splat 0" : facts->constants(name) ? " #" + name : " absent";
      constants += str("constant ", name, " =", type, contents, "\n");
    } else {
      inputs += str(inputs.empty() ? "" : ", ", name, ":", type);
    }
  }
  const std::string body = text.substr(0, arrow);
  ParsedWorkload parsed;
  parsed.graph = parse_graph(str(symbols, "graph \"workload\" (", inputs, ") -> () {\n", constants, body, "\n}"),
                             facts ? facts->constants : nullptr);
  if (facts) {
    for (Value* v : parsed.graph->inputs) {
      const auto contents = facts->contents.find(v->name);
      if (contents == facts->contents.end()) continue;
      const bool fits = v->type.is_tensor() && is_integer(v->dtype()) && v->shape().is_static() &&
                        v->shape().rank() <= 1 && v->shape().element_count().is(std::ssize(contents->second));
      NEO_CHECK(fits, Model, "workload", "known elements must be those of an integer vector. Got ",
                contents->second.size(), " for ", v->type.to_string());
      v->contents = contents->second;
    }
  }
  NEO_CHECK(!parsed.graph->nodes().empty(), Model, "workload", "a workload must have a node. Got none");
  std::vector<const Node*> nodes;
  for (const auto& n : parsed.graph->nodes()) nodes.push_back(n.get());
  parsed.workload = Workload::parsed(std::move(nodes));
  parsed.graph->outputs = parsed.workload.outputs;
  infer_graph(*parsed.graph, ops);
  return parsed;
}

}  // namespace neo
