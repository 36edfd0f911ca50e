#include "ostro/train/run/follower.h"

#include <fmt/format.h>

#include "ostro/checkpoint/catalog.h"
#include "ostro/data/batch/prefetcher.h"
#include "ostro/train/processes/cell_work.h"
#include "ostro/train/step/evaluate.h"
#include "ostro/train/workers/workers.h"

namespace ostro::train {
namespace {

Status check_equal(ProcessGroup& group, const char* key, const char* what, const std::string& here) {
  ASSIGN_OR_RETURN(const std::string there, wait_for(group, key));
  if (there == here) return Status();
  return invalid_argument(
      fmt::format("worker {}: {} {} here, {} at the leader: start all workers with the same build and files",
                  group.rank, what, here, there));
}

}  // namespace

Status follow(const TrainConfig& given, const Environment& env, ProcessGroup& group) {
  ASSIGN_OR_RETURN(const std::string text, wait_for(group, kConfigKey));
  ASSIGN_OR_RETURN(const TrainConfig config,
                   parse_train_config(text, "the leader's configuration", given.model.choices()));
  ASSIGN_OR_RETURN(const DataAccess access, open_data(env.fs, config, env.build));
  RETURN_IF_ERROR(check_equal(group, kDataKey, "the data's hash is", access.data_hash));
  ASSIGN_OR_RETURN(const data::Loader loader,
                   make_loader(config, access.stores, config.trainer.num_train_steps));
  const models::ModelFunctions model =
      config.model_options().functions(access.tokenizer->vocab_size(), compute_dtype(config));
  ASSIGN_OR_RETURN(const CanonicalPrograms programs, make_programs(config, model));
  RETURN_IF_ERROR(check_equal(group, kProgramKey, "the programs' hash is", programs_hash(programs)));
  ASSIGN_OR_RETURN(const std::string remat, config.model_options().remat());
  ASSIGN_OR_RETURN(const WorkerOptions options, worker_options(config, group.size));
  ASSIGN_OR_RETURN(const WorkerPlan plan, make_worker_plan(programs, env.engine, remat, options));
  Worker worker(plan, group.rank);
  RETURN_IF_ERROR(worker.leaf_program());
  RETURN_IF_ERROR(worker.update_program());
  RETURN_IF_ERROR(group.store->set(ready_key(group.rank), ""));
  RETURN_IF_ERROR(wait_for(group, kConnectKey));
  ASSIGN_OR_RETURN(const auto connected, group.connect(plan.mesh()));
  dist::Group& peers = *connected;
  CellWork cells(plan, worker, cell_boxes(config));
  const std::string checkpoints = run_directory(config) + "/checkpoints";
  checkpoint::AsyncSaver saver(env.fs, checkpoints);
  std::optional<HeldOutText> held_out;
  std::unique_ptr<data::Prefetcher> batches;
  data::Batch batch;
  for (int64_t number = 0;; ++number) {
    ASSIGN_OR_RETURN(const std::string line, wait_for(group, command_key(number)));
    ASSIGN_OR_RETURN(const Command command, Command::parse(line));
    if (command.kind == Command::Kind::kEnd) return Status();
    if (command.kind == Command::Kind::kInit) {
      RETURN_IF_ERROR(cells.begin(peers, config.trainer.seed));
    } else if (command.kind == Command::Kind::kRestore) {
      const std::string path = checkpoints + "/" + checkpoint::step_directory(command.step);
      RETURN_IF_ERROR(cells.restore(peers, env.fs, path, command.prints));
    } else if (command.kind == Command::Kind::kSave) {
      ASSIGN_OR_RETURN(CellSnapshot snapshot, cells.snapshot(peers));
      const SharedSave save{&env.fs,    checkpoints, group.store, save_key(command.step),
                            group.rank, group.size};
      RETURN_IF_ERROR(saver.start(join_save(save, std::move(snapshot))));
    } else if (command.kind == Command::Kind::kEvaluate) {
      if (!held_out) {
        ASSIGN_OR_RETURN(held_out, HeldOutText::create(config, *access.stores));
      }
      RETURN_IF_ERROR(
          cells.evaluate(peers, *held_out, held_out_program(config, access.tokenizer->vocab_size())));
    } else {
      if (batches == nullptr)
        batches = std::make_unique<data::Prefetcher>(
            [&](int64_t step, data::Batch memory) {
              return loader.batch_with(step, plan.rows_of(loader.schedule().size(step), group.rank), 1,
                                       std::move(memory));
            },
            command.step);
      ASSIGN_OR_RETURN(batch, batches->next(std::move(batch)));
      RETURN_IF_ERROR(worker.step(peers, to_arrays(batch), {command.lr, command.k1, command.k2}));
    }
  }
}

}  // namespace ostro::train
