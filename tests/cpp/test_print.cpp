#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/check.h"
#include "ir/graph.h"

namespace neo {
namespace {

constexpr const char* kText = R"(symbols L in [0,70368744177664], N in [1,64] hint 1, k, "odd name"
graph "net" (x: float32[N,3,"odd name"], c: bool[], s: seq(float32[*]), o: optional(int64[2])) -> (y, "an output") {
  constant w = float32[2,2] {1.0, -0.5, 1e-30, inf}
  constant "constant" = int8[0] {}
  constant z = bfloat16[1000] splat 0.5
  constant t = string[2] {"a \"b\"", "line\n\x01"}
  constant u = uint64[1] {18446744073709551615}
  constant q = complex64[1] {(1.0, -2.5)}
  constant b = bool[2] {true, false}
  "conv1": a, - = Conv(x, w, -) {alpha=1.0, big=1e+300, group=1, none=ints[], pads=[3, 3], sizes=dims[2*N + 1,L], text="same", value=float32[1] {0.1}, what=["p", "q"]} : float32[N,floordiv(N + 1, 2)], -
  = Sink(a)
  n = NonZero(a) : int64[2,k] new k
  "if": y = If(c, a) : float32[N,floordiv(N + 1, 2)] with {
    then_branch = graph "t" (a: float32[N,floordiv(N + 1, 2)]) -> (r) {
      r = Neg(a) : float32[N,floordiv(N + 1, 2)]
    }
    else_branch = graph "e" (a: float32[N,floordiv(N + 1, 2)]) -> (a) {
    }
  }
  "an output" = com.microsoft.Gelu(y) : undefined[*]
}
)";

std::string parse_error(std::string_view text) {
  try {
    parse_graph(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Model) << e.what();
    return e.what();
  }
  return "no error";
}

TEST(Print, ParsesBackToTheSameText) {
  const auto graph = parse_graph(kText);
  EXPECT_EQ(print(*graph), kText);
  const Node& conv = *graph->nodes()[0];
  EXPECT_EQ(conv.name, "conv1");
  EXPECT_EQ(conv.input(2), nullptr);
  EXPECT_EQ(conv.output(1), nullptr);
  EXPECT_EQ(conv.float_attr("alpha", 0), 1.0);
  EXPECT_EQ(conv.int_attr("group", 0), 1);
  EXPECT_EQ(conv.ints_attr("none", {1}), std::vector<int64_t>());
  EXPECT_EQ(graph->inputs[0]->shape()[0].range().hi, 64);
  EXPECT_EQ(graph->find_value("t")->constant->strings()[1], "line\n\x01");
  EXPECT_EQ(graph->nodes()[2]->symbols[0].name, "k");
  EXPECT_EQ(graph->symbols()->fresh("k").to_string(), "k_1");
  EXPECT_EQ(graph->nodes()[3]->body("else_branch").symbols(), graph->symbols());
}

TEST(Print, LargeConstantsAreFoundByHash) {
  Graph graph;
  Tensor big(DType::Float32, {100});
  for (int i = 0; i < 100; ++i) big.as<float>()[i] = static_cast<float>(i);
  graph.outputs = {graph.add_constant("w", big)};
  const std::string text = print(graph);
  EXPECT_NE(text.find("float32[100] #" + content_hash(big)), std::string::npos);
  const auto find = [&](std::string_view hash) {
    return hash == content_hash(big) ? std::optional<Tensor>(big) : std::nullopt;
  };
  EXPECT_EQ(print(*parse_graph(text, find)), text);
  EXPECT_NE(parse_error(text).find("- at 2:"), std::string::npos);
  Tensor other(DType::Float32, {100});
  std::copy_n(big.as<float>(), 100, other.as<float>());
  EXPECT_EQ(content_hash(other), content_hash(big));
  other.as<float>()[99] = -1;
  EXPECT_NE(content_hash(other), content_hash(big));
  EXPECT_EQ(print(*parse_graph(print(graph, 100))), print(graph));
}

TEST(Print, EveryElementOfEveryDtypeParsesBack) {
  std::mt19937_64 random(7);
  for (int d = 1; d <= static_cast<int>(DType::Complex128); ++d) {
    const auto dtype = static_cast<DType>(d);
    if (dtype == DType::String) continue;
    const int64_t count = item_bytes(dtype) == 1 ? 256 : 2000;
    Tensor t(dtype, {count});
    auto* bytes = static_cast<unsigned char*>(t.data());
    for (int64_t i = 0; i < t.bytes(); ++i) bytes[i] = static_cast<unsigned char>(random());
    if (item_bytes(dtype) == 1) {
      const int codes = dtype == DType::Bool                                                          ? 2
                        : dtype == DType::Int4 || dtype == DType::UInt4 || dtype == DType::Float4E2M1 ? 16
                        : dtype == DType::Int2 || dtype == DType::UInt2                               ? 4
                                                                                                      : 256;
      for (int i = 0; i < 256; ++i) bytes[i] = static_cast<unsigned char>(i % codes);
    }
    Graph graph;
    graph.outputs = {graph.add_constant("w", t)};
    const auto again = parse_graph(print(graph, count));
    EXPECT_TRUE(identical(*again->outputs[0]->constant, t)) << name(dtype);
  }
}

TEST(Parse, ErrorsGiveLineAndColumn) {
  EXPECT_EQ(parse_error("graph \"g\" () -> () {\n  y = Relu(z)\n}"),
            "[parse] a value must be defined before it is used. Got \"z\" - at 2:12");
  EXPECT_NE(parse_error("graph g").find("expected a string - at 1:7"), std::string::npos);
  EXPECT_NE(parse_error("graph \"g\" (x: float33[2]) -> () {}").find("float33"), std::string::npos);
  EXPECT_NE(parse_error("graph \"g\" (x: float32[2], x: float32[2]) -> () {}").find("- at 1:27"), std::string::npos);
  EXPECT_NE(parse_error("graph \"g\" () -> (y) {}").find("- at 1:18"), std::string::npos);
  EXPECT_NE(parse_error("graph \"g\" () -> () {\n constant w = int8[2] {1, 300}}").find("an element of int8 - at 2:27"),
            std::string::npos);
  EXPECT_NE(parse_error("graph \"g\" () -> () {\n constant w = int8[99999999999] {1}}").find("must list"),
            std::string::npos);
  EXPECT_NE(parse_error("graph \"g\" (x: float32[N +]) -> () {}").find("a size is written"), std::string::npos);
  EXPECT_NE(parse_error("graph \"g\" () -> () {} more").find("expected the end"), std::string::npos);
}

TEST(Parse, CommentsAreSkipped) {
  EXPECT_EQ(parse_graph("// a\ngraph \"g\" () -> () { // b\n}")->name, "g");
}

TEST(Parse, DeepNestingIsRefused) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "graph \"g\" () -> () { = If() with { b = ";
  EXPECT_NE(parse_error(text).find("nest at most"), std::string::npos);
  std::string type(100000, '(');
  EXPECT_NE(parse_error("graph \"g\" (x: seq" + type).find("[parse]"), std::string::npos);
  std::string seq;
  for (int i = 0; i < 5000; ++i) seq += "seq(";
  seq += "int8[]" + std::string(5000, ')');
  EXPECT_NE(parse_error("graph \"g\" (x: " + seq + ") -> () {}").find("nest at most"), std::string::npos);
}

TEST(Parse, DamagedTextNeverCrashes) {
  std::mt19937 random(3);
  const std::string text = kText;
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = text;
    const int edits = 1 + static_cast<int>(random() % 3);
    for (int e = 0; e < edits; ++e) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1 + random() % 20);
          break;
        case 2:
          damaged.insert(at, 1, "\"()[]{},=:-9"[random() % 12]);
          break;
        default:
          damaged.resize(at + 1);
          break;
      }
    }
    try {
      const auto graph = parse_graph(damaged);
      EXPECT_EQ(print(*parse_graph(print(*graph))), print(*graph));
    } catch (const Error& e) {
      ASSERT_NE(e.kind(), ErrorKind::Internal) << e.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace neo
