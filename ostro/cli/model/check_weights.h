// Hashing the parameters of a model that stays in its checkpoint.
#pragma once

#include "ostro/checkpoint/part_reader.h"

namespace ostro::cli {

// PartReader::check with a line of progress.
Status check_weights(const checkpoint::PartReader& reader);

}  // namespace ostro::cli
