#pragma once

#include <map>

#include "bindings/bindings.h"
#include "exec/trace.h"

namespace neo::python {

// The place of an item in a plan: its number in depth-first order, bodies after the item that holds them, and its block
// and region. Blocks are numbered in the same order.
struct ItemPlace {
  int item = 0;
  int block = 0;
  int region = 0;
};
std::map<const Item*, ItemPlace> places_of(const Plan& plan);
std::vector<const Block*> blocks_of(const Plan& plan);

// Bytes of the weights and other constants, packed ones included; memory that several share counts once.
int64_t constant_bytes(const Plan& plan);

// An item's work and expected cost: node, op, routine, estimate_us, flops and bytes at the hints.
py::dict describe_item(const Item& item);

// Blocks, slots and items as plain data, sizes at the hints.
py::dict describe_plan(const Plan& plan);

// The sizes of one region: where its buffers lie in its arena, and the bytes of every slot that are known.
py::dict describe_region(const Block& block, int block_number, int region_number, const Binding& binding);

// Every region bound at the hints of its symbols; regions that the hints do not fit are left out.
py::list describe_regions_at_hints(const Plan& plan);

// Bytes of intermediate values and scratch memory of one call on so many executors, at the largest sizes that the
// ranges of the symbols allow; a symbol without an upper limit is at its hint.
int64_t call_bytes(const Plan& plan, int executors);

}  // namespace neo::python
