// batch_causes: explains why two configurations may train on different batches, for `ostro data diff`.
#pragma once

#include <string>

#include "ostro/train/options/config.h"

namespace ostro::run {

// Returns a text for people; empty if nothing differs. It has a line with both values for every option on
// which batches depend and which differs. A last line names the other differing options of the canonical
// configs. Options that are represented by a hash of their content (texts, tokenizer) are not compared. A
// pure function.
std::string batch_causes(const train::TrainConfig& a, const train::TrainConfig& b);

}  // namespace ostro::run
