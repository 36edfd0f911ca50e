// Resuming on several processes: the leader chooses a checkpoint, all workers read it.
#pragma once

#include <functional>
#include <optional>

#include "ostro/run/loop/resume.h"
#include "ostro/train/step/spread_state.h"

namespace ostro::run {

// `from` is what plan_resume gave without arrays, `plan(before)` gives what an earlier checkpoint does. Has
// all workers read their cells. A checkpoint that is damaged at one of them, or whose parameters are not the
// chain's, is passed over by all, with a warning. Returns what all have adopted, or `from` if there is no
// checkpoint. Errors: none can be used; an earlier one is of another config than the workers have got.
Result<Resumption> restore_together(
    train::SpreadState& state, io::FileSystem& fs, Resumption from,
    const std::function<Result<Resumption>(std::optional<int64_t> before)>& plan);

}  // namespace ostro::run
