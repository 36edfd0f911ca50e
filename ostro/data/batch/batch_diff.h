// What two configurations train on, side by side: for `ostro data diff`.
#pragma once

#include <string>

#include "ostro/data/batch/data_set.h"
#include "ostro/data/batch/loader.h"

namespace ostro::data {

// One side: what a configuration's batches are made from.
struct DiffSide {
  const DataSet& stores;
  const Loader& loader;
};

// Which components differ; the first step and row whose content differs among the first
// `steps` steps; and how many sequences of them are equal in place, shared, or on one side only, by
// component. Sequences are compared by their tokens, targets, loss weights and segments, so stores may
// differ. For people.
Result<std::string> diff_text(const DiffSide& a, const DiffSide& b, int64_t steps);

}  // namespace ostro::data
