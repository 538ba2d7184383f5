#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "ir/graph.h"

namespace neo {
namespace {

const Type kFloats = Type::tensor(DType::Float32, Shape({Dim::symbol("N"), 4}));

Tensor scalar(float x) {
  return Tensor::from<float>(DType::Float32, {}, std::span<const float>(&x, 1));
}

// x -> Relu -> a; Add(a, one) -> y
struct Small {
  Graph graph;
  Value* x = graph.add_input("x", kFloats);
  Value* one = graph.add_constant("one", scalar(1));
  Node* relu = graph.add_node("Relu", {x}, {"a"}, {}, "first");
  Node* add = graph.add_node("Add", {relu->outputs[0], one}, {"y"});
  Small() {
    relu->outputs[0]->type = kFloats;
    add->outputs[0]->type = kFloats;
    graph.outputs = {add->outputs[0]};
  }
};

std::string graph_message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(Graph, NamesAreUnique) {
  Graph graph;
  EXPECT_EQ(graph.add_input("x", kFloats)->name, "x");
  EXPECT_EQ(graph.add_input("x", kFloats)->name, "x_1");
  EXPECT_EQ(graph.add_constant("x", scalar(1))->name, "x_2");
  EXPECT_EQ(graph.add_constant("", scalar(1))->name, "value");
  EXPECT_EQ(graph.find_value("x_1"), graph.inputs[1]);
  EXPECT_EQ(graph.find_value("z"), nullptr);
}

TEST(Graph, FreshSymbolsAvoidReservedNames) {
  SymbolTable table;
  table.reserve("n");
  table.reserve("n_1");
  EXPECT_EQ(table.fresh("n").to_string(), "n_2");
  EXPECT_EQ(table.fresh("n").to_string(), "n_3");
  EXPECT_EQ(table.fresh("m").to_string(), "m");
}

TEST(Graph, UsersListNodesAndInputs) {
  Small s;
  const auto users = s.graph.users();
  EXPECT_EQ(users.at(s.one), (std::vector<std::pair<Node*, int>>{{s.add, 1}}));
  EXPECT_EQ(users.count(s.add->outputs[0]), 0u);
}

TEST(Graph, ReplacingAnOutputKeepsItsName) {
  Small s;
  s.graph.replace_uses(s.add->outputs[0], s.relu->outputs[0]);
  EXPECT_EQ(s.graph.outputs[0], s.relu->outputs[0]);
  EXPECT_EQ(s.graph.outputs[0]->name, "y");
  EXPECT_EQ(s.graph.find_value("y"), s.relu->outputs[0]);
  s.graph.erase_nodes([&](const Node& n) { return &n == s.add; });
  s.graph.erase_unused_values();
  EXPECT_EQ(s.graph.find_value("one"), nullptr);
  EXPECT_EQ(s.graph.values().size(), 2u);
  verify(s.graph);
}

TEST(Graph, AnOutputThatBecomesAnInputIsCopied) {
  Small s;
  s.graph.replace_uses(s.add->outputs[0], s.x);
  ASSERT_EQ(s.graph.nodes().back()->op, "Identity");
  EXPECT_EQ(s.graph.outputs[0]->name, "y");
  EXPECT_EQ(s.graph.outputs[0]->producer->inputs[0], s.x);
  EXPECT_EQ(s.x->name, "x");
  verify(s.graph);
}

TEST(Graph, RenamingTakesANameOver) {
  Small s;
  s.graph.rename(s.relu->outputs[0], "y");
  EXPECT_EQ(s.relu->outputs[0]->name, "y");
  EXPECT_EQ(s.add->outputs[0]->name, "y_1");
  EXPECT_EQ(s.graph.find_value("y"), s.relu->outputs[0]);
  EXPECT_EQ(s.graph.find_value("a"), nullptr);
  verify(s.graph);
}

TEST(Graph, ErasingWhatIsReadIsABug) {
  Small s;
  EXPECT_NE(graph_message([&] {
              s.graph.erase_nodes([&](const Node& n) { return &n == s.relu; });
            }).find("still reads \"a\""),
            std::string::npos);
}

TEST(Graph, SortKeepsTheOrderWhereItCan) {
  Small s;
  Node* late = s.graph.add_node("Neg", {s.x}, {"n"});
  s.add->inputs[1] = late->outputs[0];
  s.graph.sort();
  EXPECT_EQ(s.graph.nodes()[0].get(), s.relu);
  EXPECT_EQ(s.graph.nodes()[1].get(), late);
  EXPECT_EQ(s.graph.nodes()[2].get(), s.add);
}

TEST(Graph, ACycleNamesANodeOnIt) {
  Small s;
  s.graph.add_node("Neg", {s.add->outputs[0]}, {"after"});
  s.relu->inputs[0] = s.add->outputs[0];
  const std::string message = graph_message([&] { s.graph.sort(); });
  EXPECT_NE(message.find("cycle"), std::string::npos) << message;
  EXPECT_EQ(message.find("after"), std::string::npos) << message;
}

TEST(Graph, ACloneSharesNothingButTensors) {
  Small s;
  s.add->bodies.emplace_back("body", s.graph.clone());
  const auto clone = s.graph.clone();
  EXPECT_EQ(print(*clone), print(s.graph));
  for (const auto& v : clone->values()) {
    for (const auto& w : s.graph.values()) EXPECT_NE(v.get(), w.get());
  }
  EXPECT_EQ(clone->find_value("one")->constant->data(), s.one->constant->data());
  EXPECT_EQ(clone->nodes()[0]->outputs[0]->producer, clone->nodes()[0].get());
}

TEST(Graph, InsertBeforePutsANodeInOrder) {
  Small s;
  Node* neg = s.graph.insert_before(s.add, "Neg", {s.relu->outputs[0]}, {"n", ""});
  neg->outputs[0]->type = kFloats;
  EXPECT_EQ(s.graph.nodes()[1].get(), neg);
  EXPECT_EQ(neg->outputs[1], nullptr);
  EXPECT_EQ(neg->outputs[0]->producer, neg);
  verify(s.graph);
}

TEST(Node, AttributesOfAnotherTypeAreRefused) {
  Node node;
  node.op = "Conv";
  node.name = "c1";
  node.attrs["group"] = int64_t{2};
  EXPECT_EQ(node.int_attr("group", 1), 2);
  EXPECT_EQ(node.int_attr("other", 7), 7);
  EXPECT_EQ(node.ints_attr("pads"), std::vector<int64_t>());
  EXPECT_EQ(graph_message([&] { node.float_attr("group", 1); }),
            "[Conv] attribute \"group\" has the wrong type. Got an int, expected a float - at node \"c1\"");
}

TEST(Attr, IdenticalComparesBits) {
  EXPECT_TRUE(identical(Attr(0.0 / 1), Attr(0.0)));
  EXPECT_FALSE(identical(Attr(-0.0), Attr(0.0)));
  EXPECT_TRUE(identical(Attr(std::vector<double>{std::nan("")}), Attr(std::vector<double>{std::nan("")})));
  EXPECT_FALSE(identical(Attr(int64_t{1}), Attr(1.0)));
  EXPECT_TRUE(identical(Attr(scalar(1)), Attr(scalar(1))));
}

TEST(Verify, NamesWhatIsBroken) {
  const auto broken = [](const std::function<void(Small&)>& damage) {
    Small s;
    verify(s.graph);
    damage(s);
    return graph_message([&] { verify(s.graph); });
  };
  EXPECT_NE(broken([](Small& s) { s.graph.outputs[0] = nullptr; }).find("output is missing"), std::string::npos);
  EXPECT_NE(broken([](Small& s) {
              s.relu->inputs[0] = s.add->outputs[0];
            }).find("read before it is computed - at node \"first\""),
            std::string::npos);
  EXPECT_NE(broken([](Small& s) { s.relu->outputs[0]->output_index = 3; }).find("names another producer"),
            std::string::npos);
  EXPECT_NE(broken([](Small& s) { s.relu->outputs[0]->type = Type(); }).find("has no type"), std::string::npos);
  EXPECT_NE(broken([](Small& s) { s.one->type = kFloats; }).find("is not of its type"), std::string::npos);
  EXPECT_NE(broken([](Small& s) { s.one->name = "x"; }).find("is not unique"), std::string::npos);
  EXPECT_NE(broken([](Small& s) { s.one->contents = std::vector<Dim>(99, Dim(1)); }).find("has 99 known elements"),
            std::string::npos);
  Graph other;
  Value* foreign = other.add_input("x", kFloats);
  EXPECT_NE(broken([&](Small& s) { s.relu->inputs[0] = foreign; }).find("belongs to another graph"), std::string::npos);
  EXPECT_NE(broken([&](Small& s) {
              s.add->bodies.emplace_back("body", std::make_unique<Graph>(s.graph.symbols()));
            }).find("has 0 inputs for 2"),
            std::string::npos);
}

TEST(Tensor, MemoryIsAlignedAndChecked) {
  const Tensor empty(DType::Float32, {0, 5});
  EXPECT_EQ(empty.size(), 0);
  const Tensor t(DType::Int8, {3});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  EXPECT_THROW(Tensor(DType::Float32, {int64_t{1} << 40, int64_t{1} << 40}), Error);
  EXPECT_THROW(t.reshaped({4}), Error);
  EXPECT_EQ(t.reshaped({1, 3}).data(), t.data());
}

TEST(Tensor, ACopyHasMemoryOfItsOwn) {
  const Tensor t(DType::String, {2});
  t.strings()[1] = "text";
  const Tensor copy = copy_tensor(t);
  EXPECT_TRUE(identical(copy, t));
  EXPECT_NE(copy.data(), t.data());
  const float x = 2.5f;
  EXPECT_TRUE(copy_tensor(Tensor::splat(DType::Float32, {3}, &x)).is_splat());
}

TEST(Tensor, StringsAreConstructed) {
  const Tensor t(DType::String, {3});
  t.strings()[1] = "a text that is longer than any small string buffer holds";
  EXPECT_EQ(t.strings()[0], "");
  const std::string element = "the same long text for every one of the elements";
  const Tensor splat = Tensor::splat(DType::String, {2}, &element);
  EXPECT_EQ(splat.strings()[1], element);
}

TEST(Tensor, ASplatIsWrittenOutOnce) {
  const float x = 2.5f;
  const Tensor splat = Tensor::splat(DType::Float32, {1000, 7}, &x);
  EXPECT_TRUE(splat.is_splat());
  std::vector<void*> seen(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < seen.size(); ++i) threads.emplace_back([&, i] { seen[i] = splat.reshaped({7000}).data(); });
  for (std::thread& t : threads) t.join();
  for (void* p : seen) EXPECT_EQ(p, splat.data());
  for (int64_t i = 0; i < splat.size(); ++i) ASSERT_EQ(splat.as<float>()[i], 2.5f);
  const Tensor dense(DType::Float32, {1000, 7});
  std::fill_n(dense.as<float>(), 7000, 2.5f);
  EXPECT_TRUE(identical(splat, dense));
  EXPECT_FALSE(identical(splat, dense.reshaped({7000})));
}

// Counts from 0; `elements` is how many were asked for.
Tensor counting(Dims dims, std::atomic<int64_t>& elements) {
  return Tensor::computed(DType::Float32, std::move(dims), [&](int64_t begin, int64_t count, void* to) {
    elements += count;
    std::iota(static_cast<float*>(to), static_cast<float*>(to) + count, static_cast<float>(begin));
  });
}

TEST(Tensor, ALookAtAComputedOneLeavesItAsItIs) {
  constexpr int64_t kCount = 40000;
  std::atomic<int64_t> elements = 0;
  const Tensor lazy = counting({4, kCount / 4}, elements);
  float some[3] = {};
  lazy.reshaped({kCount}).copy_numbers(kCount - 3, 3, some);
  EXPECT_EQ(some[0], kCount - 3);
  EXPECT_EQ(some[2], kCount - 1);
  EXPECT_EQ(elements, 3);
  int64_t seen = 0, pieces = 0;
  const auto count = [&](const void* numbers, int64_t many) {
    EXPECT_EQ(*static_cast<const float*>(numbers), static_cast<float>(seen));
    seen += many;
    ++pieces;
    return true;
  };
  lazy.visit_numbers(count);
  EXPECT_EQ(seen, kCount);
  EXPECT_GT(pieces, 1);
  pieces = 0;
  lazy.visit_numbers([&](const void*, int64_t) { return ++pieces < 1; });
  EXPECT_EQ(pieces, 1) << "it goes on after its end";
  const int64_t before = elements;
  EXPECT_EQ(lazy.as<float>()[7], 7.0f);
  EXPECT_EQ(elements, before + kCount);
  seen = pieces = 0;
  lazy.visit_numbers(count);  // of what is in memory, at once
  lazy.copy_numbers(1, 2, some);
  EXPECT_EQ(some[1], 2.0f);
  EXPECT_EQ(pieces, 1);
  EXPECT_EQ(elements, before + kCount);
}

TEST(Tensor, NumbersOfSplatsAndPlainTensorsAreCopied) {
  const float element = 2.5f;
  float some[2] = {};
  Tensor::splat(DType::Float32, {9}, &element).copy_numbers(4, 2, some);
  EXPECT_EQ(some[1], 2.5f);
  const std::vector<float> three{1, 2, 3};
  Tensor::from<float>(DType::Float32, {3}, three).copy_numbers(1, 2, some);
  EXPECT_EQ(some[1], 3.0f);
  Tensor(DType::Float32, {0}).copy_numbers(0, 0, some);
}

TEST(Tensor, AComputedOneIsComputedOnceAndWhereItIsRead) {
  std::atomic<int64_t> elements = 0;
  const Tensor lazy = counting({2, 3}, elements);
  EXPECT_FALSE(lazy.is_splat());
  EXPECT_FALSE(lazy.is_absent());
  EXPECT_EQ(lazy.reshaped({6}).bytes(), 24);
  EXPECT_EQ(elements, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { EXPECT_EQ(lazy.reshaped({6}).as<float>()[5], 5.0f); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(elements, 6);
  EXPECT_TRUE(identical(copy_tensor(lazy), lazy));
}

}  // namespace
}  // namespace neo
