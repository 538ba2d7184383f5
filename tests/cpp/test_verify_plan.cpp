#include <gtest/gtest.h>

#include <functional>

#include "base/check.h"
#include "exec/dependencies.h"
#include "exec/verify_plan.h"

namespace neo {
namespace {

class IdleKernel final : public KernelStep {
 public:
  Prepared prepare(std::span<const Arg>) const override { return {}; }
  void run(const std::byte*, std::byte* const*, std::byte*, Team&) const override {}
};

class IdleHostStep final : public HostStep {
 public:
  void run(std::span<const HostValue>, std::span<HostValue>, Team&) const override {}
};

enum SlotNumber { kX, kA, kB, kC, kKept, kOwned, kLater, kY };

Slot rows_slot(Slot::Storage storage, const std::string& name, const Symbol& rows) {
  Slot slot;
  slot.storage = storage;
  slot.name = name;
  slot.type = Type::tensor(DType::Float32, Shape({Dim::symbol(rows), Dim(4)}));
  slot.layout = Layout::plain(2);
  return slot;
}

Item item_of(std::shared_ptr<const Step> step, std::vector<int> inputs, std::vector<int> outputs) {
  Item item;
  item.what = StepItem{std::move(step), nullptr, std::move(inputs), std::move(outputs)};
  item.node = "n" + std::to_string(std::get<StepItem>(item.what).outputs.front());
  return item;
}

Item kernel(std::vector<int> inputs, int output) {
  return item_of(std::make_shared<IdleKernel>(), std::move(inputs), {output});
}

// Three regions: a chain of buffers, one of which the last region reads, beside a value that its step allocates; what
// reads that; and the result.
Block make_block() {
  using Storage = Slot::Storage;
  const Symbol rows{"N"}, found{"M"};
  Block block;
  block.slots = {rows_slot(Storage::Argument, "x", rows),   rows_slot(Storage::Arena, "a", rows),
                 rows_slot(Storage::Arena, "b", rows),      rows_slot(Storage::Arena, "c", rows),
                 rows_slot(Storage::Arena, "kept", rows),   rows_slot(Storage::Dynamic, "owned", found),
                 rows_slot(Storage::Arena, "later", found), rows_slot(Storage::Result, "y", rows)};
  block.arguments = {kX};
  block.results = {kY};
  block.regions.resize(3);
  block.regions[0].sources = {{rows, kX, 0}};
  block.regions[0].items = {kernel({kX}, kA), kernel({kA}, kB), kernel({kB, -1}, kC), kernel({kC}, kKept),
                            item_of(std::make_shared<IdleHostStep>(), {kX}, {kOwned})};
  block.regions[1].sources = {{found, kOwned, 0}};
  block.regions[1].items = {kernel({kOwned}, kLater)};
  block.regions[2].items = {kernel({kKept, kLater}, kY)};
  return block;
}

// The error about a plan of one block that was changed before and after its memory was planned.
using Change = std::function<void(Block&)>;
std::string plan_error(
    const Change& before, const Change& after = [](Block&) {}) {
  auto block = std::make_shared<Block>(make_block());
  before(*block);
  plan_memory(*block);
  after(*block);
  Plan plan;
  plan.root = block;
  plan.input_names = {"x"};
  plan.output_names = {"y"};
  try {
    verify_plan(plan);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Internal);
    return error.what();
  }
  return "";
}

void unchanged(Block&) {}

StepItem& step_of(Block& block, size_t region, size_t item) {
  return std::get<StepItem>(block.regions[region].items[item].what);
}

TEST(VerifyPlan, TakesAPlanOfSeveralRegions) {
  EXPECT_EQ(plan_error(unchanged), "");
}

struct Broken {
  const char* rule;
  Change before, after = unchanged;
};

TEST(VerifyPlan, NamesTheRuleThatIsBroken) {
  const Broken cases[] = {
      {"a slot must be written before it is read",
       [](Block& b) { std::swap(b.regions[0].items[0], b.regions[0].items[1]); }},
      {"a slot must be one of its block", unchanged, [](Block& b) { step_of(b, 0, 0).inputs = {99}; }},
      {"a step must write to memory of its block", unchanged, [](Block& b) { step_of(b, 0, 0).outputs = {kX}; }},
      {"a kernel must write to planned memory", [](Block& b) { step_of(b, 0, 0).outputs = {kOwned}; }},
      {"a step must write each output once",
       [](Block& b) {
         step_of(b, 0, 0).outputs = {kA, kA};
       }},
      {"planned memory must be written in one region", unchanged, [](Block& b) { step_of(b, 1, 0).outputs = {kKept}; }},
      {"a size must be read off an argument", [](Block& b) { b.regions[1].sources[0].slot = kKept; }},
      {"a slot must be written before it is read",
       [](Block& b) { b.regions[0].sources.push_back(b.regions[1].sources[0]); }},
      {"a size must be known where its region starts", [](Block& b) { b.regions[1].sources.clear(); }},
      {"a size must be known where its region starts",
       [](Block& b) {
         b.regions[0].guards = {{Guard::Relation::Equal, Dim::symbol("K"), Dim(4), "sizes agree"}};
       }},
      {"a slot of an argument must be given once", [](Block& b) { b.slots[kA].storage = Slot::Storage::Argument; }},
      {"memory of a result must be handed out", [](Block& b) { b.results = {kX}; }},
      {"dependencies must be of the items", unchanged, [](Block& b) { b.regions[0].dependencies.waits.pop_back(); }},
      {"an item must start when all that it waits for have ended", unchanged,
       [](Block& b) { b.regions[0].dependencies.waits[1] = 5; }},
      {"an item must wait for earlier ones only", unchanged,
       [](Block& b) { b.regions[0].dependencies.successors[0] = 0; }},
      {"an item must wait for what it reads", unchanged,
       [](Block& b) {
         Dependencies& order = b.regions[0].dependencies;
         std::fill(order.first.begin(), order.first.end(), 0);
         std::fill(order.waits.begin(), order.waits.end(), 0);
         order.successors.clear();
       }},
      {"an item that is no kernel must run on the caller's thread", unchanged,
       [](Block& b) { b.regions[0].dependencies.needs_caller[4] = false; }},
      {"a region must plan the memory that it writes", unchanged,
       [](Block& b) {
         b.regions[0].planned.pop_back();
         b.regions[0].outlives.pop_back();
       }},
      {"a region must say of each memory whether it outlives it", unchanged,
       [](Block& b) { b.regions[0].outlives.pop_back(); }},
      {"memory that is read behind its region must outlive it", unchanged,
       [](Block& b) { b.regions[0].outlives.assign(b.regions[0].outlives.size(), false); }},
      {"memory that outlives its region must have a place", unchanged, [](Block& b) { b.regions[0].place = -1; }},
      {"a place must be free when a region takes it", unchanged,
       [](Block& b) { b.regions[1].place = b.regions[0].place; }},
      {"memory that is needed at once must not be shared", unchanged,
       [](Block& b) {
         b.regions[0].may_share.set(0, 1);
         b.regions[0].may_share.set(1, 0);
       }},
      {"memory that is released must not be read behind its region", unchanged,
       [](Block& b) { b.regions[0].released = {kOwned}; }},
  };
  for (const Broken& broken : cases) {
    const std::string error = plan_error(broken.before, broken.after);
    EXPECT_NE(error.find(broken.rule), std::string::npos) << "expected: " << broken.rule << "\ngot: " << error;
  }
}

TEST(VerifyPlan, NamesMatchArgumentsAndResults) {
  auto block = std::make_shared<Block>(make_block());
  plan_memory(*block);
  Plan plan;
  plan.root = block;
  EXPECT_THROW(verify_plan(plan), Error);
}

}  // namespace
}  // namespace neo
