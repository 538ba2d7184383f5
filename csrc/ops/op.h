#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "ir/graph.h"

namespace neo {

class OpRegistry;

// How an operator stands to the layout of its operands (NeoCPU 3.2).
enum class LayoutClass : uint8_t {
  Oblivious,  // any layout, as long as all operands share it: elementwise
  Tolerant,   // works in several layouts: convolution, pooling
  Dependent,  // needs the plain one: Reshape, Flatten
};

// Arithmetic and memory traffic of one node.
struct Work {
  Dim flops = 0;
  Dim bytes = 0;
};

// Inference of one node: reads input types and constants, sets output types. Works on symbols: a size that is not known
// is a fresh symbol, a condition that cannot be proven is a guard, a rank that is not known leaves the output unranked.
class InferContext {
 public:
  InferContext(Node& node, const OpRegistry& ops, SymbolTable& symbols) : node_(node), ops_(ops), symbols_(symbols) {}

  const Node& node() const { return node_; }
  int input_count() const { return static_cast<int>(node_.inputs.size()); }
  int output_count() const { return static_cast<int>(node_.outputs.size()); }
  bool has_input(int i) const { return node_.input(static_cast<size_t>(i)) != nullptr; }
  bool has_output(int i) const { return node_.output(static_cast<size_t>(i)) != nullptr; }
  const Type& type(int input) const;
  DType dtype(int input) const { return type(input).dtype; }
  const Shape& shape(int input) const { return type(input).shape; }
  bool ranked(int input) const { return has_input(input) && shape(input).has_rank(); }

  // The elements of an integer input, where they are known: from its constant or its contents.
  std::optional<std::vector<Dim>> contents(int input) const;
  // The same as numbers, where all are constants.
  std::optional<std::vector<int64_t>> constant_ints(int input) const;
  const Tensor* constant(int input) const;  // null where the input is not a constant

  // Output types. An output nobody asked for is skipped.
  void set_output(int i, Type type);
  void set_output(int i, DType dtype, Shape shape) { set_output(i, Type::tensor(dtype, std::move(shape))); }
  // Records known elements of an integer output of rank 0 or 1.
  void set_contents(int i, std::vector<Dim> contents);

  // A size that is not known, named after `stem`; costs take it to be `hint`, unless that is 0. The node keeps its
  // symbols, so inferring again gives the same ones.
  Dim fresh(std::string_view stem, Range range = {0, kMaxSymbol}, int64_t hint = 0);

  // Each proves the condition, throws a Shape error when it cannot hold, or records a guard.
  void require_equal(const Dim& a, const Dim& b, std::string rule);
  void require_less_equal(const Dim& a, const Dim& b, std::string rule);
  void require_divides(const Dim& divisor, const Dim& dividend, std::string rule);
  Dim broadcast(const Dim& a, const Dim& b);
  Shape broadcast(const Shape& a, const Shape& b);  // NumPy's rule; unranked where one is

  // Throws a Model (or other) error "[Op] rule ... - at node".
  [[noreturn]] void fail(ErrorKind kind, const std::string& rule) const;
  void check(bool condition, const std::string& rule) const {
    if (!condition) fail(ErrorKind::Model, rule);
  }
  void check_rank(int input, int rank);  // recorded while unranked, see required_rank()
  // The rank that check_rank() asked of an input that has none yet; -1 where any may do.
  int required_rank(int input) const;
  // A possibly negative axis of an input of known rank; a Model error when it is out of range.
  int axis(int64_t axis, int rank) const;

  // Forgets symbols of an earlier inference that this one did not ask for.
  void drop_stale_symbols();

  // Inference of a body with the given input types, and the known elements of its inputs where there are any (may be
  // shorter); returns the output types. Bodies are inferred by ops/infer.h.
  std::vector<Type> infer_body(std::string_view body, const std::vector<Type>& inputs,
                               const std::vector<std::optional<std::vector<Dim>>>& contents = {});

 private:
  Node& node_;
  const OpRegistry& ops_;
  SymbolTable& symbols_;
  size_t fresh_count_ = 0;
  std::map<int, int> required_ranks_;
};

// One execution of one node on the host: inputs with concrete dims, outputs that are given or allocated here.
class ReferenceContext {
 public:
  ReferenceContext(const Node& node, std::span<const HostValue> inputs, std::span<HostValue> outputs)
      : node_(node), inputs_(inputs), outputs_(outputs) {}

  const Node& node() const { return node_; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  int output_count() const { return static_cast<int>(outputs_.size()); }
  bool has_input(int i) const { return i < input_count() && node_.input(static_cast<size_t>(i)) != nullptr; }
  bool has_output(int i) const { return node_.output(static_cast<size_t>(i)) != nullptr; }
  const HostValue& value(int i) const { return inputs_[static_cast<size_t>(i)]; }
  const Tensor& input(int i) const { return inputs_[static_cast<size_t>(i)].tensor; }

  // The output tensor, allocated unless the caller gave one (then dtype and dims must agree). Zero-sized dims are fine.
  Tensor& output(int i, DType dtype, const Dims& dims);
  void set_output(int i, HostValue value) { outputs_[static_cast<size_t>(i)] = std::move(value); }

  // Whole tensors through one accessor kind. Reading converts every element; writing rounds to the output's dtype.
  std::vector<double> doubles(int input) const;
  std::vector<int64_t> ints(int input) const;

  [[noreturn]] void fail(ErrorKind kind, const std::string& rule) const;
  void check(bool condition, const std::string& rule) const {
    if (!condition) fail(ErrorKind::Shape, rule);
  }
  int axis(int64_t axis, int rank) const;

 private:
  const Node& node_;
  std::span<const HostValue> inputs_;
  std::span<HostValue> outputs_;
};

void store_doubles(const Tensor& output, std::span<const double> elements);
void store_ints(const Tensor& output, std::span<const int64_t> elements);
std::vector<double> load_doubles(const Tensor& tensor);
std::vector<int64_t> load_ints(const Tensor& tensor);

// An operator: what is computed. Attribute and input semantics are those of the newest ONNX opset unless its file says
// more; older opsets are rewritten by the importer.
struct Op {
  std::string name = {};
  int min_inputs = 1;
  int max_inputs = 1;        // -1: any number
  int required_inputs = -1;  // the first so many may not be left out; -1: min_inputs
  int min_outputs = 1;
  int max_outputs = 1;  // -1: any number
  LayoutClass layout = LayoutClass::Dependent;
  void (*infer)(InferContext&) = nullptr;
  void (*reference)(ReferenceContext&) = nullptr;  // null: control flow, lowered to blocks
  Work (*work)(const Node&) = nullptr;             // null: bytes of inputs and outputs, one flop per output element
  std::vector<int> shape_inputs = {};  // inputs that only shape inference needs once their contents are known
  bool random = false;                 // not a function of its inputs: never folded, never merged
};

// The operators a compiler knows. Passed in; standard_ops() gives the table of all families.
class OpRegistry {
 public:
  void add(Op op);  // a name that is taken is an Internal error
  const Op* find(std::string_view name) const;
  const Op& get(std::string_view name) const;  // Unsupported error where there is none
  std::vector<const Op*> all() const;

 private:
  std::map<std::string, Op, std::less<>> ops_;
};

// Every family of ops/, built once.
const OpRegistry& standard_ops();

}  // namespace neo
