#include <gtest/gtest.h>

#include "base/check.h"
#include "routines/cost/product_start.h"
#include "routines/cost/step_cost.h"
#include "routines/routine.h"

namespace neo {
namespace {

Machine machine() {
  Machine m;
  m.ghz = 2;
  m.gflops = 64;
  m.cache = {{{32 << 10, 100}, {1 << 20, 50}, {8 << 20, 25}}};
  m.memory_gbps = 10;
  m.shared_memory_gbps = 15;
  m.wake_us = 2;
  m.step_us = 0.1;
  return m;
}

Target target_of(int threads) {
  Target target = Target::parse("cpu:scalar", threads);
  target.machine = machine();
  return target;
}

std::string message_of(std::string_view text) {
  try {
    Machine::parse(text, "m.txt");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(StepCost, BytesBeyondACacheComeFromTheNextOne) {
  const Machine m = machine();
  EXPECT_DOUBLE_EQ(traffic_us(1e4, 1, m), 1e4 / 100e3);
  const double kept = 0.75 * (32 << 10);
  EXPECT_DOUBLE_EQ(traffic_us(1e5, 1, m), kept / 100e3 + (1e5 - kept) / 50e3);
  // Each further byte of a large step comes from memory, which a team shares.
  EXPECT_NEAR(traffic_us(2e8, 1, m) - traffic_us(1e8, 1, m), 1e8 / 10e3, 1e-6);
  EXPECT_NEAR(traffic_us(4e8, 2, m) - traffic_us(2e8, 2, m), 1e8 / 7.5e3, 1e-6);
}

TEST(StepCost, AMachineWithoutACacheReadsFromMemory) {
  Machine m = machine();
  m.cache = {};
  EXPECT_DOUBLE_EQ(traffic_us(1e4, 1, m), 1e4 / 10e3);
}

TEST(StepCost, ATeamIsWokenWhereThereAreTasksForIt) {
  const StepRow row{1, 0, 1, 0.5};
  StepLoad load{StepFamily::Pool, 2e6};
  load.tasks = 1;
  EXPECT_DOUBLE_EQ(step_us(load, target_of(2), row), 0.1 + 0.5 + 1000);
  load.tasks = 2;
  EXPECT_DOUBLE_EQ(step_us(load, target_of(2), row), 0.1 + 0.5 + 2 + 500);
  EXPECT_DOUBLE_EQ(step_us(load, target_of(1), row), 0.1 + 0.5 + 1000);
  load.tasks = 3;  // one member has two of them
  EXPECT_DOUBLE_EQ(step_us(load, target_of(2), row), 0.1 + 0.5 + 2 + 1000 / 1.5);
  // Where a step does not say, its bytes do.
  load.tasks = 0;
  EXPECT_DOUBLE_EQ(step_us(load, target_of(2), row), 0.1 + 0.5 + 1000);
  load.writes = kSerialBytes + 1;
  EXPECT_LT(step_us(load, target_of(2), row), 600);
}

TEST(StepCost, LanesOfPaddingAreMoved) {
  const Type type = Type::tensor(DType::Float32, Shape::of({1, 1, 64, 64}));
  Schema plain = plain_schema(type), blocked = plain;
  blocked.layout = Layout::channel_blocked(4, 16);
  EXPECT_EQ(schema_bytes(type, plain), 4 * 64 * 64);
  EXPECT_EQ(schema_bytes(type, blocked), 16 * schema_bytes(type, plain));
  const StepLoad load = adapt_load(type, plain, blocked);
  EXPECT_EQ(load.writes, 16 * load.reads);
  const Target target = Target::parse("cpu", 1);
  const Type full = Type::tensor(DType::Float32, Shape::of({1, 16, 16, 16}));
  EXPECT_GT(adapt_time_us(type, plain, blocked, target), 4 * adapt_time_us(full, plain, blocked, target));
}

TEST(StepCost, EveryFamilyHasConstantsAndAName) {
  for (int i = 0; i < kStepFamilies; ++i) {
    const auto family = static_cast<StepFamily>(i);
    EXPECT_FALSE(name(family).empty());
    EXPECT_GT(step_row(family).traffic, 0) << name(family);
    EXPECT_GE(step_row(family).cycles, 0) << name(family);
  }
}

TEST(StepCost, StartsAreOfRoutinesThatThereAre) {
#define NEO_PRODUCT_ROW(name, us)                               \
  EXPECT_NE(standard_routines().find(name), nullptr) << (name); \
  EXPECT_EQ(start_us(name), us) << (name);                      \
  EXPECT_LT(us, 3) << (name);
#include "routines/cost/product_rows.inc"
#undef NEO_PRODUCT_ROW
  EXPECT_EQ(start_us("no such routine"), 0);
}

TEST(Machine, ReadsWhatItWrites) {
  const Machine m = machine(), read = Machine::parse("# a comment\n\n" + m.to_text(), "m.txt");
  EXPECT_EQ(read.to_text(), m.to_text());
  EXPECT_EQ(read.cache[2].bytes, m.cache[2].bytes);
}

TEST(Machine, AFileMustHaveEachFigureOnce) {
  const std::string text = machine().to_text();
  EXPECT_NE(message_of("").find("Got none, or 0, for ghz"), std::string::npos);
  EXPECT_NE(message_of(text.substr(text.find('\n') + 1)).find("for ghz in m.txt"), std::string::npos);
  EXPECT_NE(message_of(text + "ghz = 3\n").find("Got \"ghz = 3\" in m.txt"), std::string::npos);
  EXPECT_NE(message_of(text + "volts = 3\n").find("Got \"volts = 3\""), std::string::npos);
  for (const char* line : {"ghz = fast", "ghz = -1", "ghz = 1e300", "ghz", "ghz = 3 4", "ghz = nan", "ghz = inf"})
    EXPECT_NE(message_of(line).find(line), std::string::npos) << line;
  EXPECT_NE(message_of("ghz = 0\n" + text.substr(text.find('\n') + 1)).find("none, or 0"), std::string::npos);
}

TEST(Machine, EstimatesOfOtherTargetsDoNotDependOnTheHost) {
  EXPECT_EQ(Machine::of(kIsaAvx2, false).to_text(), Machine::of(kIsaAvx2, false).to_text());
  EXPECT_EQ(Machine::of(kIsaNeon, false).cache[0].bytes, 32 << 10);
  EXPECT_GT(Machine::of(kIsaAvx512, false).gflops, Machine::of(kIsaScalar, false).gflops);
}

}  // namespace
}  // namespace neo
