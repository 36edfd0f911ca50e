// verify_run: replays a stretch of a recorded run and compares every chain entry.
//
// A difference is a result, with the first step that differs, and no error. The replay may use another engine
// and another number of workers than the run did; the bits are the same.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ostro/io/files/file_system.h"
#include "ostro/runtime/engine.h"
#include "ostro/train/options/config.h"
#include "ostro/train/step/step.h"

namespace ostro::audit {

struct VerifyOptions {
  int64_t from_step = 0;           // the replay begins at the newest checkpoint at or before this step
  std::optional<int64_t> to_step;  // nothing: the chain's last step
  int64_t workers = 1;
  std::string cache;  // the token store's folder; empty: found as open_run_data() says
  // Replay program.ir where this version traces other programs from the configuration (recorded_run.h).
  bool stored_programs = false;
  std::vector<int64_t> name_steps;  // steps whose replayed states are named in the report
  // Called with the state before each step, on one worker; it may change the state, to try out what a record
  // may be of (cause.h).
  std::function<Status(train::State& state)> before_step = {};
  std::function<void(int64_t first, int64_t last)> on_begin;  // before the first step
  std::function<void(int64_t step, int64_t first, int64_t last)> on_step;
};

struct VerifyReport {
  bool equal = false;
  int64_t start_step = 0;       // the state that was restored (0: the seed's initial state)
  int64_t last_step = 0;        // replayed and compared up to here
  int64_t entries = 0;          // chain entries compared
  int64_t different_step = -1;  // the first step that differs
  std::string what;             // "batch", "loss", "tokens", "leaves", "state" or "checkpoint"
  std::string recorded, replayed;
  std::string cause;     // of the difference, as far as it is known (cause.h); verify_run leaves it empty
  std::string unproven;  // why the programs may not be the configuration's (stored_programs); empty: they are
  std::map<int64_t, std::string> names;  // of replayed states, by step
};

// Compares also that every checkpoint has its entry in the chain that was due.
// Replays the programs of the run's configuration, which must be those that the chain names, on the run's
// data; from an amend on those of the config that it leads to. Errors: kCorrupt where the chain is broken, or
// contradicts its own amends, config or programs; others where the programs or data cannot be compared or
// opened (a damaged token store among them), and where there are no such steps.
Result<VerifyReport> verify_run(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                                const VerifyOptions& options, models::ModelChoices models);

}  // namespace ostro::audit
