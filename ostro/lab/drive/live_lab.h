// LiveLab: a lab as it goes on: the states of its steps, and how trainings go that are not done yet. A value.
#pragma once

#include "ostro/lab/drive/driver.h"
#include "ostro/run/report/run_status.h"

namespace ostro::lab {

// A step that was begun and is not done.
struct BegunStep {
  std::string step;                        // its name
  std::string folder;                      // of its output
  bool is_at_work = false;                 // a process works on it now, as far as its files say
  std::optional<run::RunStatus> run = {};  // of a training or fork that has a record
};

struct LiveLab {
  LabState state;
  // The process that works on the lab, as its lock says; empty: none of this machine does.
  std::string driver;
  std::vector<BegunStep> begun;  // in the order of the plan

  const BegunStep* find(const std::string& step) const;
};

// Reads only. Errors: as look_at.
Result<LiveLab> look_live(const Context& context, const Plan& plan);

// "running", "begun", or the action of the step's state: what people read of it.
std::string live_state(const LiveLab& lab, const StepState& step);

}  // namespace ostro::lab
