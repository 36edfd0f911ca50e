#include "ostro/run/job/follower.h"

#include <fmt/format.h>

#include "ostro/audit/record/initial.h"
#include "ostro/base/profile.h"
#include "ostro/base/watch/pulse.h"
#include "ostro/batches/loader/prefetcher.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/fleet/processes/cell_work.h"
#include "ostro/io/files/path.h"
#include "ostro/train/programs/run_model.h"
#include "ostro/train/step/evaluate.h"
#include "ostro/train/step/reference.h"

namespace ostro::run {
namespace {

Result<std::string> job_value(fleet::Crew& crew, const char* key, const std::function<bool()>& stop) {
  while (true) {
    auto value = crew.membership().job().get(key, std::chrono::milliseconds(200));
    if (value.ok() || value.error().code() != ErrorCode::kBusy || stop()) return value;
  }
}

Status check_equal(const char* what, const std::string& here, const std::string& there) {
  if (there == here) return Status();
  return invalid_argument(fmt::format(
      "{} {} here, {} at the leader: start all workers with the same build and files", what, here, there));
}

}  // namespace

// The batches of ascending steps, with the rows that a worker reads. A step may be asked for again.
class Follower::Batches {
 public:
  Batches(const train::TrainConfig& config, const batches::Loader& loader)
      : config_(config), loader_(loader) {}

  // From now on other rows may be read.
  void set_rows(const fleet::RowShare& rows) {
    ahead_.reset();
    rows_ = rows;
  }

  Result<train::BatchArrays> of_step(int64_t step) {
    if (ahead_ == nullptr || (step != here_ && step != here_ + 1)) {
      ahead_ = std::make_unique<batches::Prefetcher>(
          [this, rows = rows_](int64_t s, batches::Batch memory) {
            return loader_.batch_with(s, rows.of(loader_.schedule().size(s), s + 1), 1, std::move(memory));
          },
          step);
      here_ = step - 1;
    }
    if (step == here_ + 1) {
      ASSIGN_OR_RETURN(batch_, ahead_->next(std::move(batch_)));
      here_ = step;
    }
    return train::leaf_arrays(config_, batch_, step);
  }

