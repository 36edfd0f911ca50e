// run_check: `ostro data check`, which looks for evaluation data, duplicates and documents of doubtful
// quality in a corpus. One pass over the sources in bounded memory. The result does not depend on the number
// of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/corpus_check/contamination.h"
#include "ostro/corpus_check/document_stats.h"
#include "ostro/corpus_check/duplicates.h"
#include "ostro/corpus_check/minhash.h"
#include "ostro/data/options/options.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"
#include "ostro/prepare/store/build.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::corpus_check {

// The options of a check.
struct CheckSettings {
  std::vector<std::string> eval_files;  // globs; .jsonl, .parquet or text
  // field with the text, in eval rows that are objects; empty: every string in the row
  std::string eval_field;
  int64_t ngram = 13;  // words
  // an eval document with fewer words than `ngram`, but at least this many, is one n-gram
  int64_t shortest_ngram = 8;
  int64_t shingle = 5;          // words
  double near_threshold = 0.8;  // documents with at least this estimated Jaccard index are near duplicates
  int64_t seed = 0;             // seed of MinHash
  int64_t list = 100;           // limit for documents, clusters and n-grams listed in the report
  int64_t memory = int64_t{512} << 20;  // bytes for sorting
  std::string folder;                   // for temporary files; made and removed
  int threads = 1;
  // called from the caller's thread, after every batch of rows
  std::function<void(const data::BuildProgress&)> progress;

  // Errors name the option, its value and the allowed values.
  Status validate() const;
};

struct ContaminatedDocument {
  DocumentPlace place;
  int64_t words = 0;
  Contamination found;
};

// The occurrences of one evaluation document in the whole corpus.
struct EvalResult {
  int64_t documents = 0;     // documents of the corpus that hold one of its n-grams
  int64_t ngrams_found = 0;  // of its n-grams
  size_t example = 0;        // the number of the word at which the first n-gram found begins
};

struct ComponentCheck {
  std::string name;      // empty: the one data set
  bool decoded = false;  // rows are token ids, decoded to text: format prebuilt, or a store without texts
  int64_t rows = 0, empty = 0, no_loss = 0, repaired = 0, bad = 0;
  int64_t left_out = 0;  // rows that verdicts leave out (data.rows); they are not looked at
  std::string first_bad;
  StatsHistograms stats;
};

// A component that was not checked, and why.
struct LeftOutComponent {
  std::string name, reason;
};

struct CheckReport {
  CheckSettings settings;
  std::vector<std::string> sources;  // paths, by DocumentPlace::source; for a store the folders of its splits
  // formats of `sources`; kParquet for a store, since its rows are numbered the same way
  std::vector<data::FileFormat> formats;
  std::vector<ComponentCheck> components;
  std::vector<LeftOutComponent> left_out;
  int64_t contaminated_documents = 0;
  std::vector<ContaminatedDocument> contaminated;  // those with the most words covered come first
  std::vector<EvalResult> evals;                   // one for each evaluation document of `index`
  EvalIndex index{1, 1};
  DuplicateReport duplicates;
  Bands bands;

  std::string place_text(const DocumentPlace& place) const;  // "file:line"
};

// Reads every source of every component, or the store of a component without texts. Rows of token ids are
// decoded. Errors: a source that cannot be read; an eval file that matches nothing; texts without a single
// document; a malformed row, unless data.on_bad_row is skip.
Result<CheckReport> run_check(io::FileSystem& fs, const data::DataOptions& options,
                              const tokenizer::Tokenizer& tokenizer, const CheckSettings& settings);

// All figures as indented JSON. Equal corpora and settings give equal JSON for any number of threads.
std::string check_json(const CheckReport& report);
// The figures as one HTML page with plots. It loads nothing from elsewhere.
std::string check_html(const CheckReport& report);

}  // namespace ostro::corpus_check
