// Lineage: a run's history as versions: the runs that it goes on with, from the oldest on, and in each its
// beginning, its phases between amends, its permanent checkpoints, and the forks of it that lie beside it.
//
// Everything comes from chains: that of the run, and those in its folders parent/ and maker/
// (docs/reference/formats/run_directory.md). No state is read and nothing is replayed: what a genesis says
// about the beginning of its run is shown as it is. `ostro verify` compares it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/record/fork.h"
#include "ostro/io/files/file_system.h"

namespace ostro::lineage {

// A part of a run between two amends.
struct Phase {
  int64_t first = 0, last = 0;           // the steps done before it, and after it
  double first_loss = 0, last_loss = 0;  // of its first and last step
  int64_t tokens = 0;
  std::vector<chain::CheckpointEntry> checkpoints;
  std::string difference;  // what the amend before it changed, as in the chain; empty: no amend before it
};

// A run beside this one that began with one of its states.
struct KnownFork {
  int64_t step = 0;
  std::string path, head;  // directory, run hash
};

struct Lineage {
  std::string path;               // the directory that holds the chain
  chain::Chain chain;             // for a parent or maker: up to the state that the next run began with
  std::optional<int64_t> length;  // the number of steps that the run is to have
  std::string difference;         // for a fork with `parent`: what changed in the config, as in an amend
  std::vector<Phase> phases;      // at least one
  std::vector<KnownFork> forks;   // by step
  // The lineage of a fork's parent, and of the run that made the model that this run began with. Null when
  // there is none, or its chain is not there.
  std::unique_ptr<Lineage> parent, maker;
};

// Reads the lineage of a run directory, or of a bundle, whose run is in record/. Errors: kNotFound when
// `path` is neither; kCorrupt when a chain is damaged, contradicts itself, or lacks the state that the next
// run names.
Result<Lineage> read_lineage(io::FileSystem& fs, const std::string& path, const models::ModelChoices& models);

// The lineage for a person, the oldest run first. Ends with a newline.
std::string lineage_text(const Lineage& lineage);
// One JSON object in a line: the run, with its parent and maker inside.
std::string lineage_json(const Lineage& lineage);

}  // namespace ostro::lineage
