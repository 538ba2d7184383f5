#include <algorithm>
#include <charconv>
#include <map>

#include "base/check.h"
#include "ir/graph.h"
#include "ir/literal.h"
#include "ir/text.h"

namespace neo {
namespace {

constexpr int kMaxParsedDepth = 64;

using Constants = std::function<std::optional<Tensor>(std::string_view)>;

class GraphParser {
 public:
  GraphParser(std::string_view text, const Constants& constants) : text_(text), constants_(constants) {}

  std::unique_ptr<Graph> parse() {
    table_ = std::make_shared<SymbolTable>();
    if (accept_word("symbols")) parse_symbols();
    auto graph = parse_graph(0);
    skip();
    if (at_ != text_.size()) refuse("the end");
    return graph;
  }

 private:
  [[noreturn]] void refuse_at(size_t at, const std::string& rule) const {
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < at && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    fail(ErrorKind::Model, "parse", str(rule, " - at ", line, ":", column));
  }
  [[noreturn]] void refuse(std::string_view expected) const {
    std::string got = "the end";
    if (at_ < text_.size()) got = quote(text_.substr(at_, std::min<size_t>(12, text_.find('\n', at_) - at_)));
    refuse_at(at_, str("the text does not follow the grammar. Got ", got, ", expected ", expected));
  }

  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (text_.substr(at_).starts_with("//")) {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool peek(std::string_view token) {
    skip();
    return text_.substr(at_).starts_with(token);
  }
  bool accept(std::string_view token) {
    if (!peek(token)) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) refuse(str("'", token, "'"));
  }
  bool accept_word(std::string_view word) {
    if (!peek(word)) return false;
    if (at_ + word.size() < text_.size() && is_word(text_[at_ + word.size()])) return false;
    at_ += word.size();
    return true;
  }
  void expect_word(std::string_view word) {
    if (!accept_word(word)) refuse(str("'", word, "'"));
  }

  std::string string() {
    skip();
    if (at_ == text_.size() || text_[at_] != '"') refuse("a string");
    const size_t begin = at_;
    auto result = unquote(text_, at_);
    if (!result) refuse_at(begin, "a string must end with a quote. Got none");
    return *std::move(result);
  }
  std::string name() {
    skip();
    if (at_ < text_.size() && text_[at_] == '"') return string();
    const size_t begin = at_;
    if (at_ == text_.size() || !is_word_start(text_[at_])) refuse("a name");
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  // The text from here up to where brackets and quotes are closed and one of `ends` follows.
  std::string_view balanced(std::string_view ends) {
    skip();
    const size_t begin = at_;
    int depth = 0;
    while (at_ < text_.size() && text_[at_] != '\n') {
      const char c = text_[at_];
      if (depth == 0 && ends.find(c) != std::string_view::npos) break;
      if (c == '"') {
        if (!unquote(text_, at_)) refuse_at(begin, "a string must end with a quote. Got none");
        continue;
      }
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      if (depth < 0) break;
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  // Runs a parser of a part; its errors get the part's position.
  template <class F>
  auto part(size_t at, const F& f) {
    try {
      return f();
    } catch (const Error& e) {
      refuse_at(at, e.what());
    }
  }

  // "float32[N,3]", "seq(float32[*])": a word, then one pair of brackets.
  std::string_view type_text() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == begin || at_ == text_.size() || (text_[at_] != '[' && text_[at_] != '(')) refuse("a type");
    const char open = text_[at_];
    ++at_;
    balanced(open == '[' ? "]" : ")");
    expect(open == '[' ? "]" : ")");
    return text_.substr(begin, at_ - begin);
  }
  Type type() {
    skip();
    const size_t begin = at_;
    const std::string_view text = type_text();
    return part(begin, [&] { return Type::parse(text, lookup_); });
  }

  int64_t integer() {
    skip();
    int64_t x = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), x);
    if (error != std::errc()) refuse("an integer");
    at_ = static_cast<size_t>(end - text_.data());
    return x;
  }

  void parse_symbols() {
    do {
      skip();
      const size_t begin = at_;
      Symbol symbol;
      symbol.name = name();
      if (accept_word("in")) {
        expect("[");
        symbol.range.lo = integer();
        expect(",");
        symbol.range.hi = integer();
        expect("]");
        if (symbol.range.lo >= symbol.range.hi) refuse_at(begin, "the range of a symbol must hold several sizes");
      }
      if (accept_word("hint")) symbol.hint = integer();
      if (accept("=")) {
        const std::vector<Dim> formula = sizes();
        if (formula.size() != 1) refuse_at(begin, "a symbol must stand for one size");
        symbol.formula = std::make_shared<const Dim>(formula.front());
        table_->note(symbol);
      }
      table_->reserve(symbol.name);
      if (!symbols_.emplace(symbol.name, symbol).second) refuse_at(begin, "symbols must have different names");
    } while (accept(","));
  }

