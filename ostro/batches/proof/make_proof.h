// prove_rows, prove_batch: make proofs from token stores (data_proof.h), for readers who do not have the
// stores. Thread-safe.
#pragma once

#include <span>

#include "ostro/batches/loader/documents.h"
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

}  // namespace ostro::batches
