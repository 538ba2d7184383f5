#include <gtest/gtest.h>

#include "base/check.h"
#include "ops/infer.h"

namespace neo {
namespace {

const OpRegistry& ops() {
  return standard_ops();
}

std::unique_ptr<Graph> inferred(std::string_view text) {
  auto graph = parse_graph(text);
  infer_graph(*graph, ops());
  verify(*graph);
  return graph;
}

std::string output_type(const Graph& graph, size_t i = 0) {
  return graph.outputs[i]->type.to_string();
}

std::string inference_error(std::string_view text) {
  try {
    inferred(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

HostValue floats(const Dims& dims, std::vector<float> x) {
  return Tensor::from<float>(DType::Float32, dims, std::span<const float>(x));
}
HostValue truth(bool x) {
  const uint8_t byte = x ? 1 : 0;
  return Tensor::from<uint8_t>(DType::Bool, {}, std::span<const uint8_t>(&byte, 1));
}
HostValue integer(int64_t x) {
  return Tensor::from<int64_t>(DType::Int64, {}, std::span<const int64_t>(&x, 1));
}
std::vector<float> elements(const HostValue& v) {
  return {v.tensor.as<float>(), v.tensor.as<float>() + v.tensor.size()};
}

constexpr const char* kIf = R"(symbols N, M
graph "g" (c: bool[], x: float32[N,4], y: float32[M,4]) -> (r) {
  r = If(c, x, y) with {
    then_branch = graph "t" (x: float32[*], y: float32[*]) -> (a) { a = Neg(x) }
    else_branch = graph "e" (x: float32[*], y: float32[*]) -> (y) { }
  }
})";

TEST(If, SizesThatDifferBecomeASymbol) {
  const auto graph = inferred(kIf);
  EXPECT_EQ(output_type(*graph), "float32[if_size,4]");
  const std::string once = print(*graph);
  infer_graph(*graph, ops());
  EXPECT_EQ(print(*graph), once);
}

TEST(If, TakesTheBranch) {
  const auto graph = inferred(kIf);
  for (bool c : {true, false}) {
    const auto out =
        evaluate_graph(*graph, ops(), std::vector{truth(c), floats({1, 4}, {1, 2, 3, 4}), floats({0, 4}, {})});
    EXPECT_EQ(out[0].tensor.dims(), c ? (Dims{1, 4}) : (Dims{0, 4}));
    EXPECT_EQ(elements(out[0]), c ? (std::vector<float>{-1, -2, -3, -4}) : std::vector<float>{});
  }
}

TEST(If, AConstantConditionDecidesTheType) {
  const auto graph = inferred(R"(graph "g" (x: float32[1]) -> (r) {
    constant c = bool[] {false}
    constant five = int64[1] {5}
    r = If(c, x, five) with {
      then_branch = graph "t" (x: float32[*], s: int64[*]) -> (a) { a = Reshape(x, s) }
      else_branch = graph "e" (x: float32[*], s: int64[*]) -> (a) { a = Expand(x, s) }
    }
  })");
  EXPECT_EQ(output_type(*graph), "float32[5]");
}

TEST(If, KnownElementsLeaveABranchThatIsTaken) {
  const auto graph = inferred(R"(symbols N
  graph "g" (x: float32[N,3]) -> (r) {
    constant c = bool[] {true}
    s = If(c, x) with {
      then_branch = graph "t" (x: float32[*]) -> (s) { s = Shape(x) }
      else_branch = graph "e" (x: float32[*]) -> (s) { constant s = int64[2] {1, 1} }
    }
    r = Expand(x, s)
  })");
  EXPECT_EQ(output_type(*graph), "float32[N,3]");
}

TEST(If, BranchesOfDifferentDtypesAreRefused) {
  EXPECT_NE(inference_error(R"(graph "g" (c: bool[], x: float32[3]) -> (r) {
    "pick": r = If(c, x) with {
      then_branch = graph "t" (x: float32[3]) -> (x) { }
      else_branch = graph "e" (x: float32[3]) -> (a) { a = Shape(x) }
    }
  })")
                .find("output 0 of both branches must have one type. Got float32[3] and int64[1] - at node \"pick\""),
            std::string::npos);
}

// Doubles x `n` times and collects its first row.
constexpr const char* kGrow = R"(symbols N
graph "g" (n: int64[], x: float32[N,2], row: float32[2]) -> (last, rows) {
  constant go = bool[] {true}
  last, rows = Loop(n, go, x, row) {num_captured=1} with {
    body = graph "b" (i: int64[], c: bool[], x: float32[*], row: float32[*]) -> (c, xx, r) {
      xx = Concat(x, x) {axis=0}
      r = Add(row, row)
    }
  }
})";

TEST(Loop, CarriedSizesThatChangeBecomeSymbols) {
  const auto graph = inferred(kGrow);
  EXPECT_EQ(output_type(*graph, 0), "float32[loop_size_1,2]");
  EXPECT_EQ(output_type(*graph, 1), "float32[loop_trips,2]");
  const Graph& body = graph->nodes()[0]->body("body");
  EXPECT_EQ(body.outputs[1]->type.to_string(), "float32[2*loop_size,2]");
  const std::string once = print(*graph);
  infer_graph(*graph, ops());
  EXPECT_EQ(print(*graph), once);
}

TEST(Loop, RunsAsOftenAsItIsTold) {
  const auto graph = inferred(kGrow);
  for (int64_t n : {0, 1, 3}) {
    const auto out =
        evaluate_graph(*graph, ops(), std::vector{integer(n), floats({1, 2}, {5, 6}), floats({2}, {1, 2})});
    EXPECT_EQ(out[0].tensor.dims(), (Dims{int64_t{1} << n, 2}));
    EXPECT_EQ(out[1].tensor.dims(), (Dims{n, 2}));
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(out[1].tensor.as<float>()[2 * i + 1], 4);
  }
}

TEST(Loop, AKnownTripCountIsTheSizeOfWhatIsCollected) {
  const auto graph = inferred(R"(symbols N
  graph "g" (x: float32[N,3]) -> (r, x2) {
    constant go = bool[] {true}
    n = Size(x)
    x2, r = Loop(n, go, x) with {
      body = graph "b" (i: int64[], c: bool[], x: float32[*]) -> (c2, x, i) { c2 = Identity(c) }
    }
  })");
  EXPECT_EQ(output_type(*graph, 0), "int64[3*N]");
  EXPECT_EQ(output_type(*graph, 1), "float32[N,3]");
  const auto out = evaluate_graph(*graph, ops(), std::vector{floats({1, 3}, {1, 2, 3})});
  EXPECT_EQ(load_ints(out[0].tensor), (std::vector<int64_t>{0, 1, 2}));
}

TEST(Loop, RanksThatChangeBecomeUnranked) {
  const auto graph = inferred(R"(graph "g" (n: int64[], x: float32[3]) -> (r) {
    constant go = bool[] {true}
    constant zero = int64[1] {0}
    r = Loop(n, go, x, zero) {num_captured=1} with {
      body = graph "b" (i: int64[], c: bool[], x: float32[3], zero: int64[1]) -> (c, y) { y = Unsqueeze(x, zero) }
    }
  })");
  EXPECT_EQ(output_type(*graph), "float32[*]");
  const auto out = evaluate_graph(*graph, ops(), std::vector{integer(2), floats({3}, {1, 2, 3})});
  EXPECT_EQ(out[0].tensor.dims(), (Dims{1, 1, 3}));
}

