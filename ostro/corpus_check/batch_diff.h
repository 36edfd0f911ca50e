// diff_batches: compares the training data of two configurations, for `ostro data diff`.
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
  bool equal = false;  // the stores, and the batches of the first steps
};

// The report says which components differ, the first step and row whose content differs among
// the first `steps` steps, and by component how many sequences are the same at the same place, occur on both
// sides at different places, or occur on one side only. Sequences are compared by their tokens, targets, loss
// weights and segments, so the two stores may differ.
Result<BatchDiff> diff_batches(const DiffSide& a, const DiffSide& b, int64_t steps);

}  // namespace ostro::corpus_check
