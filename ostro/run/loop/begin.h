// Beginning: what happens between opening a run and its first step. The state is made or read, and the chain
// is begun or cut to the state's step.
#pragma once

#include <functional>
#include <memory>

#include "ostro/run/loop/chain_keeper.h"
#include "ostro/run/loop/opened_run.h"

namespace ostro::run {

// Reads the newest checkpoint that can be used into `state`, first that of `from`. One that is damaged, or
// whose parameters are not the chain's, is passed over with a warning, and `plan(before)` gives an earlier
// one; where that is of another config than `state`, `renew` makes the state for it. Returns what was read;
// no checkpoint when there was none from the start. Errors: none can be used.
Result<Resumption> restore_newest(train::LiveState& state, Resumption from,
                                  const std::function<Result<train::LiveState*>(const Resumption&)>& renew,
                                  const std::function<Result<Resumption>(int64_t before)>& plan);

// The genesis of a new run that begins with drawn parameters: what follows from its config, programs and
// data.
Result<chain::GenesisEntry> genesis_of(const OpenedRun& run);
// The files of a new run beside its state and chain: config, programs, tokenizer, chat template.
Status write_run_files(const OpenedRun& run, io::FileSystem& fs);

// A new run: its files, its state at step 0, and its chain, which comes last: a directory without one is no
// run.
Result<std::unique_ptr<ChainKeeper>> begin_run(OpenedRun& run, const Environment& env,
                                               train::LiveState& state);

// The run that goes on from run.from, whose state has been read, or is carried by others.
Result<std::unique_ptr<ChainKeeper>> resume_run(const OpenedRun& run, const Environment& env,
                                                train::LiveState& state, bool amend);

}  // namespace ostro::run
