// document_diff_text: names the documents that were removed, added or changed between two data sets, for
// `ostro data diff`.
#pragma once

#include <string>

#include "ostro/batches/loader/data_set.h"

namespace ostro::corpus_check {

// Returns a report for people on the components that both data sets have and whose stores differ; empty when
// nothing differs. It names the source files that only one side has and, for files whose content differs, the
// documents that were removed, added or changed, by file and number. A removed and an added document with
// equally many common documents before them count as one that was changed. At most `list` documents of a
// component are listed; all are counted.
//
// Rows are compared by their ids and weights, so stores with other tokenizers or formats are not compared.
// Only the rows of files that differ are read. Errors: stores that cannot be read. Thread-safe.
Result<std::string> document_diff_text(const batches::DataSet& a, const batches::DataSet& b, int64_t list);

}  // namespace ostro::corpus_check
