// run_plan: does the steps of a plan that are not done yet, and says of each what happens and why. look_at
// says the same and does nothing.
//
// A step is skipped when the journal has its fingerprint and its output is unchanged. A step that fails stops
// only those that need it. Whatever is killed, the same call goes on. One process at a time works on a lab.
#pragma once

#include <functional>

#include "ostro/lab/drive/lab_state.h"
#include "ostro/lab/places/elsewhere.h"

namespace ostro::lab {

struct RunRequest {
  bool every_byte = false;       // read all files, also those whose size and time are unchanged
  std::vector<std::string> pin;  // sources whose files are taken as they are now
  // Steps that are done side by side. With more than one, each is done in a child process with its share of
  // `threads`, and what it prints goes to a file of the folder logs; no other thread of the process may be at
  // work.
  int jobs = 1;
  int threads = 1;
  // Where steps are done; null: here. It changes no bit. `argv` is the command, for what they record.
  const Cluster* elsewhere = nullptr;
  std::vector<std::string> argv = {};
  double audit = 0;     // the share of skipped steps that are done again, to compare: 0 to 1
  std::string by = {};  // of an audit: who does it, for the journal; empty: no name
  std::function<void(const StepState&)> on_begin = {};  // before a step is done
  std::function<void(const StepState&)> on_end = {};    // when its state is final
};

// Errors: another process works on the lab; the journal or lab.lock is damaged. Failures of steps are states.
Result<LabState> run_plan(const Context& context, const Services& services, const Plan& plan,
                          const RunRequest& request);

// Reads only. Steps that would be done are kRun or kResume, and those behind them kWait. Of trainings that
// would be done it computes what they take, if `services` can.
Result<LabState> look_at(const Context& context, const Plan& plan, bool every_byte = false,
                         const Services& services = {});

// What `ostro lab why` prints of a step: its state, and how its recipe differs from that of the last time.
Result<std::string> why_text(const Context& context, const Plan& plan, const std::string& step);

}  // namespace ostro::lab