 private:
  const train::TrainConfig& config_;
  const batches::Loader& loader_;
  fleet::RowShare rows_;
  std::unique_ptr<batches::Prefetcher> ahead_;
  batches::Batch batch_;  // of step here_
  int64_t here_ = -2;
};

Result<std::unique_ptr<Follower>> Follower::create(const train::TrainConfig& given, const Environment& env,
                                                   fleet::Crew& crew) {
  ASSIGN_OR_RETURN(const std::string text, job_value(crew, fleet::kConfigKey, env.stop));
  ASSIGN_OR_RETURN(const train::TrainConfig config,
                   train::parse_train_config(text, "the leader's configuration", given.model.choices()));
  std::unique_ptr<Follower> out(new Follower(crew, env, config));
  ASSIGN_OR_RETURN(out->data_, train::open_data(env.fs, config, env.build));
  ASSIGN_OR_RETURN(const std::string data_hash, job_value(crew, fleet::kDataKey, env.stop));
  RETURN_IF_ERROR(check_equal("the data's hash is", out->data_.data_hash, data_hash));
  ASSIGN_OR_RETURN(const std::string reference, job_value(crew, fleet::kReferenceKey, env.stop));
  if (reference != fleet::kNoReference) {
    ASSIGN_OR_RETURN(const train::Reference kept, train::read_reference(env.fs, train::run_directory(config),
                                                                        *out->data_.stores, reference));
    out->data_.stores = out->data_.stores->with_scores(kept.scores);
  }
  ASSIGN_OR_RETURN(batches::Loader loader,
                   train::make_loader(config, out->data_.stores, config.trainer.num_train_steps));
  out->loader_ = std::move(loader);
  const models::ModelFunctions model = train::run_model(config, out->data_.tokenizer->vocab_size());
  ASSIGN_OR_RETURN(const train::CanonicalPrograms programs, train::make_programs(config, model));
  ASSIGN_OR_RETURN(const std::string program_hash, job_value(crew, fleet::kProgramKey, env.stop));
  RETURN_IF_ERROR(check_equal("the programs' hash is", train::programs_hash(programs), program_hash));
  ASSIGN_OR_RETURN(const std::string remat, config.model_options().remat());
  if (!crew.has_run()) crew.set_run(programs, remat, config, out->data_.tokenizer->vocab_size());
  // A coordinator that was restarted learns them from each worker that comes back: the leader may be lost
  // with it. The configuration is the last, since with it the run counts as under way.
  dist::KeyValue& job = crew.membership().job();
  RETURN_IF_ERROR(job.set(fleet::kReferenceKey, reference));
  RETURN_IF_ERROR(job.set(fleet::kDataKey, data_hash));
  RETURN_IF_ERROR(job.set(fleet::kProgramKey, program_hash));
  RETURN_IF_ERROR(job.set(fleet::kConfigKey, text));
  crew.membership().ready();
  return out;
}

// This worker's part of a step.
Status Follower::step(const fleet::Command& command, Batches& batches) {
  fleet::Worker& worker = crew_.worker();
  pulse_phase("data", command.step + 1);
  phase("data wait");
  const Result<train::BatchArrays> batch = batches.of_step(command.step);
  // No other epoch would help.
  if (!batch.ok()) return Error(ErrorCode::kInternal, batch.error().message());
  const auto* scalars = command.scalars.data();
  const auto stepped = worker.step(crew_.group(), *batch, {scalars, scalars + command.count});
  if (const auto& found = worker.checks().disagreement) {
    const Error error = crew_.differs(*found);
    if (!found->state_lost || error.code() != ErrorCode::kIo) return error;
    crew_.forget();  // the leader reads a checkpoint next
    return Status();
  }
  return stepped.ok() ? Status() : stepped.error();
}

// One command after another. True: the run is over.
Result<bool> Follower::obey(Batches& batches, train::StepProfile& profile) {
  fleet::Worker& worker = crew_.worker();
  const fleet::EpochView& epoch = crew_.epoch();
  runtime::Collectives& group = crew_.group();
  fleet::CellWork cells(crew_.plan(), worker, train::cell_boxes(crew_.config()));
  batches.set_rows(crew_.plan().rows_of(epoch.rank));
  profile.set_rank(epoch.rank);
  const auto join = [&](int64_t step, fleet::CellSnapshot snapshot) {
    fleet::SharedSave place = crew_.shared_save(fs_, checkpoints_, step);
    // The end of the epoch wakes this worker, which then leaves.
    place.cannot_write = [this, number = epoch.number](const Error& error) {
      {
        const std::scoped_lock lock(mutex_);
        own_fault_ = error;
      }
      crew_.membership().fault(number, error.message());
    };
    unfinished_.snapshot.reset();
    return saver_.start(fleet::join_save(place, std::move(snapshot), &unfinished_));
  };
  while (true) {
    ASSIGN_OR_RETURN(const fleet::Command command, fleet::next_command(crew_.group()));
    switch (command.kind) {
      case fleet::Command::Kind::kEnd: return true;
      case fleet::Command::Kind::kSwitch: return false;
      case fleet::Command::Kind::kInit:
        RETURN_IF_ERROR(cells.begin(group, crew_.config().trainer.seed));
        crew_.adopted(0);
        break;
      case fleet::Command::Kind::kRestore: {
        // The state that a run began with lies apart; of its step there is no other checkpoint.
        const std::string name = checkpoint::step_directory(command.step),
                          initial = io::join_path(
                              io::join_path(train::run_directory(crew_.config()), audit::kInitialFolder),
                              name);
        ASSIGN_OR_RETURN(const bool begins, fs_.exists(initial));
        const std::string path = begins ? initial : io::join_path(checkpoints_, name);
        ASSIGN_OR_RETURN(const train::CellsRead read, cells.restore(group, fs_, path, command.prints != 0));
        if (read.unfit.empty()) crew_.adopted(command.step);
        break;
      }
      case fleet::Command::Kind::kShares: {
        ASSIGN_OR_RETURN(const fleet::LeafShares shares,
                         fleet::receive_shares(crew_.group(), command, crew_.plan().sharers()));
        crew_.set_shares(shares);
        batches.set_rows(crew_.plan().rows_of(epoch.rank));
        break;
      }
      case fleet::Command::Kind::kPrints: {
        train::StepResult told;
        RETURN_IF_ERROR(worker.add_fingerprints(group, told));
        break;
      }
      case fleet::Command::Kind::kSave: {
        ASSIGN_OR_RETURN(fleet::CellSnapshot snapshot, cells.snapshot(group));
        // What went wrong with the one before is the leader's business.
        (void)saver_.wait();
        RETURN_IF_ERROR(join(command.step, std::move(snapshot)));
        break;
      }
      case fleet::Command::Kind::kSaveAgain: {
        (void)saver_.wait();
        Result<fleet::CellSnapshot> snapshot =
            fleet::deal_again(group, command.step, unfinished_.snapshot.get());
        if (!snapshot.ok() && snapshot.error().code() == ErrorCode::kNotFound) break;  // it is lost
        RETURN_IF_ERROR(snapshot);
        RETURN_IF_ERROR(join(command.step, std::move(*snapshot)));
        break;
      }
      case fleet::Command::Kind::kEvaluate:
        if (!held_out_) {
          ASSIGN_OR_RETURN(held_out_, train::HeldOutText::create(crew_.config(), *data_.stores));
        }
        RETURN_IF_ERROR(cells.evaluate(
            group, *held_out_, train::held_out_program(crew_.config(), data_.tokenizer->vocab_size())));
        break;
      case fleet::Command::Kind::kStep: {
        profile.reach(command.step);
        {
          const auto watch = command.step == 0 ? nullptr : std::make_unique<PulseWatch>();
          const PhasedSpan span(profile.span_name(command.step));
          RETURN_IF_ERROR(step(command, batches));
        }
        profile.leave(command.step);
        break;
      }
    }
  }
}

Follower::Follower(fleet::Crew& crew, const Environment& env, const train::TrainConfig& config)
    : crew_(crew),
      fs_(env.fs),
      directory_(train::run_directory(config)),
      checkpoints_(io::join_path(directory_, checkpoint::kCheckpointsFolder)),
      profile_(env.profile),
      saver_(fs_, checkpoints_) {}

std::optional<Error> Follower::own_fault() {
  const std::scoped_lock lock(mutex_);
  return own_fault_;
}

Result<Followed> Follower::follow() {
  Batches batches(crew_.config(), *loader_);
  name_thread("training");
  train::StepProfile profile(fs_, directory_, profile_);
  while (true) {
    // Not an error of the connections, after which this process would be replaced at once and fail again.
    if (const auto fault = own_fault()) return Error(ErrorCode::kInternal, fault->message());
    if (!crew_.formed()) {
      const auto formed = crew_.form();
      if (crew_.out()) return Followed::kLeft;
      RETURN_IF_ERROR(formed);
    }
    if (crew_.leads()) return Followed::kLeads;
    const Result<bool> over = obey(batches, profile);
    if (over.ok() && *over) return Followed::kOver;
    if (!over.ok() && over.error().code() != ErrorCode::kIo) return over.error();
    // The coordinator and the leader tell of a loss; here it would be told once more for each worker.
    crew_.leave(over.ok() ? "another epoch goes on" : over.error().message());
  }
}

}  // namespace ostro::run
