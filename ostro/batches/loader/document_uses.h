// document_uses: every place where a run's batches use a document. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "ostro/batches/loader/documents.h"
#include "ostro/batches/loader/loader.h"

namespace ostro::batches {

// A part of a document in a row of a batch.
struct DocumentUse {
  int64_t step = 0;   // from 0, as Loader::batch counts
  int64_t row = 0;    // of the batch
  int64_t epoch = 0;  // of the component, from 0
  RowPart part;
};

// A row of a store that a document became, and its uses by step and row.
struct UsedRow {
  size_t component = 0;
  int64_t row = 0;
  data::RowSource source;
  int64_t tokens = 0;
  bool trained = true;  // false: the component has weight 0 in all stages
  bool kept = true;     // false: the row is in no whole sequence, so no order of them uses it
  std::vector<DocumentUse> uses;
};

// The uses of row `row` of a component's training split in the steps [first, end). Errors: those of reading;
// more than 10,000,000 uses.
Result<UsedRow> row_uses(const Loader& loader, size_t component, int64_t row, int64_t first, int64_t end);

// The same for each training row of a document (rows_of_document). Errors: as there; kInvalidArgument when
// the document is held out everywhere.
Result<std::vector<UsedRow>> document_uses(const DataSet& stores, const Loader& loader,
                                           const data::DocumentName& name, const std::string& component,
                                           int64_t first, int64_t end);

}  // namespace ostro::batches
