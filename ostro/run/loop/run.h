// One training run: its directory, its chain, its state, and the loop.
//
// A run resumes by starting the same command again: the newest whole checkpoint is restored, the chain is cut
// to its step, and the steps after it are done again with the same bits.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/chain/chain_writer.h"
#include "ostro/chain/lock.h"
#include "ostro/chain/record.h"
#include "ostro/checkpoint/async_saver.h"
#include "ostro/fleet/processes/crew.h"
#include "ostro/io/files/file_system.h"
#include "ostro/run/loop/resume.h"
#include "ostro/run/report/goodput.h"
#include "ostro/run/report/progress.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/evaluate.h"
#include "ostro/train/step/spread_state.h"
#include "ostro/train/step/step.h"
#include "ostro/train/step/step_profile.h"

namespace ostro::run {

// What the process provides to a run. None of it changes the bits of the results.
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
  // run goes on from it. Not owned.
  fleet::Crew* crew = nullptr;
  // Makes a checkpoint, in the new directory `to`, of another program's model in the directory `from`, and
  // returns its path; nothing where `from` is no such model. For trainer.initialize_from.
  std::function<Result<std::optional<std::string>>(const std::string& from, const std::string& to)>
      import_model = {};
  // Called when a session has opened the run, so that its data are built.
  std::function<void()> on_open = {};
  // Writes the run's page for people after a session, with samples of the model or without; until `stop`.
  std::function<void(const std::string& run_directory, bool with_samples, const std::function<bool()>& stop)>
      write_page = {};
};

// The cost of a run.
struct RunPlan {
  int64_t parameters = 0;
  int64_t active_parameters = 0;         // those that one token needs: fewer in a mixture of experts
  double flops_per_token = 0;            // from the model's definition; recomputation does not count
  runtime::ExecutableInfo leaf, update;  // one run of each program
};

// What the training loop reports after each step.
struct StepReport {
  int64_t step = 0, total = 0;
  double loss = 0, gradient_norm = 0, learning_rate = 0;
  double tokens = 0;                                     // that count in the loss, by their weights
  std::vector<std::pair<std::string, double>> measures;  // by name: means over the batch (measure_names)
  double step_seconds = 0, data_seconds = 0, save_seconds = 0;
  GoodputTotals goodput;  // of the run so far
  // Of a mixture that tracks it: the share of the step's rows that each expert got, [layers, experts], of
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
struct Watcher {
  std::function<void(int64_t first_step, int64_t total)> on_start;
  std::function<void(const StepReport&)> on_step;
  std::function<void(const EvalReport&)> on_eval;
};

struct RunOutcome {
  bool finished = false;     // false: stopped by a signal, state saved
  bool handed_over = false;  // another process leads from here
  int64_t steps = 0;
  std::string hash;  // head of the chain; after the last step this is the run hash
};

// Everything a run is made of, ready to step. Create, then train().
class Run {
 public:
  // Takes the run directory's lock; begins the run there or resumes it, with `amend` also by another config
  // or program (amend.h). Errors: another process holds the run, the directory holds a run of another config,
  // data, program or tokenizer (names what differs), `amend` and there is no run.
  static Result<std::unique_ptr<Run>> open(const train::TrainConfig& given, const Environment& environment,
                                           bool amend = false);
  ~Run();

  const std::string& directory() const { return directory_; }
  int64_t step() const { return state_.step; }
  Result<RunPlan> plan() const;

  // Trains to the last step, or until stop is set. After an error run.json says what it was; a run that this
  // session began and that did no step is none any more: its chain and its run.json are removed.
  Result<RunOutcome> train(const Watcher& watcher);

 private:
  Run(const train::TrainConfig& config, const Environment& environment);
  Result<train::State> first_state(const train::CanonicalPrograms& programs,
                                   const train::StateArrays& arrays);
  Status make_reference(const std::optional<chain::GenesisEntry>& genesis);
  Status prepare(int64_t vocab);
  Result<std::optional<int64_t>> live_step();
  Result<std::unique_ptr<train::StepRunner>> make_steps();
  Status begin();
  Status begin_state(const chain::GenesisEntry& genesis);
  Status resume(Resumption from, bool amend);
  // `save_now`: also where no permanent checkpoint is due.
  Status after_step(const Watcher& watcher, StepReport& report, bool save_now);
  Result<RunOutcome> steps(const Watcher& watcher);
  Status evaluate(const Watcher& watcher);
  Status save(bool permanent);
  Status finish_save();
  Status write_session();
  Status close(const std::string& outcome);
  Status forget_run();
  double seconds_since(std::chrono::nanoseconds start) const;
  std::string file(const std::string& name) const { return directory_ + "/" + name; }

  train::TrainConfig config_;
  Environment env_;
  std::string directory_;
  std::unique_ptr<io::FileLock> lock_;
  models::ModelFunctions model_;
  train::CanonicalPrograms programs_;
  train::DataAccess data_;
  std::optional<train::State> first_state_;  // of a new run, where it was made already
  std::optional<std::string> origin_;        // of the parameters that it begins with
  std::optional<std::string> reference_;     // hash of what the pairs are compared with
  std::optional<data::Loader> loader_;
  std::optional<train::HeldOutText> held_out_;  // nothing when there is no held-out text
  std::optional<train::HeldOut> evaluator_;     // of a state that is here
  int64_t vocab_ = 0;
  bool told_uncounted_ = false;  // held-out text without a token that counts is warned of once
  std::unique_ptr<train::StepRunner> runner_;
  std::unique_ptr<chain::ChainWriter> chain_;
  std::unique_ptr<checkpoint::AsyncSaver> saver_;
  chain::RunRecord record_;
  std::unique_ptr<Goodput> goodput_;
  train::State state_;
  std::string measured_;      // of the last step, for the manifest
  int64_t saving_step_ = -1;  // step of the save that runs, when its name goes into the chain
  int64_t last_saved_ = -1;
  int64_t saving_epoch_ = 0;  // in which the workers write it
  bool takes_over_ = false;   // the workers have the state
  bool save_first_ = false;   // a checkpoint of its step is due
  bool begun_ = false;        // by this session
  bool closed_ = false;       // run.json says how the session ended
};

}  // namespace ostro::run
