// find_batch_sets: what the runs of a lab read: the sequences of each step, the documents of each sequence
// with their places in files, and where each document is used.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/lab/steps/run_data.h"
#include "ostro/site/lab_facts.h"

namespace ostro::site {

// A part of a document in a sequence.
struct SpanOf {
  size_t document = 0;  // index into BatchSet::documents
  int64_t begin = 0, end = 0, first_token = 0;
};
struct SequenceOf {
  size_t component = 0;
  int64_t sequence = 0;
  std::vector<SpanOf> spans;
};
struct StepOf {
  int64_t step = 0;  // as the chain counts: from 1
  std::vector<SequenceOf> sequences;
};
struct UseOf {
  int64_t step = 0, row = 0, epoch = 0, begin = 0, end = 0;
};
struct DocumentOf {
  size_t component = 0;
  int64_t row = 0, number = 0;  // of the store; in its file
  std::string file, sha256;     // of its ids, as the tree of rows has it
  int64_t text_bytes = 0, tokens = 0;
  int64_t begin = 0, end = 0;  // bytes in the file; both 0: not known
  std::string page;            // that the row was made from, with bytes and hash
  std::vector<UseOf> uses;     // the first ones
  int64_t all_uses = 0;
  std::string text;  // the beginning; only where it may be shown
};
struct ComponentOf {
  std::string name, store;
  int64_t sequences = 0;  // in one epoch
  int64_t examples = 0;   // of the run
  bool shows_texts = false;
};

// The batches of one run, and of all others that have the same.
struct BatchSet {
  std::string id;                 // "batches-1": its place among the sets of the lab as it is now
  std::string key;                // what it has, hashed: another set may get the id as the lab goes on
  std::vector<std::string> runs;  // names
  int64_t seq_len = 0, first = 0, last = 0, every = 1;
  std::vector<ComponentOf> components;
  std::vector<std::pair<int64_t, std::vector<int64_t>>>
      mixture;                        // last step of a stretch, examples by component
  std::vector<StepOf> steps;          // every k-th
  std::vector<DocumentOf> documents;  // of these steps

  // A server reads other steps when a browser asks for them.
  bool on_demand = false;

  bool has_texts() const;
  // What site.js reads: all but the texts, and the texts.
  std::string json() const;
  std::string texts_json() const;
};

// The batches of all runs that are done; sets RunFacts::batches. Of long runs every k-th step. Runs of models
// that this program does not have are left out. `texts`: false keeps texts out, whatever the plan says.
// Errors: those of reading stores.
Result<std::vector<BatchSet>> find_batch_sets(const Context& context, LabFacts& facts, bool texts);

// One step of a run: a set with that step alone and its documents. Nothing when the run has no such step.
// Errors: as find_batch_sets.
Result<std::optional<BatchSet>> find_batch(const Context& context, const lab::Plan& plan,
                                           const lab::LabState& state, const std::string& run, int64_t step,
                                           bool texts);

}  // namespace ostro::site
