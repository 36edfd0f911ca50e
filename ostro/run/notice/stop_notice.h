// write_stop_notice, note_progress: the message on standard error when a signal stops a process.
//
// The signal handler writes it, so that it appears at once, also during a long step. The numbers are those of
// the run that this process trains; before a run has begun, the message does not mention steps.
#pragma once

#include <cstdint>
#include <optional>

namespace ostro::run {

// The training loop tells how far it is: steps done, and the step of the newest whole checkpoint. Any thread.
void note_progress(int64_t done, std::optional<int64_t> saved);

// No run is being trained any more.
void forget_progress();

// `to_kill`: how many more signals end the process, at most 2. Above 0: "stopping after this step; twice more
// to kill". 0: which step is saved, and how many steps will be done again. Nothing where no run is being
// trained. Async-signal-safe.
void write_stop_notice(int to_kill);

}  // namespace ostro::run
