#pragma once

#include "exec/team.h"

namespace neo {

// Several teams that one call may use at once: Graphi (section 4.4). The caller leads the first one and a thread of its
// own each of the others, which runs its team as a caller does.
class Executors {
 public:
  using Body = void (*)(void* context, int executor);

  virtual ~Executors() = default;
  virtual int size() const = 0;
  virtual Team& team(int executor) = 0;
  // How long a leader without work polls before it sleeps.
  virtual int64_t spin_us() const = 0;

  // After begin(), post(i) has the leader of executor i > 0 call the body, once and soon; any thread may post. end()
  // waits for the leaders that have begun, and no other one begins. The body must not throw.
  virtual void begin(Body body, void* context) = 0;
  virtual void post(int executor) = 0;
  virtual void end() = 0;
};

// A team alone.
class OneExecutor final : public Executors {
 public:
  explicit OneExecutor(Team& team) : team_(team) {}
  int size() const override { return 1; }
  Team& team(int) override { return team_; }
  int64_t spin_us() const override { return 0; }
  void begin(Body, void*) override {}
  void post(int) override {}
  void end() override {}

 private:
  Team& team_;
};

}  // namespace neo
