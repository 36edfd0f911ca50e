// run_plan: does the steps of a plan that are not done yet, and says of each what happens and why. look_at
// says the same and does nothing.
//
// A step is skipped when the journal has its fingerprint and its output is unchanged. A step that fails stops
// only those that need it. Whatever is killed, the same call goes on. One process at a time works on a lab.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ostro/lab/journal/journal.h"
#include "ostro/lab/steps/work.h"

namespace ostro::lab {

enum class Action {
  kSkip,    // done, and its output is unchanged
  kRun,     // not done
  kResume,  // begun, and goes on with what is there
  kWait,    // an input is not there, so what it would do is not known
  kFail,    // cannot be done, or its output was changed
};
const char* action_name(Action action);

struct StepState {
  const Step* step = nullptr;
  Action action = Action::kWait;
  std::string reason;
  // Known when all inputs are there; the content only of a step that is done.
  std::string recipe, fingerprint, content;
  std::string manifest;  // of its output, as the journal has it
};

struct RunRequest {
  bool every_byte = false;       // read all files, also those whose size and time are unchanged
  std::vector<std::string> pin;  // sources whose files are taken as they are now
  std::function<void(const StepState&)> on_begin = {};  // before a step is done
  std::function<void(const StepState&)> on_end = {};    // when its state is final
};

// The states of all steps, in the order of the plan.
struct LabState {
  std::vector<StepState> steps;
  std::map<std::string, Made> made;  // of the steps that are done
  bool stopped = false;              // context.stop asked to stop

  bool is_done() const;  // all steps
  // The SHA-256 over the fingerprints and contents of all steps, which must be done. It is a function of the
  // plan's steps and the sources: no machine, path, time or kill changes it.
  std::string hash() const;
  const StepState* find(const std::string& step) const;
};

// Errors: another process works on the lab; the journal or lab.lock is damaged. Failures of steps are states.
Result<LabState> run_plan(const Context& context, const Services& services, const Plan& plan,
                          const RunRequest& request);

// Reads only. Steps that would be done are kRun or kResume, and those behind them kWait.
Result<LabState> look_at(const Context& context, const Plan& plan, bool every_byte = false);

// What `ostro lab why` prints of a step: its state, and how its recipe differs from that of the last time.
Result<std::string> why_text(const Context& context, const Plan& plan, const std::string& step);

}  // namespace ostro::lab
