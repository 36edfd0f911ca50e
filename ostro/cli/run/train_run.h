// One training session with everything around it: console, log, reports, the run's page.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ostro/run/loop/run.h"

namespace ostro::cli {

struct TrainSession {
  train::TrainConfig config;
  std::vector<std::string> argv;                 // what the user typed, for run.json
  std::optional<train::StepRange> profile = {};  // steps to profile
  bool amend = false;                            // go on although options have changed
  int64_t sim_workers = 1;                       // workers that are threads of this process
  fleet::Crew* crew = nullptr;                   // workers that are processes, this one leading
  std::function<bool()> stop = {};               // SIGTERM or SIGINT came
};

Result<run::RunOutcome> run_session(const TrainSession& session, runtime::Engine& engine);

// What the process prints and exits with after run_session().
int report_outcome(const Result<run::RunOutcome>& outcome);

}  // namespace ostro::cli
