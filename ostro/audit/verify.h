// Replay, verify_run: replay stretches of a recorded run and compare every chain entry.
//
// A difference is not an error but a result, which names the first step that differs. The replay may use
// another engine and another number of workers than the run did; the bits are the same.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/audit/sample/cost.h"
#include "ostro/audit/sample/plan.h"
#include "ostro/batches/loader/loader.h"
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
  // Called with the state before each step, with one worker only. It may change the state, to try out how a
  // record came to be (cause.h).
  std::function<Status(train::State& state)> before_step = {};
  std::function<void(int64_t first, int64_t last)> on_begin;               // called before the first step
  std::function<void(int64_t step, int64_t first, int64_t last)> on_step;  // called after each step
};

struct VerifyReport {
  bool equal = false;
  int64_t start_step = 0;       // the state that was restored (0: the seed's initial state)
  int64_t last_step = 0;        // replayed and compared up to here
  int64_t entries = 0;          // chain entries compared
  int64_t different_step = -1;  // the first step that differs
  // The part of the step that differs: "batch", "loss", "tokens", "leaves", "state" or "checkpoint"; and its
  // two values.
  std::string what;
  std::string recorded, replayed;
  bool rest_is_equal = false;  // the parts of the step after this one are those of the replay
  std::string cause;     // of the difference, as far as it is known (cause.h); verify_run leaves it empty
  std::string unproven;  // why the programs may not be the configuration's (stored_programs); empty: they are
  std::map<int64_t, std::string> names;  // of replayed states, by step
};

// A recorded run with its data, opened to be replayed. It replays the programs of the run's configuration,
// which must be those that the chain names, on the run's data. From an amend on it replays the programs of
// the amended configuration. Not thread-safe.
class Replay {
 public:
  // `fs` and `engine` must outlive it. Errors: kCorrupt where the chain is broken, or contradicts its own
  // amends, config or programs; others where the programs or data cannot be compared or opened (a damaged
  // token store among them).
  static Result<std::unique_ptr<Replay>> open(io::FileSystem& fs, runtime::Engine& engine,
                                              const std::string& run_directory, const VerifyOptions& options,
                                              models::ModelChoices models);

  const RecordedRun& run() const { return run_; }

  // Replays from the newest state at or before `from_step` to step `last`, and compares. It also checks that
  // the chain has an entry for every checkpoint that was due. Errors: kInvalidArgument when the run has no
  // such steps, and those of reading states and data.
  Result<VerifyReport> stretch(int64_t from_step, int64_t last);
  // Moves out the parameters after the last stretch.
  Result<std::vector<runtime::Buffer>> take_params();

  // Estimates the cost of the stretches of a plan on this machine. To measure, it restores states and does
  // parts of some steps.
  Result<Cost> estimate(const SamplePlan& plan);

 private:
  // The measured cost of the parts of a step.
  struct Prices {
    Cost step;  // of everything but its leaves
    Cost leaf;  // of one leaf
  };
  Replay(io::FileSystem& fs, runtime::Engine& engine, std::string directory, VerifyOptions options,
         models::ModelChoices models, RecordedRun run);
  // Restores a state, and with it the reference of pairs.
  Status restore(int64_t step);
  // Makes the loader and the runner of the steps of this period.
  Status use(const OpenedPeriod& period);
  // The optimizer's scalars for the step after `done` steps, and the prices of its parts, which are measured
  // with the runner of the step's period.
  std::vector<float> scalars_of(const OpenedPeriod& period, int64_t done) const;
  Result<Prices> measure(const OpenedPeriod& period, int64_t done);
  // The steps of a period, with so many workers here.
  Result<std::unique_ptr<train::StepRunner>> runner_of(const OpenedPeriod& period, int64_t workers);

  io::FileSystem& fs_;
  runtime::Engine& engine_;
  const std::string directory_;
  const VerifyOptions options_;
  const models::ModelChoices models_;
  const RecordedRun run_;
  std::shared_ptr<const batches::DataSet> opened_, stores_;  // with and without the reference of pairs
  train::State state_;
  const OpenedPeriod* period_ = nullptr;  // of loader and runner
  std::optional<batches::Loader> loader_;
  std::unique_ptr<train::StepRunner> runner_;
};

// One stretch: from the newest state at or before options.from_step to options.to_step. Errors: as Replay.
Result<VerifyReport> verify_run(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                                const VerifyOptions& options, models::ModelChoices models);

}  // namespace ostro::audit