  std::unique_ptr<Graph> parse_graph(int depth) {
    if (depth > kMaxParsedDepth)
      refuse_at(at_, str("bodies must nest at most ", kMaxParsedDepth, " deep. Got deeper ones"));
    auto graph = std::make_unique<Graph>(table_);
    expect_word("graph");
    graph->name = string();
    expect("(");
    if (!accept(")")) {
      do {
        const std::string input = new_name(*graph);
        expect(":");
        graph->add_input(input, type());
      } while (accept(","));
      expect(")");
    }
    expect("->");
    expect("(");
    std::vector<std::pair<std::string, size_t>> outputs;
    if (!accept(")")) {
      do {
        skip();
        const size_t begin = at_;
        outputs.emplace_back(name(), begin);
      } while (accept(","));
      expect(")");
    }
    expect("{");
    while (!accept("}")) {
      if (accept_word("constant")) {
        const std::string constant = new_name(*graph);
        expect("=");
        graph->add_constant(constant, tensor());
      } else {
        parse_node(*graph, depth);
      }
    }
    for (const auto& [output, begin] : outputs) graph->outputs.push_back(get_value(*graph, output, begin));
    return graph;
  }

  std::string new_name(const Graph& graph) {
    skip();
    const size_t begin = at_;
    std::string result = name();
    if (result.empty()) refuse_at(begin, "a value must have a name. Got an empty one");
    if (graph.find_value(result))
      refuse_at(begin, str("values must have different names. Got ", quote(result), " again"));
    return result;
  }
  Value* get_value(const Graph& graph, const std::string& value, size_t at) const {
    Value* v = graph.find_value(value);
    if (!v) refuse_at(at, str("a value must be defined before it is used. Got ", quote(value)));
    return v;
  }

  void parse_node(Graph& graph, int depth) {
    skip();
    const size_t begin = at_;
    std::string node_name;
    if (at_ < text_.size() && text_[at_] == '"') {
      node_name = string();
      if (!accept(":")) {
        node_name.clear();
        at_ = begin;
      }
    }
    std::vector<std::string> outputs;
    if (!accept("=")) {
      do {
        if (accept("-")) {
          outputs.emplace_back();
        } else {
          const size_t at = at_;
          outputs.push_back(new_name(graph));
          if (std::count(outputs.begin(), outputs.end(), outputs.back()) > 1) {
            refuse_at(at, str("values must have different names. Got ", quote(outputs.back()), " again"));
          }
        }
      } while (accept(","));
      expect("=");
    }
    const std::string op = name();
    expect("(");
    std::vector<Value*> inputs;
    if (!accept(")")) {
      do {
        if (accept("-")) {
          inputs.push_back(nullptr);
        } else {
          skip();
          const size_t at = at_;
          inputs.push_back(get_value(graph, name(), at));
        }
      } while (accept(","));
      expect(")");
    }
    Attrs attrs;
    if (accept("{")) attrs = parse_attrs();
    Node* node = graph.add_node(op, std::move(inputs), outputs, std::move(attrs), node_name);
    if (accept(":")) parse_output_types(*node);
    if (accept_word("new")) {
      do {
        const std::string symbol = name();
        const auto it = symbols_.find(symbol);
        table_->reserve(symbol);
        node->symbols.push_back(it != symbols_.end() ? it->second : Symbol{symbol, {}, 0});
      } while (accept(","));
    }
    if (accept_word("with")) {
      expect("{");
      do {
        std::string body = name();
        expect("=");
        node->bodies.emplace_back(std::move(body), parse_graph(depth + 1));
      } while (!accept("}"));
    }
  }

