// ostro data check: what a corpus holds besides what it should: evaluation data, duplicates, documents of
// doubtful quality. One pass over the sources in bounded memory; the result does not depend on the number of
// threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/build/build.h"
#include "ostro/data/check/contamination.h"
#include "ostro/data/check/document_stats.h"
#include "ostro/data/check/duplicates.h"
#include "ostro/data/check/minhash.h"
#include "ostro/data/options/options.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

struct CheckSettings {
  std::vector<std::string> eval_files;  // globs; .jsonl, .parquet or text
  std::string eval_field;               // of eval rows that are objects; empty: every string in them
  int64_t ngram = 13;                   // words
  int64_t shortest_ngram = 8;   // an eval document of fewer words, but at least so many, is one n-gram
  int64_t shingle = 5;          // words
  double near_threshold = 0.8;  // estimated Jaccard index from which documents count as near duplicates
  int64_t seed = 0;             // of MinHash
  int64_t list = 100;           // documents, clusters and n-grams listed in the report
  int64_t memory = int64_t{512} << 20;  // bytes for sorting
  std::string folder;                   // for temporary files; made and removed
  int threads = 1;
  std::function<void(const BuildProgress&)> progress;  // called from this thread, after every batch of rows

  Status validate() const;
};

struct ContaminatedDocument {
  DocumentPlace place;
  int64_t words = 0;
  Contamination found;
};

// What is known of an evaluation document after all.
struct EvalResult {
  int64_t documents = 0;     // of the corpus that hold an n-gram of it
  int64_t ngrams_found = 0;  // of its n-grams
  size_t example = 0;        // first word of the first n-gram found
};

struct ComponentCheck {
  std::string name;      // empty: the one data set
  bool decoded = false;  // rows are ids: of format prebuilt, or of a store without texts
  int64_t rows = 0, empty = 0, no_loss = 0, repaired = 0, bad = 0;
  std::string first_bad;
  StatsHistograms stats;
};

// A component that was not looked at, and why.
struct LeftOutComponent {
  std::string name, reason;
};

struct CheckReport {
  CheckSettings settings;
  std::vector<std::string> sources;  // paths, by DocumentPlace::source; of a store its splits' folders
  std::vector<FileFormat> formats;   // of them; of a store kParquet, as rows are numbered alike
  std::vector<ComponentCheck> components;
  std::vector<LeftOutComponent> left_out;
  int64_t contaminated_documents = 0;
  std::vector<ContaminatedDocument> contaminated;  // those with most words covered first
  std::vector<EvalResult> evals;                   // one for each document of the index
  EvalIndex index{1, 1};
  DuplicateReport duplicates;
  Bands bands;

  std::string place_text(const DocumentPlace& place) const;  // "file:line"
};

// Reads every source of every component, and of one without texts its store. Rows of ids are decoded. Errors:
// a source that cannot be read, an eval file that names nothing, texts without a single document, a malformed
// row unless data.on_bad_row is skip.
Result<CheckReport> run_check(io::FileSystem& fs, const DataOptions& options,
                              const tokenizer::Tokenizer& tokenizer, const CheckSettings& settings);

// All figures, as indented JSON; the same for the same corpus and settings, whatever the threads.
std::string check_json(const CheckReport& report);
// The same to look at: one file, with its plots in it and no links to anywhere.
std::string check_html(const CheckReport& report);

}  // namespace ostro::data
