// StorePlan: the token store of one component, as a configuration describes it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/data/formats/row_formatter.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/data/options/options.h"
#include "ostro/data/rows/row_verdicts.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// Everything, except for the texts, that decides the tokens of a component. `fs` is needed because chat
// templates are files beside the tokenizer. Errors: data.enforce_eos with a tokenizer that has no end-of-text
// token; no chat template.
Result<Preprocessing> preprocessing_of(io::FileSystem& fs, const DataOptions& options,
                                       const Component& component, const tokenizer::Tokenizer& tokenizer);

// The folders of a component's store.
struct StoreFolder {
  std::string ledger;
  // folder of a Levanter cache that holds the arrays; `ledger` then holds only our ledger and sums. Empty:
  // our own store
  std::string levanter_cache;
};
Result<StoreFolder> store_folder(io::FileSystem& fs, const DataOptions& options, const Component& component);

struct StorePlan {
  std::string key;  // for messages: "data", "data.components.web"
  StoreFolder folder;
  Preprocessing preprocessing;
  std::shared_ptr<const RowFormatter> formatter;  // null: rows are plain texts, or there is nothing to build
  Result<std::vector<SourceFile>> sources = std::vector<SourceFile>{};  // kNotFound: texts are missing
  bool has_texts = false;                                               // at least some texts are found
  ElementType ids = ElementType::kInt64;
  bool skip_bad_rows = false;
  bool is_in_place = false;    // the component names no texts
  bool any_beginning = false;  // check_finished_preprocessing
  // Of the files of train_urls, in order; null: all rows are taken, or the file of verdicts is not there.
  std::shared_ptr<const RowVerdicts> verdicts;
  // Set when that file is not there. Then a store that exists says alone which rows it lacks
  // (`preprocessing.left_out` is empty), and none can be built.
  std::optional<Error> no_verdicts;
};

// Makes the plan from the configuration, the names of the sources and the content of the cache folders. Reads
// no text. The tokenizer must outlive the plan. Errors: an option that does not fit the tokenizer;
// kUnsupported when the vocabulary does not fit data.id_type.
Result<StorePlan> plan_store(io::FileSystem& fs, const DataOptions& options, const Component& component,
                             const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::data
