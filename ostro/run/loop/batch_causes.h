// batch_causes: explains why two configurations may train on different batches, for `ostro data diff`.
#pragma once

#include <string>

#include "ostro/train/options/config.h"

namespace ostro::run {

// Text for people. There is a line with both values for every option that batches depend on and that differs.
// A last line names the other differing options of the canonical configs. Options that are represented by a
// hash of their content (texts, tokenizer) are not compared. Empty if nothing differs.
std::string batch_causes(const train::TrainConfig& a, const train::TrainConfig& b);

}  // namespace ostro::run
