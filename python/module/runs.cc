// Training, and the records of runs.
#include <signal.h>

#include <atomic>

#include "loaded.h"
#include "ostro/audit/inspect.h"
#include "ostro/chain/chain.h"
#include "ostro/cli/run/verify_forms.h"
#include "ostro/convert/export_model.h"
#include "ostro/io/files/path.h"
#include "ostro/run/notice/signals.h"
#include "ostro/runtime/device_name.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/shared/train_run.h"
#include "ostro/shell/words/args.h"
#include "ostro/shell/words/version.h"

namespace ostro::native {
namespace {

// Signals, the log and the times of a run belong to the process.
class OnlyTraining {
 public:
  OnlyTraining() {
    if (taken_.exchange(true))
      throw Failure("this process trains already; wait for that run, or train in another process");
  }
  ~OnlyTraining() { taken_ = false; }
  OnlyTraining(const OnlyTraining&) = delete;
  OnlyTraining& operator=(const OnlyTraining&) = delete;

 private:
  static inline std::atomic<bool> taken_ = false;
};

const char* word(int code) {
  switch (code) {
    case 0: return "equal";
    case 1: return "differs";
    case 3: return "incomplete";
    default: return "cannot check";
  }
}

}  // namespace

RunRecord read_run(const std::string& directory) {
  io::FileSystem& fs = context_on("cpu").fs;
  value(audit::run_hash(fs, directory));  // its errors say more of a folder that is no run's
  const chain::Chain chain = value(chain::read_chain(fs, io::join_path(directory, chain::kChainFile)));
  RunRecord out{chain.head(), {}};
  for (const chain::ChainLink& link : chain.links)
    if (const auto* step = std::get_if<chain::StepEntry>(&link.entry))
      out.steps.push_back({step->step, step->tokens, step->loss, step->state});
  return out;
}

TrainOutcome train(const TrainOptions& options) {
  const OnlyTraining only;
  cli::PercentProgressLine line;
  const Context silent = context_on("cpu");
  std::vector<config::Override> overrides;
  for (const auto& [path, text] : options.overrides) overrides.push_back({path, text});
  if (options.device) value(runtime::parse_device("device", *options.device));
  const train::TrainConfig config =
      value(cli::read_config(options.config, overrides, options.device, silent.models));
  Context context = Context{silent.fs, silent.models, silent.engine,   silent.engine_for_a_moment,
                            line,      silent.stop,   silent.engine_on}
                        .on(config.trainer.device);
  convert::warn_of_adapters(config);
  TrainOutcome out;
  out.directory = train::run_directory(config);
  int signal = 0;
  std::optional<Result<run::RunOutcome>> made;
  {
    const run::StopSignals signals;
    context.stop = [&] { return signals.stop_requested(); };
    made = cli::train_here(context, config, options.words, {}, options.amend);
    signal = signals.received();
  }
  if (signal != 0) ::raise(signal);  // also one that came when the run was over or had failed
  const run::RunOutcome outcome = value(*std::move(made));
  out.finished = outcome.finished;
  out.steps = outcome.steps;
  return out;
}

Verification verify(const std::string& run, const VerifyOptions& options, const Interrupt& interrupt) {
  const Context context = context_on(options.device);
  cli::VerifyAsked asked;
  asked.run = run;
  asked.model = options.model;
  asked.from = options.from_step;
  asked.to = options.to_step;
  asked.count = options.sample;
  asked.challenge = options.challenge;
  asked.leaf = options.leaf;
  asked.rows = options.rows;
  asked.audit.run_hash = options.run_hash;
  asked.audit.replay.cache = options.cache;
  asked.audit.parent = options.parent;
  asked.audit.no_replay = options.no_replay;
  asked.bundle.key = options.key;
  asked.between_steps = [&] {
    if (interrupt && interrupt()) throw Interrupted();
  };
  const cli::Verified told = value(cli::verify(context, std::move(asked)));
  return {word(told.code), told.text};
}

std::string version() { return cli::version_text(); }

}  // namespace ostro::native
