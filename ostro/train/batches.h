// The data of a run as arrays: training batches by step, held-out batches by number.
#pragma once

#include <memory>
#include <string>

#include "ostro/data/data_set.h"
#include "ostro/data/loader.h"
#include "ostro/io/file_system.h"
#include "ostro/tokenizer/tokenizer.h"
#include "ostro/train/config.h"
#include "ostro/train/step.h"

namespace ostro::train {

// As BatchArrays wants them: tokens, targets, loss_mask [, segments], each [batch, pos].
BatchArrays to_arrays(const data::Batch& batch);

// Opens the token stores; builds them first when they are not there (progress as data::build_store reports
// it).
struct DataAccess {
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::shared_ptr<const data::DataSet> stores;
  std::string tokenizer_hash;  // SHA-256 of its canonical JSON
  std::string data_hash;       // DataSet::hash
};
Result<DataAccess> open_data(io::FileSystem& fs, const TrainConfig& config,
                             const data::BuildSettings& settings = {});
// The training batches of a configuration, which must not ask for a longer run than its data allows.
Result<data::Loader> make_loader(const TrainConfig& config, std::shared_ptr<const data::DataSet> stores);
// The tokenizer alone.
Result<std::shared_ptr<const tokenizer::Tokenizer>> open_tokenizer(io::FileSystem& fs,
                                                                   const TrainConfig& config);

}  // namespace ostro::train
