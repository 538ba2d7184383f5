#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/interpreter.h"

namespace neo {

// The iterations of a loop after the first, where they are all alike: every size stays, and the body is one region of
// steps that write to planned memory. An iteration moves pointers and copies no carried value; only host steps
// allocate.
class SteadyLoop {
 public:
  // The tensor that collects one output over the iterations, along its `axis`-th axis.
  struct Collected {
    Tensor first;  // the element of the first iteration
    int axis = 0;
    bool reverse = false;
    Tensor whole;  // set by run()
  };
  struct Scanned {
    Tensor tensor;
    int axis = 0;
    bool reverse = false;
  };
  struct State {
    bool is_scan = false;
    bool ends = false;                 // a false condition ends the loop
    bool go = true;                    // the condition of the last iteration
    int64_t trips = 0;                 // at most, the first included; known where anything is collected
    int64_t done = 1;                  // iterations
    std::vector<HostValue> arguments;  // of the second iteration, as the body takes them
    std::vector<HostValue> carried;
    std::vector<Scanned> scanned;
    std::vector<Collected> collected;
  };

  explicit SteadyLoop(Interpreter& body) : body_(body) {}

  // Runs what is left of a loop whose first iteration has been run. False: nothing was done, for this body or these
  // values are no such case.
  bool run(State& state, const SymbolValues& outer);

 private:
  static constexpr int64_t kLine = 64;  // kernels write whole cache lines where they can
  static constexpr size_t kNone = SIZE_MAX;

  struct Part {  // of a tensor along an axis: `outer` pieces of `bytes`, `step` bytes apart
    std::byte* base = nullptr;
    int64_t outer = 1, bytes = 0, step = 0;
    bool reverse = false;
    Tensor copy;  // a slice of several pieces

    static Part of(const Tensor& tensor, int axis, bool reverse);
    std::byte* at(int64_t i, int64_t trips) const { return base + (reverse ? trips - 1 - i : i) * bytes; }
    std::byte* gather(int64_t i, int64_t trips);
    void scatter(int64_t i, int64_t trips, const std::byte* from) const;
    // Whether the parts are dense and whole cache lines, which kernels may write at once.
    bool is_written_in_place() const { return outer == 1 && bytes % kLine == 0; }
  };

  // A slot that is read where a carried value lies, instead of a copy.
  struct Copy {
    int slot = 0;
    size_t carried = 0;
  };
  // An address that moves with the pointer of a slot.
  struct Place {
    size_t slot = 0;
    int64_t bytes = 0;
  };
  // An item whose operands are places, from `first` on.
  struct Call {
    const Item* item = nullptr;
    size_t index = 0;
    const KernelStep* kernel = nullptr;  // null: a copy, or an item that its interpreter runs
    const std::byte* prepared = nullptr;
    int64_t copied = -1;  // bytes of a copy
    size_t first = 0;
  };

  bool are_steps_alike() const;
  std::optional<Dims> dims_of(int slot) const;
  bool fits(const State& state) const;
  void allocate(State& state);
  static Tensor tensor_for(const Collected& collected, int64_t count);
  void set_room(State& state, int64_t room);
  void find_shared(const State& state);
  bool is_shared_copy(const StepItem& step) const;
  void find_calls();
  void run_calls();

  Interpreter& body_;
  std::vector<Part> scanned_, collected_;
  int64_t room_ = 0;                // iterations that the collected tensors have room for
  std::vector<Tensor> carried_[2];  // of even and odd iterations
  std::vector<size_t> shared_;      // by carried value: the collected one in whose place it lies
  std::vector<Copy> copies_;
  std::vector<Call> calls_;
  std::vector<Place> places_;
  std::vector<std::byte*> addresses_;
};

}  // namespace neo
