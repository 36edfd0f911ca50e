// Entry: a bundle that was handed in for a track, opened without running anything of it: its chain, its
// programs as data, and the program that scores texts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/audit/record/recorded_run.h"
#include "ostro/bundle/check/check_bundle.h"
#include "ostro/context/context.h"

namespace ostro::board {

// The most bytes of an entry's chain, about 600,000 steps: a board keeps the chain of each entry, and reads
// all of them at each check.
inline constexpr int64_t kMostChainBytes = int64_t{1} << 28;

struct Entry {
  std::string folder, record;  // of the bundle, and of the run in it
  std::string hash;            // SHA-256 of bundle.json
  bundle::BundleRecord bundle;
  chain::Chain chain;
  models::ModelChoices models;  // those of this program and, where it lacks the entry's, a ForeignModel
  bool is_foreign = false;      // this program lacks the model
  bool has_model = false;       // the bundle has files of a model beside the record
};

// Opens what can be read without an audit. Errors: kNotFound without bundle.json; kCorrupt for what
// contradicts itself or is too large; kUnsupported for a link in it; those of reading.
Result<Entry> open_entry(const Context& context, const std::string& folder);

// The context with the models of the entry.
Context with_models(const Context& context, const Entry& entry);

// Opens the run of the entry: with programs traced from its configuration, or those of program.ir for a model
// that this program lacks. Errors: those of audit::open_recorded.
Result<audit::RecordedRun> open_run(const Context& context, const Entry& entry);

// The entry's program that scores texts: record/score.ir. Errors: kNotFound, kCorrupt; kUnsupported for an op
// that this version does not have.
Result<ir::Program> read_score_program(io::FileSystem& fs, const Entry& entry);

// The most bytes of what is known beforehand that a program can hold: those of its constants, of all numbers
// in its attributes and in the shapes of its parameters, 1 for each operation and each word of an attribute,
// 2 for each operand (docs/reference/formats/board.md, "What a program can hold").
int64_t held_bytes(const ir::Program& program);

}  // namespace ostro::board
