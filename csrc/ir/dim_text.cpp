// The printed form of expressions over sizes, and its parser.

#include "base/check.h"
#include "ir/dim.h"
#include "ir/dim_terms.h"
#include "ir/text.h"

namespace neo {
namespace {

constexpr int kMaxDimDepth = 500;

class DimParser {
 public:
  DimParser(std::string_view text, const SymbolLookup& symbols) : text_(text), symbols_(symbols) {}

  Dim parse() {
    Dim d = sum(0);
    skip_spaces();
    if (at_ != text_.size()) refuse("the end");
    return d;
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    fail(ErrorKind::Model, "size",
         str("a size is written like 64, N or floordiv(N + 1, 2). Got \"", text_, "\", expected ", expected,
             " at column ", at_ + 1));
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(std::string{'\'', c, '\''});
  }

  Dim sum(int depth) {
    if (depth > kMaxDimDepth) refuse(str("at most ", kMaxDimDepth, " levels"));
    Dim d = product(accept('-'), depth);
    for (;;) {
      if (accept('+')) {
        d = d + product(false, depth);
      } else if (accept('-')) {
        d = d + product(true, depth);
      } else {
        return d;
      }
    }
  }

  Dim product(bool negative, int depth) {
    skip_spaces();
    Dim d;
    if (at_ < text_.size() && is_digit(text_[at_])) {
      d = integer(negative);
    } else {
      d = factor(depth);
      if (negative) d = Dim(-1) * d;
    }
    while (accept('*')) d = d * factor(depth);
    return d;
  }

  Dim integer(bool negative) {
    int64_t value = 0;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      const int digit = text_[at_] - '0';
      if (__builtin_mul_overflow(value, int64_t{10}, &value) ||
          __builtin_add_overflow(value, int64_t{negative ? -digit : digit}, &value)) {
        refuse("a number of at most 64 bits");
      }
    }
    return value;
  }

  Dim factor(int depth) {
    skip_spaces();
    if (at_ == text_.size()) refuse("a size");
    const char c = text_[at_];
    if (is_digit(c)) return integer(false);
    if (accept('(')) {
      Dim d = sum(depth + 1);
      expect(')');
      return d;
    }
    if (c == '"') return symbol(quoted());
    if (!is_word_start(c)) refuse("a size");
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    return accept('(') ? call(word, depth) : symbol(word);
  }

  Dim symbol(const std::string& name) const {
    const auto known = symbols_ ? symbols_(name) : std::nullopt;
    return known ? Dim::symbol(*known) : Dim::symbol(name);
  }

  Dim call(std::string_view function, int depth) {
    using Operation = Dim (*)(const Dim&, const Dim&);
    static constexpr std::pair<std::string_view, Operation> kFunctions[] = {
        {"floordiv", neo::floordiv}, {"ceildiv", neo::ceildiv}, {"mod", neo::mod},
        {"min", neo::min},           {"max", neo::max},         {"broadcast", neo::broadcast}};
    Operation operation = nullptr;
    for (const auto& [name, f] : kFunctions) {
      if (name == function) operation = f;
    }
    if (!operation) refuse("floordiv, ceildiv, mod, min, max or broadcast");
    Dim d = sum(depth + 1);
    expect(',');
    do {
      d = operation(d, sum(depth + 1));
    } while (accept(','));
    expect(')');
    return d;
  }

  std::string quoted() {
    const auto name = unquote(text_, at_);
    if (!name) refuse("a closing quote");
    return *name;
  }

  std::string_view text_;
  const SymbolLookup& symbols_;
  size_t at_ = 0;
};

}  // namespace

std::string Dim::to_string() const {
  if (!terms_) return std::to_string(constant_);
  std::string text;
  const auto add = [&](int64_t coefficient, const std::string& product) {
    const uint64_t magnitude =
        coefficient < 0 ? ~static_cast<uint64_t>(coefficient) + 1 : static_cast<uint64_t>(coefficient);
    if (text.empty()) {
      text += coefficient < 0 ? "-" : "";
    } else {
      text += coefficient < 0 ? " - " : " + ";
    }
    if (magnitude != 1 || product.empty()) text += std::to_string(magnitude) + (product.empty() ? "" : "*");
    text += product;
  };
  for (const Term& t : terms_->terms) {
    std::string product;
    for (const AtomRef& atom : t.atoms) product += (product.empty() ? "" : "*") + atom->key;
    add(t.coefficient, product);
  }
  if (terms_->constant != 0) add(terms_->constant, "");
  return text;
}

Dim Dim::parse(std::string_view text, const SymbolLookup& symbols) {
  return DimParser(text, symbols).parse();
}

}  // namespace neo
