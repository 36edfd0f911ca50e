// TimeLimits: how long the parts of a run on several processes may take before they count as failed. All of
// them are here: each is a key of the trainer's section or follows from what was measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "ostro/train/options/options.h"

namespace ostro::run {

using TimeLimit = std::chrono::milliseconds;

// `slowest`: the longest of the last steps of this process in seconds, waits included; none before the first
// has ended (base/watch/pulse.h). Steps of one run may differ much: with the batch size, with the share of a
// worker, with what else runs on its machine.

// How long a worker's step may stand still, without a kernel or a phase that ends, while it waits for no
// other worker. trainer.hang_timeout; else 10 times the slowest step and at least two minutes, before the
// first an hour.
TimeLimit hang_limit(const train::TrainerOptions& options, std::optional<double> slowest);

// How long an exchange may wait while no byte moves: a peer computes, or nothing comes any more. None: as
// long as the connection lasts. trainer.exchange_timeout; else 20 times the slowest step and at least ten
// minutes, before the first none.
std::optional<TimeLimit> exchange_limit(const train::TrainerOptions& options, std::optional<double> slowest);

// How long so many workers, all of which have come, may take to connect. trainer.connect_timeout; else 30
// seconds and a tenth of a second for each.
TimeLimit connect_limit(const train::TrainerOptions& options, int64_t workers);

// How long the other machine may acknowledge nothing on a connection between workers. trainer.link_timeout.
TimeLimit link_limit(const train::TrainerOptions& options);

// The grace of a run that is asked to stop: within it the step in progress ends and the state is saved.
// trainer.stop_timeout.
TimeLimit stop_limit(const train::TrainerOptions& options);

}  // namespace ostro::run
