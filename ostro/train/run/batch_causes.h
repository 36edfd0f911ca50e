// Why two configurations may train on other batches: for `ostro data diff`.
#pragma once

#include <string>

#include "ostro/train/options/config.h"

namespace ostro::train {

// A line for every option that batches depend on and that differs, with both values; then one with the names
// of the other options of a run's identity that differ. What stands for its content (texts, the tokenizer) is
// not compared. Empty when nothing differs. For people.
std::string batch_causes(const TrainConfig& a, const TrainConfig& b);

}  // namespace ostro::train
