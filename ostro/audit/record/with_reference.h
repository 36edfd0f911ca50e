// with_reference: gives preference pairs the reference that their loss is measured from, for evaluating a
// checkpoint by itself.
#pragma once

#include <memory>
#include <string>

#include "ostro/batches/loader/data_set.h"
#include "ostro/train/options/config.h"

namespace ostro::audit {

// Returns `stores` with the reference of the run in which the checkpoint lies; `stores` itself when the
// objective has no pairs. Errors: the checkpoint lies in no run, or the run has another objective or other
// data.
Result<std::shared_ptr<const batches::DataSet>> with_reference(
    io::FileSystem& fs, const train::TrainConfig& config, const std::string& checkpoint,
    std::shared_ptr<const batches::DataSet> stores);

}  // namespace ostro::audit
