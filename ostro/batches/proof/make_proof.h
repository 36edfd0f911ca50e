// prove_rows, prove_batch: make proofs from token stores (data_proof.h), for readers who do not have the
// stores. Thread-safe.
#pragma once

#include <span>
#include <string>

#include "ostro/batches/loader/loader.h"
#include "ostro/batches/proof/data_proof.h"

namespace ostro::batches {

// Returns a proof of these rows of one split of a component's store, each once. Errors: there is no such row;
// kNotFound for a store without rows.tree (format 3); those of reading the store.
Result<DataProof> prove_rows(const DataSet& stores, size_t component, data::Split split,
                             std::span<const int64_t> rows);

// Returns a proof of sequences [first, first + count) of the batch of the step that is done after `step`
// steps, with the rows that they are made of. Errors: kUnsupported for preference pairs; those of reading the
// stores.
Result<DataProof> prove_batch(const DataSet& stores, const Loader& loader, int64_t step, int64_t first,
                              int64_t count);

// The place of a document's row in a component's store.
struct FoundRow {
  data::Split split = data::Split::kTrain;
  int64_t row = 0;
};
// Finds the row that a document of a source file became. `file` is the path of the file in the ledger, or the
// end of that path behind a slash; documents count from 1. Errors: kInvalidArgument when there is no such
// file or document, or several files have that end; those of reading the store.
Result<FoundRow> row_of_document(const DataSet::Part& part, const std::string& file, int64_t document);

}  // namespace ostro::batches
