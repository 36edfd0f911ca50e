#include "ostro/run/loop/run.h"

#include <fmt/format.h>

#include <utility>

#include "ostro/base/log.h"
#include "ostro/base/out_of_memory.h"
#include "ostro/base/watch/time_use.h"
#include "ostro/chain/data_record.h"
#include "ostro/fleet/processes/fleet_state.h"
#include "ostro/fleet/threads/workers.h"
#include "ostro/run/loop/begin.h"
#include "ostro/run/loop/training_loop.h"

namespace ostro::run {
namespace {

// The workers of a crew get ready while this process does.
Status tell_crew(fleet::Crew& crew, const OpenedRun& run, const std::string& remat) {
  dist::KeyValue& job = crew.membership().job();
  RETURN_IF_ERROR(job.set(fleet::kReferenceKey, run.reference.value_or(fleet::kNoReference)));
  RETURN_IF_ERROR(job.set(fleet::kDataKey, run.data.data_hash));
  RETURN_IF_ERROR(job.set(fleet::kProgramKey, train::programs_hash(run.programs)));
  // How exchanges are checked must be what the crew knows from an earlier leader.
  train::TrainConfig config = run.config;
  if (crew.has_run()) config.trainer.cross_check = crew.config().trainer.cross_check;
  RETURN_IF_ERROR(job.set(fleet::kConfigKey, config::resolved_yaml(config)));
  if (!crew.has_run()) crew.set_run(run.programs, remat, run.config, run.data.tokenizer->vocab_size());
  return Status();
}

Result<std::unique_ptr<train::LiveState>> make_state(const OpenedRun& run, const Environment& env) {
  const TimeScope compiling(TimeUse::kCompile);
  const train::StateParts parts{
      env.fs, env.engine, run.config, run.programs, run.held_out, run.need, run.data.tokenizer->vocab_size()};
  if (env.make_state) return env.make_state(parts);
  ASSIGN_OR_RETURN(const std::string remat, run.config.model_options().remat());
  if (env.crew != nullptr) {
    RETURN_IF_ERROR(tell_crew(*env.crew, run, remat));
    return fleet::make_fleet_state(*env.crew, parts);
  }
  ASSIGN_OR_RETURN(auto runner,
                   fleet::make_runner(run.programs, env.engine, remat, run.config, env.workers, env.slices));
  return train::make_local_state(parts, std::move(runner));
}

Status write_session(OpenedRun& run, const Environment& env, const chain::Chain& chain, int64_t step) {
  const chain::GenesisEntry& g = chain.genesis();
  run.record.numerics_version = g.numerics_version;
  run.record.program_hash = g.program_hash;
  run.record.data_hash = g.data_hash;
  const std::string now = chain::data_records(chain).back().hash;
  run.record.data_hash_now = now == g.data_hash ? "" : now;
  run.record.tokenizer_hash = g.tokenizer_hash;
  run.record.sessions.push_back(chain::begin_session(env.argv, step));
  return chain::write_record(env.fs, run.file(chain::kRecordFile), run.record);
}

}  // namespace

Run::Run(std::unique_ptr<OpenedRun> opened, const Environment& environment)
    : env_(environment), opened_(std::move(opened)) {}

Run::~Run() = default;

const std::string& Run::directory() const { return opened_->directory; }

// A directory that this call made, and in which no run was begun, is removed again.
Result<std::unique_ptr<Run>> Run::open(const train::TrainConfig& given, const Environment& environment,
                                       bool amend) {
  const std::string directory = train::run_directory(given);
  ASSIGN_OR_RETURN(const bool existed, environment.fs.exists(directory));
  auto run = open_in_directory(given, environment, amend);
  if (!run.ok() && !existed && environment.crew == nullptr && run.error().code() != ErrorCode::kBusy) {
    const auto begun = environment.fs.exists(directory + "/" + chain::kChainFile);
    if (begun.ok() && !*begun)
      if (const Status removed = environment.fs.remove_all(directory); !removed.ok())
        log_warning(removed.error().message());
  }
  return run;
}

Result<std::unique_ptr<Run>> Run::open_in_directory(const train::TrainConfig& given,
                                                    const Environment& environment, bool amend) {
  ASSIGN_OR_RETURN(OpenedRun opened, open_run(given, environment, amend));
  std::unique_ptr<Run> run(new Run(std::make_unique<OpenedRun>(std::move(opened)), environment));
  OpenedRun& r = *run->opened_;
  const Environment& env = run->env_;
  RETURN_IF_ERROR(prepare(r, env));
  ASSIGN_OR_RETURN(run->state_, make_state(r, env));
  // A checkpoint from before an amend is of another config, and of another state.
  const auto renew = [&](const Resumption& from) -> Result<train::LiveState*> {
    r.config = from.config;
    RETURN_IF_ERROR(prepare(r, env));
    ASSIGN_OR_RETURN(run->state_, make_state(r, env));
    return run->state_.get();
  };
  if (r.from && !r.carried) {
    ASSIGN_OR_RETURN(r.from, restore_newest(*run->state_, std::move(*r.from), renew, [&](int64_t before) {
                       return plan_from(r, given, env, amend, before);
                     }));
  }
  ASSIGN_OR_RETURN(run->keeper_,
                   r.from ? resume_run(r, env, *run->state_, amend) : begin_run(r, env, *run->state_));
  RETURN_IF_ERROR(write_session(r, env, run->keeper_->chain(), run->step()));
  return run;
}

Result<RunPlan> Run::plan() const {
  const OpenedRun& r = *opened_;
  RunPlan plan;
  for (const ir::Shape& s : r.model.shapes) plan.parameters += s.count();
  plan.active_parameters = models::active_parameters(r.model, r.config.model_options().experts_used());
  if (r.need) plan.memory = r.need->peak();
  plan.leaf = state_->leaf_info();
  plan.update = state_->update_info();
  ASSIGN_OR_RETURN(const runtime::ExecutableInfo model,
                   env_.engine.estimate(r.programs.leaf, train::leaf_options("keep")));
  plan.flops_per_token =
      model.flops / static_cast<double>(train::leaf_rows(r.programs) * r.config.example_positions());
  return plan;
}

Result<RunOutcome> Run::train(const Watcher& watcher) {
  auto outcome = [&]() -> Result<RunOutcome> {
    try {
      return TrainingLoop(*opened_, env_, *state_, *keeper_, watcher).steps();
    } catch (const std::bad_alloc& e) {
      return out_of_memory_error(e);
    }
  }();
  // What people look at, until a process goes on with the run.
  if (env_.fs.is_object_store(directory()))
    if (const Status sent = env_.fs.sync_tree(directory()); !sent.ok()) log_warning(sent.error().message());
  // Where several processes share the run, another may go on with it, unless it would come to this error,
  // too.
  if (outcome.ok() || (state_->is_shared() && !is_of_the_run(outcome.error()))) return outcome;
  // The first error is the one that matters.
  const bool did_nothing =
      !state_->is_shared() && !opened_->genesis && state_->step() == 0 && !keeper_->last_saved();
  const Status ended =
      did_nothing ? forget()
                  : end_session(*opened_, env_.fs, fmt::format("failed: {}", outcome.error().message()),
                                state_->step());
  if (!ended.ok()) log_warning(fmt::format("{}: {}", directory(), ended.error().message()));
  return outcome;
}

bool is_of_the_run(const Error& error) {
  return error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kInternal;
}

// Without a chain the directory holds no run, and the same trainer.id may begin one with other data.
Status Run::forget() {
  keeper_.reset();
  RETURN_IF_ERROR(env_.fs.remove(opened_->file(chain::kChainFile)));
  RETURN_IF_ERROR(env_.fs.remove(opened_->file(chain::kRecordFile)));
  return env_.fs.sync_dir(directory());
}

}  // namespace ostro::run
