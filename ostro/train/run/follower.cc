#include "ostro/train/run/follower.h"

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/data/batch/prefetcher.h"
#include "ostro/train/workers/collect_cells.h"

namespace ostro::train {
namespace {

Result<std::string> job_value(Crew& crew, const char* key, const std::function<bool()>& stop) {
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

// The batches of ascending steps. A step may be asked for again.
class Batches {
 public:
  explicit Batches(const data::Loader& loader) : loader_(loader) {}

  Result<BatchArrays> of_step(int64_t step) {
    if (ahead_ == nullptr || (step != here_ && step != here_ + 1)) {
      ahead_ = std::make_unique<data::Prefetcher>(
          [this](int64_t s, data::Batch memory) { return loader_.batch(s, 1, std::move(memory)); }, step);
      here_ = step - 1;
    }
    if (step == here_ + 1) {
      ASSIGN_OR_RETURN(batch_, ahead_->next(std::move(batch_)));
      here_ = step;
    }
    return to_arrays(batch_);
  }

 private:
  const data::Loader& loader_;
  std::unique_ptr<data::Prefetcher> ahead_;
  data::Batch batch_;  // of step here_
  int64_t here_ = -2;
};

// One command after another. True: the run is over.
Result<bool> obey(Crew& crew, Batches& batches) {
  std::vector<runtime::Buffer> unused;
  while (true) {
    ASSIGN_OR_RETURN(const Command command, next_command(crew.group()));
    Worker& worker = crew.worker();
    const auto send_cells = [&](const std::vector<runtime::Buffer>& cells) {
      return collect_cells(crew.plan(), crew.group(), cells, unused);
    };
    switch (command.kind) {
      case Command::Kind::kEnd:
        return true;
      case Command::Kind::kSwitch:
        return false;
      case Command::Kind::kSettle:
        RETURN_IF_ERROR(crew.settle_whole(nullptr));
        break;
      case Command::Kind::kPrints:
        RETURN_IF_ERROR(worker.prints(crew.group()));
        break;
      case Command::Kind::kCollectParameters:
        RETURN_IF_ERROR(send_cells(worker.own().params));
        break;
      case Command::Kind::kCollectMoments:
        RETURN_IF_ERROR(send_cells(worker.own().first_moment));
        RETURN_IF_ERROR(send_cells(worker.own().second_moment));
        break;
      case Command::Kind::kStep: {
        const Result<BatchArrays> batch = batches.of_step(command.step);
        // No other epoch would help.
        if (!batch.ok()) return Error(ErrorCode::kInternal, batch.error().message());
        RETURN_IF_ERROR(worker.step(crew.group(), *batch, {command.lr, command.k1, command.k2}));
        break;
      }
    }
  }
}

}  // namespace

Result<std::unique_ptr<Follower>> Follower::create(const TrainConfig& given, const Environment& env,
                                                   Crew& crew) {
  std::unique_ptr<Follower> out(new Follower(crew));
  ASSIGN_OR_RETURN(const std::string text, job_value(crew, kConfigKey, env.stop));
  ASSIGN_OR_RETURN(const TrainConfig config,
                   parse_train_config(text, "the leader's configuration", given.model.choices()));
  ASSIGN_OR_RETURN(out->data_, open_data(env.fs, config, env.build));
  ASSIGN_OR_RETURN(const std::string data_hash, job_value(crew, kDataKey, env.stop));
  RETURN_IF_ERROR(check_equal("the data's hash is", out->data_.data_hash, data_hash));
  ASSIGN_OR_RETURN(data::Loader loader,
                   make_loader(config, out->data_.stores, config.trainer.num_train_steps));
  out->loader_ = std::move(loader);
  const models::ModelFunctions model =
      config.model_options().functions(out->data_.tokenizer->vocab_size(), compute_dtype(config));
  ASSIGN_OR_RETURN(const CanonicalPrograms programs, make_programs(config, model));
  ASSIGN_OR_RETURN(const std::string program_hash, job_value(crew, kProgramKey, env.stop));
  RETURN_IF_ERROR(check_equal("the programs' hash is", programs_hash(programs), program_hash));
  ASSIGN_OR_RETURN(const std::string remat, config.model_options().remat());
  crew.set_run(programs, remat, config);
  crew.membership().ready();
  return out;
}

Result<Followed> Follower::follow() {
  Batches batches(*loader_);
  while (true) {
    if (!crew_.formed()) {
      const auto formed = crew_.form(nullptr);
      if (crew_.out()) return Followed::kLeft;
      RETURN_IF_ERROR(formed);
    }
    if (crew_.leads()) return Followed::kLeads;
    const Result<bool> over = obey(crew_, batches);
    if (over.ok() && *over) return Followed::kOver;
    if (!over.ok() && over.error().code() != ErrorCode::kIo) return over.error();
    if (!over.ok()) log_warning(over.error().message());
    crew_.leave(over.ok() ? "another epoch goes on" : over.error().message());
  }
}

}  // namespace ostro::train
