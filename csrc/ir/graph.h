#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "ir/tensor.h"

namespace neo {

class Graph;
struct Node;

// The type of a value: a tensor, a sequence of a type, an optional, or a map from keys to scalars.
struct Type {
  enum class Kind : uint8_t { Tensor, Sequence, Optional, Map };
  Kind kind = Kind::Tensor;
  DType dtype = DType::Undefined;  // tensors
  Shape shape;                     // tensors
  // Of sequences and optionals; of maps their values, whose own element is the type of the keys.
  std::shared_ptr<const Type> element;

  static Type tensor(DType dtype, Shape shape) { return {Kind::Tensor, dtype, std::move(shape), nullptr}; }
  static Type sequence(Type element) {
    return {Kind::Sequence, DType::Undefined, {}, std::make_shared<Type>(std::move(element))};
  }
  static Type optional(Type element) {
    return {Kind::Optional, DType::Undefined, {}, std::make_shared<Type>(std::move(element))};
  }
  // A Type error where the key is no integer and no string.
  static Type map(DType key, DType value);
  bool is_tensor() const { return kind == Kind::Tensor; }
  DType key() const { return kind == Kind::Map ? element->element->dtype : DType::Undefined; }
  std::string to_string() const;  // "float32[N,3]", "seq(float32[*])", "optional(int64[2])", "map(string,float32[])"
  static Type parse(std::string_view text, const SymbolLookup& symbols = {});
};
bool operator==(const Type& a, const Type& b);

// A result of a node, an input of the graph, or a constant. A result may be a constant too: then its node is there for
// routines that read what the constant was made of, and never runs.
struct Value {
  std::string name;  // unique in its graph
  Type type;
  std::optional<Tensor> constant;            // set: known at compile time
  std::optional<std::vector<Dim>> contents;  // set: an integer tensor whose elements, row by row, are known expressions
  Node* producer = nullptr;                  // null: a graph input or a constant of its own
  int output_index = 0;

  bool is_constant() const { return constant.has_value(); }
  DType dtype() const { return type.dtype; }
  const Shape& shape() const { return type.shape; }
};

// Dims is a list of expressions, e.g. the sizes a Reshape asks for.
using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          std::vector<std::string>, Tensor, std::vector<Dim>>;
bool identical(const Attr& a, const Attr& b);
using Attrs = std::map<std::string, Attr, std::less<>>;

// A condition on sizes that could not be proven; checked when a call binds its shapes.
struct Guard {
  enum class Relation : uint8_t { Equal, LessEqual, Divides, Broadcasts };  // Broadcasts: equal, or one of them is 1
  Relation relation = Relation::Equal;
  Dim left;
  Dim right;
  std::string message;  // the rule that breaks, without values
};

struct Node {
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  std::string op;               // "Conv", "com.microsoft.QLinearAdd", "neo.Dims"
  std::string name;             // the model's own; may be empty
  std::vector<Value*> inputs;   // null: an optional input left out
  std::vector<Value*> outputs;  // null: an optional output nobody asked for
  Attrs attrs;
  // Bodies of If ("then_branch", "else_branch"), Loop and Scan ("body"). A body is closed: outer values that it uses
  // are appended to the node's inputs and to the body's inputs (for If, to the inputs of both branches); Loop and Scan
  // say how many those are in the int attribute "num_captured" (absent: 0), so that the carried values can be told
  // apart.
  std::vector<std::pair<std::string, std::unique_ptr<Graph>>> bodies;
  std::vector<Guard> guards;
  // Sizes that inference of this node introduced, in order; inferring again takes the same ones.
  std::vector<Symbol> symbols;

  Value* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  Value* output(size_t i) const { return i < outputs.size() ? outputs[i] : nullptr; }
  Graph& body(std::string_view name) const;  // asserts that it is there

  // Attributes by type; the default where absent. A value of another type is a Model error that names the node.
  int64_t int_attr(std::string_view key, int64_t fallback) const;
  double float_attr(std::string_view key, double fallback) const;
  std::string string_attr(std::string_view key, std::string_view fallback) const;
  std::vector<int64_t> ints_attr(std::string_view key, std::vector<int64_t> fallback = {}) const;
  std::vector<double> floats_attr(std::string_view key, std::vector<double> fallback = {}) const;
  std::vector<std::string> strings_attr(std::string_view key, std::vector<std::string> fallback = {}) const;
  const Tensor* tensor_attr(std::string_view key) const;  // null where absent
  bool has_attr(std::string_view key) const { return attrs.find(key) != attrs.end(); }

