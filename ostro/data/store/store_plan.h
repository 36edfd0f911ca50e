// What a configuration asks of the token store of one component.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/data/formats/row_formatter.h"
#include "ostro/data/ledger/ledger.h"
#include "ostro/data/options/options.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// Everything but the texts that decides the tokens of a component. `fs`: chat templates are files beside the
// tokenizer. Errors: data.enforce_eos with a tokenizer that has no token for it; no chat template.
Result<Preprocessing> preprocessing_of(io::FileSystem& fs, const DataOptions& options,
                                       const Component& component, const tokenizer::Tokenizer& tokenizer);

// Where a component's store is.
struct StoreFolder {
  std::string ledger;
  std::string levanter_cache;  // not empty: it holds the arrays, and `ledger` our check data
};
Result<StoreFolder> store_folder(io::FileSystem& fs, const DataOptions& options, const Component& component);

struct StorePlan {
  std::string key;  // for messages: "data", "data.components.web"
  StoreFolder folder;
  Preprocessing preprocessing;
  std::shared_ptr<const RowFormatter> formatter;  // null: rows are texts, or nothing is to be built
  Result<std::vector<SourceFile>> sources = std::vector<SourceFile>{};  // kNotFound: texts are missing
  bool has_texts = false;                                               // at least some of them are here
  ElementType ids = ElementType::kInt64;
  bool skip_bad_rows = false;
  bool is_in_place = false;  // the component names no texts
};

// Looks at the configuration, the sources' names and what is in the cache folders; reads no text. The
// tokenizer must outlive the plan. Errors: an option that does not fit the tokenizer, kUnsupported for
// data.id_type that the vocabulary does not fit.
Result<StorePlan> plan_store(io::FileSystem& fs, const DataOptions& options, const Component& component,
                             const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::data
