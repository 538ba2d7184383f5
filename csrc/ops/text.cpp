#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/budget.h"
#include "ops/families.h"
#include "ops/labels.h"
#include "ops/movement.h"
#include "ops/regex.h"
#include "ops/sizes.h"
#include "ops/unicode.h"

namespace neo {

namespace {

void check_strings(InferContext& ctx, int input) {
  if (ctx.dtype(input) != DType::String) {
    ctx.fail(ErrorKind::Type, str("input ", input, " must hold strings. Got ", name(ctx.dtype(input))));
  }
}

std::string map_case(const std::string& text, char32_t (*map)(char32_t)) {
  auto points = decode_utf8(text);
  std::transform(points.begin(), points.end(), points.begin(), map);
  return encode_utf8(points);
}

// StringNormalizer

std::string case_action(const Node& node) {
  const std::string action = node.string_attr("case_change_action", "NONE");
  NEO_CHECK(action == "NONE" || action == "LOWER" || action == "UPPER", Model, node.op,
            "case_change_action must be NONE, LOWER or UPPER. Got \"", action, "\" - at ", node.place());
  return action;
}

void infer_string_normalizer(InferContext& ctx) {
  check_strings(ctx, 0);
  case_action(ctx.node());
  if (!ctx.ranked(0)) return ctx.set_output(0, DType::String, Shape());
  std::vector<Dim> dims = ctx.shape(0).dims();
  ctx.check(dims.size() == 1 || dims.size() == 2,
            str("the input must be [C] or [1,C]. Got ", ctx.shape(0).to_string()));
  if (dims.size() == 2) ctx.require_equal(dims[0], 1, "the input must be [C] or [1,C]");
  if (ctx.node().has_attr("stopwords") || !dims.back().is_constant() || dims.back().is(0)) {
    dims.back() = ctx.fresh("words", {1, std::max<int64_t>(1, dims.back().range().hi)});
  }
  ctx.set_output(0, DType::String, Shape(std::move(dims)));
}

void reference_string_normalizer(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  ctx.check(x.rank() == 1 || (x.rank() == 2 && x.dims()[0] == 1),
            str("the input must be [C] or [1,C]. Got ", to_string(x.dims())));
  const bool exact = ctx.node().int_attr("is_case_sensitive", 0) != 0;
  const std::string action = case_action(ctx.node());
  const auto key = [exact](const std::string& word) { return exact ? word : map_case(word, to_lower); };
  std::set<std::string> stopwords;
  for (const std::string& word : ctx.node().strings_attr("stopwords")) stopwords.insert(key(word));
  std::vector<std::string> kept;
  for (int64_t i = 0; i < x.size(); ++i) {
    const std::string& word = x.strings()[i];
    if (stopwords.count(key(word)) > 0) continue;
    kept.push_back(action == "NONE" ? word : map_case(word, action == "LOWER" ? to_lower : to_upper));
  }
  if (kept.empty()) kept.emplace_back();
  Dims dims = x.dims();
  dims.back() = static_cast<int64_t>(kept.size());
  std::copy(kept.begin(), kept.end(), ctx.output(0, DType::String, dims).strings());
}

// StringConcat

void infer_string_concat(InferContext& ctx) {
  check_strings(ctx, 0);
  check_strings(ctx, 1);
  ctx.set_output(0, DType::String, ctx.broadcast(ctx.shape(0), ctx.shape(1)));
}

// Writes the input out at the broadcast dims.
Tensor broadcast_strings(const Tensor& x, const Dims& dims) {
  Tensor y(x.dtype(), dims);
  StridedView from{0, Dims(dims.size(), 0)};
  const Dims strides = dense_strides(x.dims());
  const size_t lead = dims.size() - strides.size();
  for (size_t i = 0; i < strides.size(); ++i) from.strides[lead + i] = x.dims()[i] == 1 ? 0 : strides[i];
  copy_strided(x.dtype(), dims, x.data(), from, y.data(), {0, dense_strides(dims)});
  return y;
}

void reference_string_concat(ReferenceContext& ctx) {
  const Dims& a = ctx.input(0).dims();
  const Dims& b = ctx.input(1).dims();
  Dims dims(std::max(a.size(), b.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    ctx.check(left == right || left == 1 || right == 1,
              str("sizes must agree or be 1. Got ", to_string(a), " and ", to_string(b)));
    dims[dims.size() - 1 - i] = left == 1 ? right : left;
  }
  const Tensor left = broadcast_strings(ctx.input(0), dims);
  const Tensor right = broadcast_strings(ctx.input(1), dims);
  const Tensor& y = ctx.output(0, DType::String, dims);
  for (int64_t i = 0; i < y.size(); ++i) {
    take_memory(static_cast<int64_t>(left.strings()[i].size() + right.strings()[i].size()));
    y.strings()[i] = left.strings()[i] + right.strings()[i];
  }
}

// StringSplit

void infer_string_split(InferContext& ctx) {
  check_strings(ctx, 0);
  ctx.set_output(1, DType::Int64, ctx.shape(0));
  if (!ctx.ranked(0)) return ctx.set_output(0, DType::String, Shape());
  std::vector<Dim> dims = ctx.shape(0).dims();
  dims.push_back(ctx.fresh("parts"));
  ctx.set_output(0, DType::String, Shape(std::move(dims)));
}

std::vector<std::string> split_at_spaces(const std::string& text, int64_t limit) {
  constexpr const char* kSpaces = " \t\n\v\f\r";
  std::vector<std::string> parts;
  const size_t last = text.find_last_not_of(kSpaces);
  size_t begin = text.find_first_not_of(kSpaces);
  while (begin != std::string::npos) {
    size_t end = text.find_first_of(kSpaces, begin);
    if (end == std::string::npos || end > last || static_cast<int64_t>(parts.size()) == limit) end = last + 1;
    parts.push_back(text.substr(begin, end - begin));
    begin = end > last ? std::string::npos : text.find_first_not_of(kSpaces, end);
  }
  return parts;
}

std::vector<std::string> split_at(const std::string& text, const std::string& delimiter, int64_t limit) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (static_cast<int64_t>(parts.size()) != limit) {
    const size_t end = text.find(delimiter, begin);
    if (end == std::string::npos) break;
    parts.push_back(text.substr(begin, end - begin));
    begin = end + delimiter.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

void reference_string_split(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const std::string delimiter = ctx.node().string_attr("delimiter", "");
  const int64_t limit = ctx.node().int_attr("maxsplit", -1);
  std::vector<std::vector<std::string>> all;
  std::vector<int64_t> counts;
  int64_t longest = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    all.push_back(delimiter.empty() ? split_at_spaces(x.strings()[i], limit)
                                    : split_at(x.strings()[i], delimiter, limit));
    counts.push_back(static_cast<int64_t>(all.back().size()));
    longest = std::max(longest, counts.back());
  }
  if (ctx.has_output(0)) {
    Dims dims = x.dims();
    dims.push_back(longest);
    const Tensor& y = ctx.output(0, DType::String, dims);
    for (size_t i = 0; i < all.size(); ++i) {
      std::string* row = y.strings() + static_cast<int64_t>(i) * longest;
      std::fill(row, row + longest, std::string());
      std::copy(all[i].begin(), all[i].end(), row);
    }
  }
  if (ctx.output_count() > 1 && ctx.has_output(1)) store_ints(ctx.output(1, DType::Int64, x.dims()), counts);
}

// RegexFullMatch

void infer_regex_full_match(InferContext& ctx) {
  check_strings(ctx, 0);
  const Regex checked(ctx.node().string_attr("pattern", ""));
  ctx.set_output(0, DType::Bool, ctx.shape(0));
}

void reference_regex_full_match(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Regex regex(ctx.node().string_attr("pattern", ""));
  std::vector<int64_t> matches;
  for (int64_t i = 0; i < x.size(); ++i) matches.push_back(regex.matches_whole(x.strings()[i]));
  store_ints(ctx.output(0, DType::Bool, x.dims()), matches);
}

// com.microsoft.Tokenizer: what lies between matches of separators, or the matches of an expression

struct TokenRules {
  std::vector<Regex> separators;
  std::optional<Regex> token;
  int64_t fewest = 1;  // characters of a token
  bool by_character = false;
  bool marked = false;
  std::string padding;
};

TokenRules token_rules(const Node& node) {
  TokenRules rules;
  const auto separators = node.strings_attr("separators");
  const bool has_token = node.has_attr("tokenexp");
  NEO_CHECK(separators.empty() == has_token, Model, node.op, "either separators or tokenexp must be given. Got ",
            separators.size(), " separators and ", has_token ? "an" : "no", " expression - at ", node.place());
  rules.fewest = node.int_attr("mincharnum", 1);
  rules.marked = node.int_attr("mark", 0) != 0;
  rules.padding = node.string_attr("pad_value", "");
  const std::string token = node.string_attr("tokenexp", "");
  rules.by_character = has_token ? token == "." : separators.size() == 1 && separators.front().empty();
  NEO_CHECK(!rules.by_character || rules.fewest < 2, Model, node.op,
            "mincharnum must be 1 where each character is a token. Got ", rules.fewest, " - at ", node.place());
  if (has_token) rules.token.emplace(token);
  for (const std::string& separator : separators) {
    if (rules.by_character) break;
    NEO_CHECK(!separator.empty(), Model, node.op, "a separator among others must not be empty. Got one - at ",
              node.place());
    rules.separators.emplace_back(separator);
  }
  return rules;
}

using Points = std::vector<char32_t>;

// The parts of a text between matches; a match of nothing takes the next character away.
void split_by(const Regex& separator, const Points& text, int64_t fewest, std::vector<Points>& parts) {
  size_t begin = 0;
  const auto keep = [&](size_t end) {
    if (static_cast<int64_t>(end - begin) >= fewest)
      parts.emplace_back(text.begin() + static_cast<int64_t>(begin), text.begin() + static_cast<int64_t>(end));
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const auto end = separator.longest_match(text, at);
    if (!end) continue;
    keep(at);
    begin = std::max(*end, at + 1);
    at = begin - 1;
  }
  keep(text.size());
}

std::vector<Points> tokens_of(const TokenRules& rules, const std::string& text) {
  const Points points = decode_utf8(text);
  std::vector<Points> tokens;
  if (rules.by_character) {
    for (const char32_t point : points) tokens.push_back({point});
    return tokens;
  }
  if (rules.token) {
    for (size_t at = 0; at < points.size();) {
      const auto end = rules.token->longest_match(points, at);
      if (end && static_cast<int64_t>(*end - at) >= std::max<int64_t>(1, rules.fewest))
        tokens.emplace_back(points.begin() + static_cast<int64_t>(at), points.begin() + static_cast<int64_t>(*end));
      at = end && *end > at ? *end : at + 1;
    }
    return tokens;
  }
  tokens.push_back(points);
  for (const Regex& separator : rules.separators) {
    std::vector<Points> parts;
    for (const Points& token : tokens) split_by(separator, token, rules.fewest, parts);
    tokens = std::move(parts);
  }
  return tokens;
}

void infer_tokenizer(InferContext& ctx) {
  check_strings(ctx, 0);
  token_rules(ctx.node());
  if (!ctx.ranked(0)) return ctx.set_output(0, DType::String, Shape());
  std::vector<Dim> dims = ctx.shape(0).dims();
  ctx.check(dims.size() == 1 || dims.size() == 2,
            str("the input must be [C] or [N,C]. Got ", ctx.shape(0).to_string()));
  dims.push_back(ctx.fresh("tokens"));
  ctx.set_output(0, DType::String, Shape(std::move(dims)));
}

void reference_tokenizer(ReferenceContext& ctx) {
  const Tensor& x = ctx.input(0);
  const TokenRules rules = token_rules(ctx.node());
  std::vector<std::vector<std::string>> all;
  size_t longest = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    checkpoint();
    std::vector<std::string>& row = all.emplace_back();
    for (const Points& token : tokens_of(rules, x.strings()[i])) row.push_back(encode_utf8(token));
    longest = std::max(longest, row.size());
  }
  const size_t width = longest == 0 ? 0 : longest + (rules.marked ? 2 : 0);
  Dims dims = x.dims();
  dims.push_back(static_cast<int64_t>(width));
  std::string* target = ctx.output(0, DType::String, dims).strings();
  for (auto& row : all) {
    if (width == 0) break;
    if (rules.marked) {
      row.insert(row.begin(), "\x02");
      row.emplace_back("\x03");
    }
    row.resize(width, rules.padding);
    target = std::move(row.begin(), row.end(), target);
  }
}

// TfIdfVectorizer

// The n-grams of the pool; T is int64_t or std::string.
template <class T>
struct Ngrams {
  std::map<std::vector<T>, std::vector<size_t>> places;  // n-gram to positions in ngram_indexes
};

template <class T>
Ngrams<T> read_pool(const Node& node, const std::vector<T>& pool) {
  const auto starts = node.ints_attr("ngram_counts");
  const int64_t shortest = node.int_attr("min_gram_length", 1);
  const int64_t longest = node.int_attr("max_gram_length", 1);
  Ngrams<T> ngrams;
  size_t place = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t length = static_cast<int64_t>(i) + 1;
    const int64_t begin = starts[i];
    const int64_t end = i + 1 < starts.size() ? starts[i + 1] : static_cast<int64_t>(pool.size());
    NEO_CHECK(begin >= 0 && begin <= end && end <= static_cast<int64_t>(pool.size()) && (end - begin) % length == 0,
              Model, node.op, "ngram_counts must hold the starts of whole n-grams in the pool. Got ", begin, " to ",
              end, " for length ", length, " - at ", node.place());
    for (int64_t at = begin; at < end; at += length, ++place) {
      if (length < shortest || length > longest) continue;
      ngrams.places[{pool.begin() + at, pool.begin() + at + length}].push_back(place);
    }
  }
  return ngrams;
}

template <class T>
void count_ngrams(const Node& node, const Ngrams<T>& ngrams, const T* row, int64_t size,
                  const std::vector<int64_t>& indexes, double* counts) {
  const int64_t shortest = node.int_attr("min_gram_length", 1);
  const int64_t longest = node.int_attr("max_gram_length", 1);
  const int64_t skips = node.int_attr("max_skip_count", 0);
  for (int64_t length = std::max<int64_t>(shortest, 1); length <= std::min(longest, size); ++length) {
    // Single items have nothing to skip; what is longer than the row is not in it.
    const int64_t most = length == 1 ? 0 : std::min(skips, (size - 1) / (length - 1) - 1);
    for (int64_t distance = 1; distance <= most + 1; ++distance) {
      for (int64_t begin = 0; begin + distance * (length - 1) < size; ++begin) {
        std::vector<T> gram;
        for (int64_t i = 0; i < length; ++i) gram.push_back(row[begin + i * distance]);
        const auto found = ngrams.places.find(gram);
        if (found == ngrams.places.end()) continue;
        for (const size_t place : found->second) counts[indexes[place]] += 1;
      }
    }
  }
}

int64_t vector_size(const Node& node) {
  const auto indexes = node.ints_attr("ngram_indexes");
  NEO_CHECK(!indexes.empty() && *std::min_element(indexes.begin(), indexes.end()) >= 0, Model, node.op,
            "ngram_indexes must hold positions of the output - at ", node.place());
  const int64_t last = *std::max_element(indexes.begin(), indexes.end());
  NEO_CHECK(last < kMaxExtent, Model, node.op, "ngram_indexes must be below ", kMaxExtent, ". Got ", last, " - at ",
            node.place());
  return last + 1;
}

void infer_tf_idf_vectorizer(InferContext& ctx) {
  const Dim size = vector_size(ctx.node());
  if (!ctx.ranked(0)) return ctx.set_output(0, DType::Float32, Shape());
  const int rank = ctx.shape(0).rank();
  ctx.check(rank <= 2, str("the input must be [C] or [N,C]. Got ", ctx.shape(0).to_string()));
  ctx.set_output(0, DType::Float32, rank == 2 ? Shape({ctx.shape(0)[0], size}) : Shape({size}));
}

void reference_tf_idf_vectorizer(ReferenceContext& ctx) {
  const Node& node = ctx.node();
  const Tensor& x = ctx.input(0);
  ctx.check(x.rank() <= 2, str("the input must be [C] or [N,C]. Got ", to_string(x.dims())));
  const std::string mode = node.string_attr("mode", "TF");
  NEO_CHECK(mode == "TF" || mode == "IDF" || mode == "TFIDF", Model, node.op, "mode must be TF, IDF or TFIDF. Got \"",
            mode, "\" - at ", node.place());
  const auto indexes = node.ints_attr("ngram_indexes");
  const auto weights = node.floats_attr("weights");
  const int64_t width = vector_size(node);
  const int64_t rows = x.rank() == 2 ? x.dims()[0] : 1;
  const int64_t size = x.rank() == 0 ? 1 : x.dims().back();
  auto counts = make_scratch<double>(rows * width, 0.0);
  const auto count_all = [&](const auto& pool, const auto* elements) {
    const auto ngrams = read_pool(node, pool);
    for (const auto& [gram, places] : ngrams.places) {
      NEO_CHECK(places.back() < indexes.size(), Model, node.op, "ngram_indexes must have one position per n-gram. Got ",
                indexes.size(), " - at ", node.place());
    }
    for (int64_t r = 0; r < rows; ++r)
      count_ngrams(node, ngrams, elements + r * size, size, indexes, counts.data() + r * width);
  };
  if (x.dtype() == DType::String) {
    count_all(node.strings_attr("pool_strings"), static_cast<const std::string*>(x.strings()));
  } else {
    const auto elements = ctx.ints(0);
    count_all(node.ints_attr("pool_int64s"), elements.data());
  }
  // A weight belongs to an n-gram of the pool, and so to the output position of that n-gram.
  auto scale = make_scratch<double>(width, 1.0);
  for (size_t i = 0; mode != "TF" && i < std::min(weights.size(), indexes.size()); ++i)
    scale[static_cast<size_t>(indexes[i])] = weights[i];
  for (size_t i = 0; i < counts.size(); ++i) {
    if (mode == "IDF") counts[i] = counts[i] > 0 ? 1 : 0;
    counts[i] *= scale[i % static_cast<size_t>(width)];
  }
  store_doubles(ctx.output(0, DType::Float32, x.rank() == 2 ? Dims{rows, width} : Dims{width}), counts);
}

}  // namespace

void add_text_ops(OpRegistry& ops) {
  ops.add({.name = "StringNormalizer", .infer = infer_string_normalizer, .reference = reference_string_normalizer});
  ops.add({.name = "StringConcat",
           .min_inputs = 2,
           .max_inputs = 2,
           .infer = infer_string_concat,
           .reference = reference_string_concat});
  ops.add({.name = "StringSplit", .max_outputs = 2, .infer = infer_string_split, .reference = reference_string_split});
  ops.add({.name = "RegexFullMatch", .infer = infer_regex_full_match, .reference = reference_regex_full_match});
  ops.add({.name = "com.microsoft.Tokenizer", .infer = infer_tokenizer, .reference = reference_tokenizer});
  ops.add({.name = "TfIdfVectorizer",
           .infer = infer_tf_idf_vectorizer,
           .reference = reference_tf_idf_vectorizer,
           .work = lookup_work});
}

}  // namespace neo
