// How a session ends: what run.json says of it, and what is left of a run that has not begun.
#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/base/watch/time_use.h"
#include "ostro/train/run/run.h"

namespace ostro::train {

Status Run::close(const std::string& outcome) {
  closed_ = true;
  end_session(record_, outcome, state_.step);
  const TimesUsed times = goodput_->session();
  for (size_t i = 0; i < kTimeUses; ++i) record_.sessions.back().seconds[kTimeUseNames[i]] = times[i];
  goodput_->write(true);
  return write_record(env_.fs, file(kRecordFile), record_);
}

Result<RunOutcome> Run::train(const Watcher& watcher) {
  auto outcome = steps(watcher);
  // Where several processes share the run, another may go on with it.
  if (outcome.ok() || closed_ || env_.crew != nullptr) return outcome;
  // The first error is the one that matters.
  const Status ended = begun_ && state_.step == 0 && last_saved_ < 0
                           ? forget_run()
                           : close(fmt::format("failed: {}", outcome.error().message()));
  if (!ended.ok()) log_warning(fmt::format("{}: {}", directory_, ended.error().message()));
  return outcome;
}

// Without a chain the directory holds no run, and the same trainer.id may begin one with other data.
Status Run::forget_run() {
  chain_.reset();
  RETURN_IF_ERROR(env_.fs.remove(file(kChainFile)));
  RETURN_IF_ERROR(env_.fs.remove(file(kRecordFile)));
  return env_.fs.sync_dir(directory_);
}

}  // namespace ostro::train
