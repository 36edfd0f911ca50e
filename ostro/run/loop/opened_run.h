// OpenedRun: a run directory that this process holds, and what follows from its config and its record. Values
// only: nothing of a state is made or read yet.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ostro/chain/lock.h"
#include "ostro/chain/record.h"
#include "ostro/fleet/processes/fleet_state.h"
#include "ostro/run/loop/resume.h"
#include "ostro/run/loop/run.h"
#include "ostro/run/report/goodput.h"
#include "ostro/train/step/batches.h"
#include "ostro/train/step/memory_need.h"

namespace ostro::run {

// The state that a new run begins with, where something has to be known of it before the run's own is made.
struct FirstState {
  train::State state;
  std::optional<std::string> origin;  // of its parameters, if another program's model was imported
  std::optional<chain::Maker> maker;  // of its parameters, if they were published
};

struct OpenedRun {
  train::TrainConfig config;  // to go on with
  std::string directory;
  std::unique_ptr<io::FileLock> lock;
  chain::RunRecord record;
  std::unique_ptr<Goodput> goodput;
  train::DataAccess data;  // the stores have the reference, if the run compares with one
  models::ModelFunctions model;
  std::optional<chain::GenesisEntry> genesis;  // of the run that is there; nothing: a new one
  std::optional<Resumption> from;              // where that goes on
  std::optional<fleet::CarriedState> carried;  // the workers have the state of `from`
  std::optional<FirstState> first;             // of a new run
  std::optional<std::string> reference;        // hash of what pairs are compared with
  train::CanonicalPrograms programs;
  std::optional<train::MemoryNeed> need;  // of this process; nothing: it was not planned
  std::optional<batches::Loader> loader;
  std::optional<train::HeldOutText> held_out;  // nothing when there is no held-out text

  std::string file(const std::string& name) const { return directory + "/" + name; }
};

// Takes the run directory's lock, reads its record and chain, opens the data, and plans where to go on.
// Errors: as Run::open.
Result<OpenedRun> open_run(const train::TrainConfig& given, const Environment& env, bool amend);
// Plans again, passing over checkpoints from step `before` on, which are damaged.
Result<Resumption> plan_from(const OpenedRun& run, const train::TrainConfig& given, const Environment& env,
                             bool amend, std::optional<int64_t> before);
// What follows from run.config: reference, loader, programs, held-out text.
Status prepare(OpenedRun& run, const Environment& env);
// The state that a new run begins with; made once.
Result<const FirstState*> first_state(OpenedRun& run, const train::CanonicalPrograms& programs,
                                      const Environment& env);

}  // namespace ostro::run
