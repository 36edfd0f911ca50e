// score_rows: scores the rows of a data set by a classifier of good and other texts, and leaves out the
// worst.
#pragma once

#include <optional>

#include "ostro/corpus_check/quality/classifier.h"
#include "ostro/corpus_check/verdicts/text_rows.h"

namespace ostro::corpus_check {

// Which rows are taken: exactly one of the two is set.
struct QualityRule {
  std::optional<double> threshold;  // those with at least this score
  std::optional<double> share;      // rows_of_share(), the best; of equal scores the first
};

// The least number of rows that is a share of them, from 0 to 1, or more: of 100 rows 7 for 0.07.
size_t rows_of_share(double share, size_t rows);

// Trains on the rows of `good` and `other`, and scores those of `rows`. The verdict of each has its score as
// the value; the reason is "quality". Training is serial, scores use `threads`; the result does not depend on
// them. Memory: the vectors, and 8 bytes for each word of `good` and `other`. Errors: those of each_text; no
// text in `good` or `other`.
Result<data::RowVerdicts> score_rows(io::FileSystem& fs, const TextRows& rows, const TextRows& good,
                                     const TextRows& other, const ClassifierOptions& options,
                                     const QualityRule& rule, int threads);

}  // namespace ostro::corpus_check
