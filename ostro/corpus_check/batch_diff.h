// diff_batches: compares the training data of two configurations, for `ostro data diff`. Errors: those of
// reading a batch. Thread-safe.
#pragma once

#include <string>

#include "ostro/batches/loader/data_set.h"
#include "ostro/batches/loader/loader.h"

namespace ostro::corpus_check {

// One side: the stores and the loader of a configuration.
struct DiffSide {
  const batches::DataSet& stores;
  const batches::Loader& loader;
};

struct BatchDiff {
  std::string text;    // a report for people
  bool equal = false;  // true when the stores and the batches of the first steps are equal
};

// Compares the stores and the batches of steps [0, steps). Sequences are compared by their tokens, targets,
// loss weights and segments, so equal batches may come from different stores.
//
// The report says which components differ, the first step and row whose content differs, how many sequences
// are equal at the same place, and for each component how many sequences each side has and how many are on
// both sides, wherever they lie.
Result<BatchDiff> diff_batches(const DiffSide& a, const DiffSide& b, int64_t steps);

}  // namespace ostro::corpus_check
