// Lineage: a run's history as versions: the runs that it goes on with, from the oldest on, and in each its
// beginning, its phases between amends, its permanent checkpoints, and the forks of it that lie beside it.
//
// Everything comes from chains: that of the run, and those in its folders parent/ and maker/
// (docs/reference/formats/run_directory.md). Nothing is trained or read of states: with what a run began is
// what its genesis says. `ostro verify` compares it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/audit/record/fork.h"
#include "ostro/io/files/file_system.h"

namespace ostro::lineage {

// A part of a run between two amends, as steps done before and after it.
struct Phase {
  int64_t first = 0, last = 0;
  double first_loss = 0, last_loss = 0;  // of its first and last step
  int64_t tokens = 0;
  std::vector<chain::CheckpointEntry> checkpoints;
  std::string difference;  // what the amend before it changed, as the chain has it; empty: there is none
};

// A run beside this one that began with one of its states.
struct KnownFork {
  int64_t step = 0;
  std::string path, head;  // directory, run hash
};

struct Lineage {
  std::string path;               // the directory that holds the chain
  chain::Chain chain;             // of a run that another one goes on with: up to where that begins
  std::optional<int64_t> length;  // steps that the run is to have
  std::string difference;        // of a fork whose parent is there: what changed in the config, like an amend
  std::vector<Phase> phases;     // at least one
  std::vector<KnownFork> forks;  // by step
  // Of a fork, and of a run that began with a published model, where their chains are there.
  std::unique_ptr<Lineage> parent, maker;
};

// Of a run directory, or of a bundle, whose run is in record/. Errors: kNotFound: neither; kCorrupt: a chain
// is damaged, contradicts itself, or does not have what the next one names.
Result<Lineage> read_lineage(io::FileSystem& fs, const std::string& path, const models::ModelChoices& models);

// For a person, the oldest run first. Ends with a newline.
std::string lineage_text(const Lineage& lineage);
// One JSON object in a line: the run, with its parent and maker inside.
std::string lineage_json(const Lineage& lineage);

}  // namespace ostro::lineage
