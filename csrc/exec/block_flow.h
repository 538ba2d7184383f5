#pragma once

#include <vector>

#include "exec/plan.h"

namespace neo {

// Checks the slots of one block while its items are read in order, so that the interpreter can trust them: every read
// slot was written, every written one is memory of the block's own. A Model error names the rule that is broken.
class BlockFlow {
 public:
  // Checks the slots by themselves, the arguments and which slots are results.
  explicit BlockFlow(const Block& block);

  const Block& block() const { return block_; }
  void start_region(size_t index) { region_ = index; }
  void check_source(const SymbolSource& source) const;
  void add(const Item& item);
  void check_results() const;

 private:
  void add_step(const StepItem& item);
  void add_dims(const DimsItem& item);
  void add_if(const IfItem& item);
  void add_loop(const LoopItem& item);
  const Slot& slot(int index) const;  // checks the index
  int memory_of(int index) const;     // the slot that a view is in the end a part of
  void read(int index) const;
  void read_plain(int index) const;  // as a host value: row-major
  void write(int index);
  void write_owned(const std::vector<int>& results);

  const Block& block_;
  std::vector<int> memory_;    // by slot
  std::vector<bool> written_;  // by memory slot
  std::vector<size_t> region_of_;
  size_t region_ = 0;
};

}  // namespace neo
