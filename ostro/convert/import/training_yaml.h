// training_yaml: the configuration that is written beside a checkpoint that no run made. A pure function.
#pragma once

#include <string>

#include "ostro/train/options/config.h"

namespace ostro::convert {

inline constexpr const char* kTrainFile = "train.yaml";

// Returns the text of a configuration to go on training the model of `config`, a decoder, with the checkpoint
// in the directory `out`, which was made from `from`. Sequences have at most 2048 tokens. The user has to set
// the texts and the learning rate.
std::string training_yaml(const train::TrainConfig& config, const std::string& from, const std::string& out);

}  // namespace ostro::convert
