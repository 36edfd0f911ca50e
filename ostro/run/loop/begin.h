// begin_run, resume_run, restore_newest: the work between opening a run and its first step: the state is made
// or read, and the chain is begun or cut to the state's step.
#pragma once

#include <functional>
#include <memory>

#include "ostro/run/loop/chain_keeper.h"
#include "ostro/run/loop/opened_run.h"

namespace ostro::run {

// Reads the newest checkpoint that can be used into `state`; the first to try is that of `from`. A checkpoint
// that is damaged, or whose parameters are not those of the chain, is passed over with a warning, and
// `plan(before)` returns an earlier one. When that has another config than `state`, `renew` makes the state
// for it. Returns the resumption that was read; it has no checkpoint when `from` has none. Error: no
// checkpoint can be used.
Result<Resumption> restore_newest(train::LiveState& state, Resumption from,
                                  const std::function<Result<train::LiveState*>(const Resumption&)>& renew,
                                  const std::function<Result<Resumption>(int64_t before)>& plan);

// The period that begins where a run goes on (run.from), with what follows from run.config.
Result<audit::Period> amended_period(const OpenedRun& run);
// The genesis of a new run that begins with drawn parameters; it follows from the config, programs and data.
Result<chain::GenesisEntry> genesis_of(const OpenedRun& run);
// Writes the files of a new run beside its state and chain: config, programs, tokenizer, chat template.
Status write_run_files(const OpenedRun& run, io::FileSystem& fs);

// Begins a new run: writes its files, makes its state at step 0, and writes its chain. The chain comes last,
// because a directory without one is no run.
Result<std::unique_ptr<ChainKeeper>> begin_run(OpenedRun& run, const Environment& env,
                                               train::LiveState& state);

// Continues the run from run.from, whose state has been read or is carried by other processes.
Result<std::unique_ptr<ChainKeeper>> resume_run(const OpenedRun& run, const Environment& env,
                                                train::LiveState& state, bool amend);

}  // namespace ostro::run
