// prove_rows, prove_batch: make proofs from token stores (data_proof.h), for readers who have none.
#pragma once

#include <span>
#include <string>

#include "ostro/batches/loader/loader.h"
#include "ostro/batches/proof/data_proof.h"

namespace ostro::batches {

// Rows of one split of a component's store, each once. Errors: there is no such row; of reading the store;
// kNotFound for a store without rows.tree (format 3).
Result<DataProof> prove_rows(const DataSet& stores, size_t component, data::Split split,
                             std::span<const int64_t> rows);

// Sequences [first, first + count) of the batch of the step after `step` steps, with the rows that they are
// made of. Errors: kUnsupported for preference pairs; of reading the stores.
Result<DataProof> prove_batch(const DataSet& stores, const Loader& loader, int64_t step, int64_t first,
                              int64_t count);

// The rows of a component's store that a document gave: `file` as the ledger has it, or the end of it behind
// a slash; documents count from 1. Errors: no such file or document, several files with that end.
struct FoundRow {
  data::Split split = data::Split::kTrain;
  int64_t row = 0;
};
Result<FoundRow> row_of_document(const DataSet::Part& part, const std::string& file, int64_t document);

}  // namespace ostro::batches
