// A worker that does what the leader of a run asks (train/processes/crew.h).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ostro/train/cells/save_cells.h"
#include "ostro/train/processes/crew.h"
#include "ostro/train/run/run.h"

namespace ostro::train {

enum class Followed {
  kOver,   // the run is over
  kLeads,  // this process leads from now on
  kLeft,   // an epoch goes on without this process
};

// What a worker needs to train with others: it learns from them what is trained.
class Follower {
 public:
  // Waits until a leader has said what is trained, and opens the same data and makes the same programs; both
  // are compared by their hashes. Gives the run to `crew`. `given` has the models that this program knows.
  static Result<std::unique_ptr<Follower>> create(const TrainConfig& given, const Environment& env,
                                                  Crew& crew);

  // Follows one leader after another.
  Result<Followed> follow();

 private:
  class Batches;
  Follower(Crew& crew, io::FileSystem& fs, const TrainConfig& config);
  Result<bool> obey(Batches& batches);

  Crew& crew_;
  io::FileSystem& fs_;
  const std::string checkpoints_;
  DataAccess data_;
  std::optional<data::Loader> loader_;
  std::optional<HeldOutText> held_out_;
  UnfinishedSave unfinished_;  // outlives the saver
  checkpoint::AsyncSaver saver_;
};

}  // namespace ostro::train
