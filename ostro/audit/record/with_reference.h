// with_reference: gives preference pairs their reference, for evaluating a checkpoint by itself.
#pragma once

#include <memory>
#include <string>

#include "ostro/batches/loader/data_set.h"
#include "ostro/train/options/config.h"

namespace ostro::audit {

// The stores with what the run that holds this checkpoint compares pairs with; unchanged for another
// objective. Errors: the checkpoint lies in no run, or the run's objective or data are others.
Result<std::shared_ptr<const batches::DataSet>> with_reference(
    io::FileSystem& fs, const train::TrainConfig& config, const std::string& checkpoint,
    std::shared_ptr<const batches::DataSet> stores);

}  // namespace ostro::audit
