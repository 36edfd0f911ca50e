// row_of_document, rows_of_document: find the rows of token stores that a document of a source file became.
// Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "ostro/batches/loader/data_set.h"
#include "ostro/data/options/document_name.h"

namespace ostro::batches {

// The place of a document's row in a component's store.
struct FoundRow {
  data::Split split = data::Split::kTrain;
  int64_t row = 0;
};
// Finds the row that a document of a source file became. `file` is the path of the file in the ledger, or the
// end of that path behind a slash; documents count from 1. Errors: kInvalidArgument when there is no such
// file or document, or several files have that end; those of reading the store.
Result<FoundRow> row_of_document(const DataSet::Part& part, const std::string& file, int64_t document);

// A document's row in one of several stores.
struct ComponentRow {
  size_t component = 0;  // index into DataSet::parts()
  FoundRow found;
};
// The rows that a document became in the components that have its file: more than one if several components
// read the file. Only in `component`, if that is not empty. Errors: kInvalidArgument when no component has
// the document (with the reason for each), or when several files of one have this name; those of reading.
Result<std::vector<ComponentRow>> rows_of_document(const DataSet& stores, const data::DocumentName& name,
                                                   const std::string& component = "");

// The training rows of a document. Error: it is held out, so no step reads it.
Result<std::vector<ComponentRow>> training_rows(const DataSet& stores, const data::DocumentName& name,
                                                const std::string& component = "");

}  // namespace ostro::batches
