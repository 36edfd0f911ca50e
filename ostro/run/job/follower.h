// Follower: a worker that obeys the commands of the leader of a run (fleet/processes/crew.h).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "ostro/fleet/cells/save_cells.h"
#include "ostro/fleet/processes/crew.h"
#include "ostro/run/loop/run.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/step_profile.h"

namespace ostro::run {

enum class Followed {
  kOver,   // the run is over
  kLeads,  // this process leads from now on
  kLeft,   // an epoch goes on without this process
};

// One worker. It learns from the leader what is trained. One thread uses it.
class Follower {
 public:
  // Waits until a leader has published what is trained, opens the same data and makes the same programs; both
  // are compared by their hashes. Sets the run of `crew`. `given` has the models that this program knows.
  static Result<std::unique_ptr<Follower>> create(const train::TrainConfig& given, const Environment& env,
                                                  fleet::Crew& crew);

  // Follows one leader after another.
  Result<Followed> follow();

 private:
  class Batches;
  Follower(fleet::Crew& crew, const Environment& env, const train::TrainConfig& config);
  Result<bool> obey(Batches& batches, train::StepProfile& profile);
  Status step(const fleet::Command& command, Batches& batches);

  fleet::Crew& crew_;
  io::FileSystem& fs_;
  const std::string directory_, checkpoints_;
  const std::optional<train::StepRange> profile_;  // steps to profile
  train::DataAccess data_;
  std::optional<batches::Loader> loader_;
  std::optional<train::HeldOutText> held_out_;
  // The reason why this worker must leave: it cannot write its cells.
  std::optional<Error> own_fault();

  std::mutex mutex_;                  // guards the next one
  std::optional<Error> own_fault_;    // of the saver's thread
  fleet::UnfinishedSave unfinished_;  // outlives the saver
  checkpoint::AsyncSaver saver_;
};

}  // namespace ostro::run
