// Phase: a part of a training with options of its own. The first phase begins the run, each other one is an
// amend where the one before it ended. Values; docs/guide/lab.md, "Phases".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/experiment/plan/plan.h"

namespace ostro::lab {

struct Phase {
  std::string name;
  int64_t from = 0, to = 0;        // steps that are done before it, and after it
  std::optional<int64_t> workers;  // in this process; nothing: as the process says
  config::Node set;                // options, in force until a later phase sets them otherwise
  std::vector<std::string> adds;   // components that no phase before it may weigh
};

// A phase of a sanity run has at most this number of steps.
inline constexpr int64_t kSanityPhaseSteps = 4;

// The phases of a training, in a sanity run the shortened ones; empty where the plan has none.
std::vector<Phase> phases_of(const Plan& plan, const Step& step);
// A line for each, for people.
std::vector<std::string> phase_lines(const Plan& plan, const Step& step);

// Checks the value of the parameter `phases`, and replaces the `data` of each phase by the names of the
// components. Errors name the place.
Status read_phases(config::Node& phases, const std::string& step);

}  // namespace ostro::lab
