#include <gtest/gtest.h>

#include "base/check.h"
#include "ir/layout.h"
#include "ir/schema.h"

namespace neo {
namespace {

TEST(Layout, TextParsesBack) {
  const std::vector<std::pair<Layout, std::string>> cases = {
      {Layout(), "scalar"},
      {Layout::plain(0), "scalar"},
      {Layout::plain(1), "A"},
      {Layout::plain(2), "AB"},
      {Layout::plain(4), "NCHW"},
      {Layout::plain(6), "ABCDEF"},
      {Layout::permuted({0, 2, 3, 1}), "NHWC"},
      {Layout::channel_blocked(3, 8), "NCW8c"},
      {Layout::channel_blocked(4, 16), "NCHW16c"},
      {Layout::channel_blocked(4, 1), "NCHW"},
      {Layout::channel_blocked(5, 16), "NCDHW16c"},
      {Layout({0, 1, 2, 3}, {{1, 8}, {0, 16}}), "NCHW8c16n"},
      {Layout({1, 0}, {{0, 4}}), "BA4a"},
  };
  for (const auto& [layout, text] : cases) {
    EXPECT_EQ(layout.to_string(), text);
    EXPECT_EQ(Layout::parse(text), layout) << text;
  }
  std::vector<int> many(30);
  for (int i = 0; i < 30; ++i) many[static_cast<size_t>(i)] = 29 - i;
  const Layout wide(many, {{3, 8}});
  EXPECT_EQ(Layout::parse(wide.to_string()), wide);
}

TEST(Layout, GarbageDoesNotParse) {
  for (const char* text : {"", "NCHX", "NCHH", "NCHW16", "NCHWc", "NCHW16x", "NCHW0c", "nchw", "16c", "AC", "0.1.2",
                           "NCHW99999999999999999999c"}) {
    EXPECT_THROW(Layout::parse(text), Error) << text;
  }
}

TEST(Layout, BlockedAxesArePadded) {
  const Layout layout = Layout::channel_blocked(4, 16);
  EXPECT_EQ(layout.physical_dims(Dims{2, 35, 7, 9}), (Dims{2, 3, 7, 9, 16}));
  EXPECT_TRUE(layout.has_padding({2, 35, 7, 9}));
  EXPECT_FALSE(layout.has_padding({2, 32, 7, 9}));
  EXPECT_EQ(layout.physical_dims(Dims{0, 0, 7, 9}), (Dims{0, 0, 7, 9, 16}));
  EXPECT_EQ(layout.block_of(1), 16);
  EXPECT_EQ(layout.block_of(0), 1);
  EXPECT_EQ(Layout({0, 1}, {{1, 4}, {1, 2}}).physical_dims(Dims{3, 9}), (Dims{3, 2, 4, 2}));
  EXPECT_FALSE(layout.is_plain());
  EXPECT_FALSE(Layout::permuted({1, 0}).is_plain());
}

TEST(Schema, TextParsesBack) {
  for (const char* text :
       {"cpu:float32:NCHW16c", "cpu:qint8.tensor.asym:NCHW64c", "opencl:float16:NHWC", "cuda:quint8.dynamic:AB",
        "null:bool:scalar", "cpu:qint8.channel.sym:NCHW", "cpu:float8_e4m3fn:A", "cpu:undefined:scalar"}) {
    EXPECT_EQ(Schema::parse(text).to_string(), text);
  }
  EXPECT_EQ(Schema::plain(DType::Float32, 4).to_string(), "cpu:float32:NCHW");
}

TEST(Schema, GarbageDoesNotParse) {
  for (const char* text : {"", "cpu", "cpu:float32", "tpu:float32:A", "cpu:float31:A", "cpu:qint8:A",
                           "cpu:qint8.none:A", "cpu:qint8.odd:A", "cpu:float32:"}) {
    EXPECT_THROW(Schema::parse(text), Error) << text;
  }
}

}  // namespace
}  // namespace neo
