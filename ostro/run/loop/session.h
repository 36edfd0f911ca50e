// run_session: one training session with everything around the loop: console, log, metrics and the run's
// page.
#pragma once

#include "ostro/run/loop/run.h"

namespace ostro::run {

// Opens the run and trains. Reports on standard error, in RUN/log.txt and to the config's trackers. Errors:
// those of Run::open and Run::train.
Result<RunOutcome> run_session(const train::TrainConfig& config, const Environment& environment, bool amend);

}  // namespace ostro::run
