// Run: one training run, with its directory, its chain, its state, and the loop.
//
// A run resumes by starting the same command again: the newest whole checkpoint is restored, the chain is cut
// to its step, and the steps after it are done again with the same bits.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/data/arrays/build_settings.h"
#include "ostro/fleet/processes/crew.h"
#include "ostro/io/files/file_system.h"
#include "ostro/run/report/goodput.h"
#include "ostro/run/report/progress.h"
#include "ostro/train/step/live_state.h"
#include "ostro/train/step/step_profile.h"

namespace ostro::run {

// The services that the process provides to a run. None of them changes the bits of the results.
struct Environment {
  io::FileSystem& fs;
  runtime::Engine& engine;
  int64_t workers = 1;            // simulated data-parallel workers (OSTRO_SIM_WORKERS)
  std::function<bool()> stop;     // returns true to save and stop after the current step (SIGTERM)
  data::BuildSettings build;      // for building the token store if it does not exist
  std::vector<std::string> argv;  // for run.json
  std::optional<train::StepRange> profile = {};      // steps to profile
  Progress::Clock clock = Progress::steady_clock();  // for saves by time and for reports
  // The processes that train together, if there are several; this one leads them. When they have a state, the
  // run continues from it. Not owned.
  fleet::Crew* crew = nullptr;
  // For trainer.initialize_from: makes a checkpoint, in the new directory `to`, from another program's model
  // in the directory `from`, and returns its path; nothing when `from` is no such model.
  std::function<Result<std::optional<std::string>>(const std::string& from, const std::string& to)>
      import_model = {};
  // Called when a session has opened the run; its data are built then.
  std::function<void()> on_open = {};
  // Writes the run's page for people after a session, with samples of the model or without. Ends early when
  // `stop` returns true.
  std::function<void(const std::string& run_directory, bool with_samples, const std::function<bool()>& stop)>
      write_page = {};
  // Writes the same page while the run goes on, without samples. Says nothing when it succeeds.
  std::function<Status(const std::string& run_directory)> refresh_page = {};
  // Makes the object that holds the run's state. Empty: the state is in this process on `workers` workers, or
  // is held by the crew.
  std::function<Result<std::unique_ptr<train::LiveState>>(const train::StateParts&)> make_state = {};
  // The name of the slice of each simulated worker (OSTRO_SIM_SLICES); empty: one slice.
  std::vector<std::string> slices = {};
  // The step after which the session ends, with its state saved, though the run has more. It must be one
  // whose checkpoint is kept (CheckpointerOptions::is_kept): then the chain ends with that checkpoint's name,
  // as the chain of the whole run goes on from it. A later session goes on with the run.
  std::optional<int64_t> until = {};
  // Owns what `fs` refers to, where that is not the program's (scratch_files).
  std::shared_ptr<io::FileSystem> own_files = {};
};

// The cost of a run.
struct RunPlan {
  int64_t parameters = 0;
  int64_t active_parameters = 0;         // parameters that one token uses: fewer in a mixture of experts
  double flops_per_token = 0;            // from the model's definition; recomputation does not count
  runtime::ExecutableInfo leaf, update;  // one run of each program
  int64_t memory = 0;                    // of this process at its peak, in bytes; 0: it was not planned
};

// The report of the training loop after each step.
struct StepReport {
  int64_t step = 0, total = 0;
  double loss = 0, gradient_norm = 0, learning_rate = 0;
  double tokens = 0;                                     // sum of the loss weights
  std::vector<std::pair<std::string, double>> measures;  // by name: means over the batch (measure_names)
  std::vector<std::pair<std::string, double>>
      watched;  // norms, in the steps that trainer.watch_interval names
  double step_seconds = 0, data_seconds = 0, save_seconds = 0;
  // With trainer.cross_check: leaves that two workers computed, and the time that this took in this process.
  int64_t checked_leaves = 0;
  double check_seconds = 0;
  int64_t processes = 1;  // processes that share the step
  GoodputTotals goodput;  // of the run so far
  // For a mixture that tracks it: the share of the step's rows that each expert got, [layers, experts], for
  // each block of layers.
  std::vector<runtime::Buffer> expert_loads;
};
struct EvalReport {
  int64_t step = 0;
  double loss = 0;
  std::optional<double> bits_per_byte;    // no value if some held-out text does not count in the loss
  std::vector<train::HeldOutPart> parts;  // one per component, if the config has components
  std::optional<train::PairFigures> pairs = {};
};
// A checkpoint that was written.
struct SaveReport {
  int64_t step = 0;
  double seconds = 0;  // of writing it, beside the steps
  int64_t bytes = 0;   // of its arrays
};
struct Watcher {
  std::function<void(int64_t first_step, int64_t total)> on_start;
  std::function<void(const StepReport&)> on_step;
  std::function<void(const EvalReport&)> on_eval;
  std::function<void(const SaveReport&)> on_save;  // at the next step that ends after it, or at the end
  // Called after a step whose state is saved or was evaluated, after the other two.
  std::function<void(int64_t step)> on_milestone;
};

struct RunOutcome {
  bool finished = false;     // false: stopped by a signal or by Environment::until, state saved
  bool handed_over = false;  // another process leads from here
  int64_t steps = 0;
  std::string hash;  // head of the chain; after the last step this is the run hash
};

struct OpenedRun;
class ChainKeeper;

// A run that is ready to step: what was opened, its state, and its chain. Create, then train().
class Run {
 public:
  // Takes the run directory's lock; begins the run there or resumes it, with `amend` also with another config
  // or program (amend.h). Errors: another process holds the run; the directory holds a run of another config,
  // data, program or tokenizer (with what differs); `amend` although there is no run; the run does not fit
  // into memory. After an error, no new directory is left.
  static Result<std::unique_ptr<Run>> open(const train::TrainConfig& given, const Environment& environment,
                                           bool amend = false);
  ~Run();

  const std::string& directory() const;
  int64_t step() const { return state_->step(); }
  Result<RunPlan> plan() const;

  // Trains to the last step, or that of Environment::until, or until stop is set (TrainingLoop). After an
  // error run.json names it. If this session began the run and did no step, the chain and run.json are
  // removed, so that there is no run.
  Result<RunOutcome> train(const Watcher& watcher);

 private:
  Run(std::unique_ptr<OpenedRun> opened, const Environment& environment);
  static Result<std::unique_ptr<Run>> open_in_directory(const train::TrainConfig& given,
                                                        const Environment& environment, bool amend);
  Status forget();

  Environment env_;
  std::unique_ptr<OpenedRun> opened_;
  std::unique_ptr<train::LiveState> state_;
  std::unique_ptr<ChainKeeper> keeper_;  // behind the state: its thread writes what the state has
};

// Whether any process that led the run would come to this error, so that the run is over. What is missing,
// damaged or impossible here may be right on another machine.
bool is_of_the_run(const Error& error);

}  // namespace ostro::run