  // For messages: `node "stage2/conv1"`, or `the Conv that makes "x"` when the model gave no name.
  std::string place() const;
};

// Names for sizes that appear while a graph is built; shared by a graph and its bodies.
class SymbolTable {
 public:
  Dim fresh(std::string_view stem, Range range = {0, kMaxSymbol});  // "stem", "stem_1", ...
  void reserve(const std::string& name);                            // fresh() will not give this name
  // A symbol that stands for an expression, the same one for the same expression. Constants and symbols stay.
  Dim define(const Dim& formula);
  void note(const Symbol& symbol);  // which stands for a formula: define() gives it for that

 private:
  std::map<std::string, int, std::less<>> used_;
  std::map<std::string, Dim, std::less<>> defined_;  // by the formula's text
};

class Graph {
 public:
  Graph();
  explicit Graph(std::shared_ptr<SymbolTable> symbols);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  std::string name;
  std::vector<Value*> inputs;
  std::vector<Value*> outputs;
  const std::shared_ptr<SymbolTable>& symbols() const { return symbols_; }

  // Nodes in topological order.
  const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  const std::vector<std::unique_ptr<Value>>& values() const { return values_; }

  // Names that are taken get a suffix.
  Value* add_input(std::string_view name, Type type);
  Value* add_constant(std::string_view name, Tensor tensor);
  // Appends a node with one new value for each output name; an empty name is an output left out.
  // Types of the outputs are set by shape inference (ops/infer.h).
  Node* add_node(std::string_view op, std::vector<Value*> inputs, const std::vector<std::string>& output_names,
                 Attrs attrs = {}, std::string_view name = {});
  // The same, before another node.
  Node* insert_before(const Node* position, std::string_view op, std::vector<Value*> inputs,
                      const std::vector<std::string>& output_names, Attrs attrs = {}, std::string_view name = {});
  // A value that has the name already gets a new one.
  void rename(Value* value, std::string_view name);
  Value* find_value(std::string_view name) const;  // null where there is none

  // (node, input index) pairs that read a value, by value; graph outputs are not in it.
  using Users = std::unordered_map<const Value*, std::vector<std::pair<Node*, int>>>;
  Users users() const;
  bool is_output(const Value* value) const;
  // Every reader, graph outputs included, reads `to` instead. An output keeps its name: `to` takes it over.
  void replace_uses(Value* from, Value* to);
  // Removes nodes for which `dead` holds, with their outputs; nobody may read those any more.
  void erase_nodes(const std::function<bool(const Node&)>& dead);
  // Removes constants and values that nothing refers to.
  void erase_unused_values();
  // Sorts nodes topologically, keeping the given order where it can; a cycle is a Model error that names a node on it.
  void sort();

  std::unique_ptr<Graph> clone() const;

 private:
  Value* add_value(std::string_view name);
  std::string unique_name(std::string_view name);

  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<Value>> values_;
  std::unordered_map<std::string, Value*> by_name_;
  std::shared_ptr<SymbolTable> symbols_;
};

// Checks structure: names unique, inputs defined before use, producers consistent, bodies closed, outputs present,
// types set. Throws an Internal error that names the node. Runs after every pass in tests and under NEO_VERIFY=1.
void verify(const Graph& graph);

// The printed form and its parser (docs/ir.md). Constants up to `inline_elements` are printed in full; larger ones
// print as "float32[64,3,7,7] #<hash>" and parse only when `constants` finds the hash. Contents and guards are not
// printed: inference finds them again.
std::string print(const Graph& graph, int64_t inline_elements = 16);
std::unique_ptr<Graph> parse_graph(std::string_view text,
                                   const std::function<std::optional<Tensor>(std::string_view)>& constants = {});
// The hash that print() writes behind '#': 16 hexadecimal digits over dtype, dims and elements.
std::string content_hash(const Tensor& tensor);

}  // namespace neo