  void parse_output_types(Node& node) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (i > 0) expect(",");
      if (node.outputs[i]) {
        node.outputs[i]->type = type();
      } else {
        expect("-");
      }
    }
  }

  Attrs parse_attrs() {
    Attrs attrs;
    do {
      skip();
      const size_t begin = at_;
      std::string key = name();
      expect("=");
      Attr attr = parse_attr();
      if (!attrs.emplace(std::move(key), std::move(attr)).second)
        refuse_at(begin, "attributes must have different names");
    } while (accept(","));
    expect("}");
    return attrs;
  }

  std::vector<Dim> sizes() {
    skip();
    const size_t begin = at_;
    expect("[");
    balanced("]");
    expect("]");
    const Shape shape = part(begin, [&] { return Shape::parse(text_.substr(begin, at_ - begin), lookup_); });
    if (!shape.has_rank()) refuse_at(begin, "a list of sizes must have a length. Got [*]");
    return shape.dims();
  }

  Attr parse_attr() {
    skip();
    if (peek("\"")) return string();
    if (peek("[")) return list();
    if (accept("ints[]")) return std::vector<int64_t>();
    if (accept("floats[]")) return std::vector<double>();
    if (accept("strings[]")) return std::vector<std::string>();
    if (peek("dims[")) {
      at_ += 4;
      return sizes();
    }
    size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    if (end < text_.size() && text_[end] == '[') return tensor();
    return number();
  }

  // An int64_t or a double, told apart by how it is written.
  Attr number() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() && (is_word(text_[at_]) || text_[at_] == '-' || text_[at_] == '+')) ++at_;
    const std::string_view text = text_.substr(begin, at_ - begin);
    if (text.find_first_of(".en") == std::string_view::npos) {
      int64_t x = 0;
      if (parse_element(text, DType::Int64, &x)) return x;
    } else {
      double x = 0;
      if (parse_element(text, DType::Float64, &x)) return x;
    }
    at_ = begin;
    refuse("an attribute");
  }

  Attr list() {
    expect("[");
    std::vector<int64_t> ints;
    std::vector<double> floats;
    std::vector<std::string> strings;
    do {
      if (peek("\"")) {
        strings.push_back(string());
      } else {
        const Attr x = number();
        if (const auto* i = std::get_if<int64_t>(&x)) {
          ints.push_back(*i);
        } else {
          floats.push_back(std::get<double>(x));
        }
      }
      if ((ints.empty() ? 0 : 1) + (floats.empty() ? 0 : 1) + (strings.empty() ? 0 : 1) > 1) {
        refuse("a list of elements of one kind");
      }
    } while (accept(","));
    expect("]");
    if (!ints.empty()) return ints;
    if (!floats.empty()) return floats;
    return strings;
  }

  Tensor tensor() {
    skip();
    const size_t begin = at_;
    const Type held = type();
    if (!held.is_tensor() || held.dtype == DType::Undefined || !held.shape.is_static()) {
      refuse_at(begin, "a constant must have a dtype and constant sizes");
    }
    const Dims dims = held.shape.to_dims();
    const int64_t count = part(begin, [&] { return element_count(dims); });
    if (accept_word("splat")) {
      std::string text;
      alignas(16) char number[16] = {};
      element(held.dtype, held.dtype == DType::String ? static_cast<void*>(&text) : number);
      return Tensor::splat(held.dtype, dims, held.dtype == DType::String ? static_cast<const void*>(&text) : number);
    }
    if (accept_word("absent")) return Tensor::absent(held.dtype, dims);
    if (accept("#")) return find_constant(held.dtype, dims);
    expect("{");
    if (count > static_cast<int64_t>(text_.size())) refuse_at(begin, str("a constant must list ", count, " elements"));
    Tensor result(held.dtype, dims);
    for (int64_t i = 0; i < count; ++i) {
      if (i > 0) expect(",");
      element(held.dtype, static_cast<char*>(result.data()) + i * item_bytes(held.dtype));
    }
    expect("}");
    return result;
  }

  void element(DType dtype, void* to) {
    skip();
    const size_t begin = at_;
    if (dtype == DType::String) {
      *static_cast<std::string*>(to) = string();
      return;
    }
    const std::string_view text = balanced(",} ");
    if (text.empty() || !parse_element(text, dtype, to)) {
      at_ = begin;
      refuse(str("an element of ", neo::name(dtype)));
    }
  }

  Tensor find_constant(DType dtype, const Dims& dims) {
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    const std::string_view hash = text_.substr(begin, at_ - begin);
    const auto found = constants_ ? constants_(hash) : std::nullopt;
    if (!found) refuse_at(begin, str("a constant must be known. Got the hash \"", hash, "\""));
    if (found->dtype() != dtype || found->dims() != dims) {
      refuse_at(begin,
                str("a constant must be of its type. Got ", neo::name(found->dtype()), to_string(found->dims())));
    }
    return *found;
  }

  std::string_view text_;
  const Constants& constants_;
  size_t at_ = 0;
  std::shared_ptr<SymbolTable> table_;
  std::map<std::string, Symbol, std::less<>> symbols_;
  SymbolLookup lookup_ = [this](std::string_view name) -> std::optional<Symbol> {
    const auto it = symbols_.find(name);
    return it == symbols_.end() ? std::nullopt : std::optional<Symbol>(it->second);
  };
};

}  // namespace

std::unique_ptr<Graph> parse_graph(std::string_view text, const Constants& constants) {
  return GraphParser(text, constants).parse();
}

}  // namespace neo
