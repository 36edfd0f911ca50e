// document_diff_text: names the documents that were removed, added or changed between two data sets, for
// `ostro data diff`.
#pragma once

#include <string>

#include "ostro/batches/loader/data_set.h"

namespace ostro::corpus_check {

// A report for people, of the components that both have and whose stores differ: source files that only one
// side has, and the documents of files that both have with other content, by file and number. A document is
// changed where as many documents that both files have stand before it as before the other. Only these
// files' rows are read. Lists at most `list` documents of a component; all are counted. Rows are compared by
// what was made of them, ids and weights: stores of other tokenizers or formats are not compared. Empty where
// nothing differs. Errors: stores that cannot be read.
Result<std::string> document_diff_text(const batches::DataSet& a, const batches::DataSet& b, int64_t list);

}  // namespace ostro::corpus_check
