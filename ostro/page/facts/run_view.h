// RunView: everything in a run directory that its page shows, read once. A value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/chain/chain.h"
#include "ostro/chain/record.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/file_system.h"
#include "ostro/page/facts/facts.h"
#include "ostro/page/numbers/history.h"
#include "ostro/train/options/config.h"

namespace ostro::page {

struct ViewedCheckpoint {
  int64_t step = 0;
  std::string name;      // of the state, from its manifest
  std::string in_chain;  // the name that the chain has for this step; empty: none
  std::string error;     // of reading the manifest; empty: none
};

struct RunView {
  chain::Chain chain;
  std::string config_now;  // canonical, of the steps since the last amend
  std::optional<chain::RunRecord> record;
  std::string record_error;                  // the reason why there is none
  std::vector<std::string> outcomes;         // of its sessions, as they are now (chain::outcome_now)
  std::optional<train::TrainConfig> config;  // config.yaml, where it can be read
  std::string config_yaml;                   // the same as text, as others may see it
  std::vector<ViewedCheckpoint> checkpoints;
  int64_t parameters = 0;  // of the newest checkpoint; 0: not known
  std::optional<Facts> facts;
  History history;
  std::string metrics_error;  // the reason why `history` has only the chain's numbers; empty: none

  // The run's name, trainer.id.
  std::string name() const;
  // trainer.num_train_steps of the config that holds; 0: not known.
  int64_t total_steps() const;
  // The last session's outcome; empty without one.
  std::string state() const;
};

// Reads a run directory; `bins` as in read_history. Error: a chain that is missing or wrong. Other files that
// cannot be read are left out, and the view's error fields say so.
Result<RunView> read_view(io::FileSystem& fs, const std::string& run_directory,
                          const models::ModelChoices& models, size_t bins);

}  // namespace ostro::page