TEST(Loop, StopsWhenItsConditionFails) {
  const auto graph = inferred(R"(graph "g" (c: bool[], x: float32[]) -> (r, all) {
    constant one = float32[] {1.0}
    constant four = float32[] {4.0}
    r, all = Loop(-, c, x, one, four) {num_captured=2} with {
      body = graph "b" (i: int64[], c: bool[], x: float32[], one: float32[], four: float32[]) -> (go, y, y) {
        y = Add(x, one)
        go = Less(y, four)
      }
    }
  })");
  auto out = evaluate_graph(*graph, ops(), std::vector{truth(true), floats({}, {0})});
  EXPECT_EQ(elements(out[1]), (std::vector<float>{1, 2, 3, 4}));
  out = evaluate_graph(*graph, ops(), std::vector{truth(false), floats({}, {0})});
  EXPECT_EQ(elements(out[0]), (std::vector<float>{0}));
  EXPECT_EQ(out[1].tensor.dims(), (Dims{0}));
}

TEST(Loop, CarriesSequences) {
  const auto graph = inferred(R"(graph "g" (n: int64[], x: float32[2]) -> (r) {
    constant go = bool[] {true}
    s = SequenceEmpty() {dtype=1}
    t = Loop(n, go, s, x) {num_captured=1} with {
      body = graph "b" (i: int64[], c: bool[], s: seq(float32[*]), x: float32[2]) -> (c, s2) { s2 = SequenceInsert(s, x) }
    }
    r = ConcatFromSequence(t) {axis=0}
  })");
  const auto out = evaluate_graph(*graph, ops(), std::vector{integer(3), floats({2}, {1, 2})});
  EXPECT_EQ(elements(out[0]), (std::vector<float>{1, 2, 1, 2, 1, 2}));
}

TEST(Loop, ABodyThatDoesNotFitIsRefused) {
  EXPECT_NE(inference_error(R"(graph "g" (n: int64[], x: float32[2]) -> (r) {
    "l": r = Loop(n, -, x) with {
      body = graph "b" (i: int64[], c: bool[]) -> (c) { }
    }
  })")
                .find("[Loop] the body \"body\" must have 3 inputs. Got 2 - at node \"l\""),
            std::string::npos);
  EXPECT_NE(inference_error(R"(graph "g" (n: int64[]) -> (r) { "l": r = Loop(n, -) })")
                .find("attribute \"body\" is required"),
            std::string::npos);
}

