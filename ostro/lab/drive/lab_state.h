// LabState: what is known of each step of a plan: whether it is done, would be done, waits or failed, and
// why. Values.
#pragma once

#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <vector>

#include "ostro/lab/steps/work.h"

namespace ostro::lab {

enum class Action {
  kSkip,    // done, and its output is unchanged
  kRun,     // not done
  kResume,  // begun, and goes on with what is there
  kAudit,   // done, and is done again to compare
  kWait,    // an input is not there, so what it would do is not known
  kFail,    // cannot be done, or its output was changed
  kLeft,    // is not to be done: what it is of was stopped at a rung (steps/halving.h)
};
const char* action_name(Action action);

struct StepState {
  const Step* step = nullptr;
  Action action = Action::kWait;
  std::string reason;
  // Known when all inputs are there; the content only of a step that is done.
  std::string recipe, fingerprint, content;
  std::string manifest;                // of its output, as the journal has it
  std::optional<run::Cost> cost = {};  // of a training that would be done, if that was asked
  bool was_stopped = false;            // a training that is done, and ended at a rung before its last step

  // Whether nothing is left to do: it is done, or left out.
  bool is_settled() const { return action == Action::kSkip || action == Action::kLeft; }
};

// The states of all steps, in the order of the plan.
struct LabState {
  std::vector<StepState> steps;
  std::map<std::string, Made> made;  // of the steps that are done
  bool stopped = false;              // context.stop asked to stop

  // The steps that no rung left out, in the order of the plan; the view lives as long as this.
  auto kept() const {
    return steps | std::views::filter([](const StepState& s) { return s.action != Action::kLeft; });
  }
  size_t done() const;      // steps
  size_t left_out() const;  // steps that a rung left out: nothing is to be done of them
  bool is_done() const;     // all others
  // "5 of 9 steps done", or with a verb "5 of 9 steps are done"; ", 4 left out" behind it where some are.
  std::string done_text(const char* verb = "") const;
  // SHA-256 over fingerprints and contents of all steps; of a finished lab it is a function of the plan's
  // steps and the sources: no machine, path, time or kill changes it.
  std::string hash() const;
  const StepState* find(const std::string& step) const;
};

// The first digits of a hash, as people read it.
std::string short_hash(const std::string& hash);

}  // namespace ostro::lab
