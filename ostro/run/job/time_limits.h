// hang_limit, exchange_limit and others: how long the parts of a run on several processes may take before
// they count as failed. All of these limits are here; each is a key of the trainer's section or follows from
// measured times. Pure functions.
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

// The time that a worker's step may stand still, so that no kernel and no phase ends, while it waits for no
// other worker: trainer.hang_timeout; else 10 times the slowest step and at least two minutes, or an hour
// before the first step has ended.
TimeLimit hang_limit(const train::TrainerOptions& options, std::optional<double> slowest);

// The time that an exchange may wait while no byte moves, because a peer computes or will never send:
// trainer.exchange_timeout; else 20 times the slowest step and at least ten minutes. Nothing, before the
// first step has ended: as long as the connection lasts.
std::optional<TimeLimit> exchange_limit(const train::TrainerOptions& options, std::optional<double> slowest);

// The time that `workers` workers, all of which have joined, may take to connect: trainer.connect_timeout;
// else 30 seconds and a tenth of a second for each.
TimeLimit connect_limit(const train::TrainerOptions& options, int64_t workers);

// The time that the other machine may acknowledge nothing on a connection between workers:
// trainer.link_timeout.
TimeLimit link_limit(const train::TrainerOptions& options);

// The time in which a run that is asked to stop must end the step in progress and save the state:
// trainer.stop_timeout.
TimeLimit stop_limit(const train::TrainerOptions& options);

}  // namespace ostro::run