constexpr const char* kScan = R"(symbols T, N
graph "g" (s: float32[2], x: float32[N,T,2], k: float32[2]) -> (last, all) {
  last, all = Scan(s, x, k) {num_captured=1, num_scan_inputs=1, scan_input_axes=[-2], scan_input_directions=[1], scan_output_axes=[1], scan_output_directions=[1]} with {
    body = graph "b" (s: float32[2], x: float32[*], k: float32[2]) -> (t, y) {
      t = Add(s, k)
      y = Add(x, t)
    }
  }
})";

TEST(Scan, TakesAxesAndDirections) {
  const auto graph = inferred(kScan);
  EXPECT_EQ(output_type(*graph, 0), "float32[2]");
  EXPECT_EQ(output_type(*graph, 1), "float32[N,T,2]");
  const auto out = evaluate_graph(
      *graph, ops(), std::vector{floats({2}, {0, 0}), floats({1, 3, 2}, {1, 2, 3, 4, 5, 6}), floats({2}, {10, 100})});
  EXPECT_EQ(elements(out[0]), (std::vector<float>{30, 300}));
  // Read from the back and prepended: position t adds the state after 3 - t iterations.
  EXPECT_EQ(elements(out[1]), (std::vector<float>{31, 302, 23, 204, 15, 106}));
}

TEST(Scan, NothingToScanGivesEmptyOutputs) {
  const auto graph = inferred(kScan);
  const auto out =
      evaluate_graph(*graph, ops(), std::vector{floats({2}, {7, 8}), floats({1, 0, 2}, {}), floats({2}, {1, 1})});
  EXPECT_EQ(elements(out[0]), (std::vector<float>{7, 8}));
  EXPECT_EQ(out[1].tensor.size(), 0);
}

TEST(Infer, ArityIsChecked) {
  EXPECT_NE(inference_error(R"(graph "g" (x: float32[1,1,2,2]) -> (y) { "conv1": y = Conv(x) })")
                .find("[Conv] operator needs 2 to 3 inputs. Got 1 - at node \"conv1\""),
            std::string::npos);
  EXPECT_NE(inference_error(R"(graph "g" () -> (y) { y = NoSuch() })")
                .find("[NoSuch] the operator is not supported - at the NoSuch that makes \"y\""),
            std::string::npos);
}

TEST(Infer, DeclaredTypesStayWhereInferenceKnowsLess) {
  const auto graph = inferred(R"(graph "g" (x: float32[*]) -> (y) { y = Relu(x) : float32[2,3] })");
  EXPECT_EQ(output_type(*graph), "float32[2,3]");
}

TEST(Infer, GuardsAreKeptWhereNothingIsProven) {
  const auto graph = inferred(R"(symbols N, M in [2,9]
  graph "g" (x: float32[N,4], y: float32[M,4], z: float32[N,4]) -> (a, b) {
    a = Add(x, y)
    b = Add(x, z)
  })");
  EXPECT_EQ(output_type(*graph), "float32[M,4]");
  ASSERT_EQ(graph->nodes()[0]->guards.size(), 1u);
  EXPECT_EQ(graph->nodes()[0]->guards[0].relation, Guard::Relation::Broadcasts);
  EXPECT_TRUE(graph->nodes()[1]->guards.empty());
  EXPECT_NE(inference_error(R"(graph "g" (x: float32[2], y: float32[3]) -> (a) { a = Add(x, y) })").find("[Add]"),
            std::string::npos);
}

// A loop in a loop in a loop ... each of which infers its body more than once.
TEST(Infer, DeepBodiesAreRefused) {
  std::string text = "y = Neg(x)";
  for (int i = 0; i < 40; ++i) {
    text =
        "constant n = int64[] {3} constant go = bool[] {true} y = Loop(n, go, x) with { body = graph \"b\" (i: "
        "int64[], c: bool[], x: "
        "float32[*]) -> (c, w) {" +
        text + " w = Concat(y, y) {axis=0} } }";
  }
  EXPECT_NE(inference_error("graph \"g\" (x: float32[2]) -> (y) {" + text + "}").find("bodies"), std::string::npos);
}

TEST(Evaluate, WrongInputsAreRefused) {
  const auto graph = inferred(R"(graph "g" (x: float32[2]) -> (y) { y = Neg(x) })");
  EXPECT_THROW(evaluate_graph(*graph, ops(), {}), Error);
  EXPECT_THROW(evaluate_graph(*graph, ops(), std::vector{integer(1)}), Error);
  EXPECT_THROW(evaluate_graph(*graph, ops(), std::vector{HostValue()}), Error);
}

}  // namespace
}  // namespace neo
