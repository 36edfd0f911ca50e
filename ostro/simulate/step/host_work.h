// HostWork: what one host computes, holds and sends in a step, from the plan that workers use. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/fleet/plan/worker_plan.h"
#include "ostro/train/step/step.h"

namespace ostro::simulate {

struct StepPlan;

// Bytes and messages of one kind that a host sends in a step.
struct Traffic {
  int64_t inside = 0, between = 0;  // bytes to hosts of its slice, and to others
  int64_t messages = 0;             // to all of them
  int64_t exchanges = 0;            // one after another

  int64_t bytes() const { return inside + between; }
  Traffic& operator+=(const Traffic& other);
};

// Sums of two gradients that a host makes, in gradients of all parameters.
struct Sums {
  double leaves = 0;  // of its own leaves, but for the last one
  double last = 0;    // with its last leaf
  double slice = 0;   // for its slice, of what other hosts of it send; with one level for all hosts
  double all = 0;     // for all slices

  double total() const { return leaves + last + slice + all; }
};

// What one host does in a step.
struct HostWork {
  int64_t leaves = 0;
  Sums adds;
  Traffic parameters;              // before the leaves, or beside the first
  Traffic in_leaves;               // by the leaf program itself, beside its work
  Traffic gradients;               // sums over leaves, after the leaves or beside the last
  Traffic joined;                  // sums over all leaves, those for copies as well
  Traffic in_update;               // losses, norms and fingerprints, and what an optimizer exchanges
  int64_t state = 0;               // bytes of the state that it updates, copies as well
  int64_t memory = 0;              // bytes that it holds
  std::vector<train::Sent> sends;  // the five kinds, as `ostro train --dry_run` names what they consist of

  Traffic sent() const;
};

// The work of `rank` in `step`, whose hosts, slices, exchange and chunks are filled in.
HostWork work_of(const StepPlan& step, const fleet::WorkerPlan& plan, int64_t rank);

// The kind of a message by the name that a worker's load gives it: a member of HostWork.
Traffic HostWork::* kind_of_message(const std::string& what);

}  // namespace ostro::simulate
