// OpenedRun: a run directory that this process holds, with everything that follows from its config and its
// record. No state is made or read yet. One thread uses it.
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

// The state with which a new run begins, when a fact about it is needed before the run's own state is made.
struct FirstState {
  train::State state;
  std::optional<std::string> origin;  // the origin of its parameters, if another program's model was imported
  std::optional<chain::Maker> maker;  // the maker of its parameters, if they were published
};

struct OpenedRun {
  train::TrainConfig config;  // the config to continue with
  std::string directory;
  std::unique_ptr<io::FileLock> lock;
  chain::RunRecord record;
  std::unique_ptr<Goodput> goodput;
  train::DataAccess data;  // the stores have the reference, if the run compares with one
  models::ModelFunctions model;
  std::optional<chain::GenesisEntry> genesis;  // of the existing run; nothing: the run is new
  std::optional<Resumption> from;              // where the existing run continues
  std::optional<fleet::CarriedState> carried;  // the workers have the state of `from`
  std::optional<FirstState> first;             // of a new run
  std::optional<std::string> reference;        // hash of the reference of preference pairs
  train::CanonicalPrograms programs;
  std::optional<train::MemoryNeed> need;  // memory of this process; nothing: it was not planned
  std::optional<batches::Loader> loader;
  std::optional<train::HeldOutText> held_out;  // nothing when there is no held-out text

  std::string file(const std::string& name) const { return directory + "/" + name; }
};

// Takes the run directory's lock, reads its record and chain, opens the data, and plans where to continue.
// Errors: as Run::open.
Result<OpenedRun> open_run(const train::TrainConfig& given, const Environment& env, bool amend);
// Plans again without the checkpoints from step `before` on, which are damaged.
Result<Resumption> plan_from(const OpenedRun& run, const train::TrainConfig& given, const Environment& env,
                             bool amend, std::optional<int64_t> before);
// Makes what follows from run.config: reference, loader, programs, held-out text.
Status prepare(OpenedRun& run, const Environment& env);
// The state with which a new run begins; made once.
Result<const FirstState*> first_state(OpenedRun& run, const train::CanonicalPrograms& programs,
                                      const Environment& env);

}  // namespace ostro::run
