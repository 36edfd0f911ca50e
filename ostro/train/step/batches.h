// open_data, make_loader, to_arrays: the data of a run, from its token stores to the training batches by
// step, and each batch as the arrays that programs read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ostro/batches/loader/data_set.h"
#include "ostro/batches/loader/loader.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"
#include "ostro/train/options/config.h"
#include "ostro/train/step/step.h"

namespace ostro::train {

// Returns the arrays of a batch in the order of BatchArrays: tokens, targets, loss_mask and, if the batch has
// them, segments. Each is [batch, pos], for pairs [batch, side, pos]. Last, if the batch has it, comes the
// reference of pairs, f64 [batch, side].
BatchArrays to_arrays(const batches::Batch& batch);

// Returns the arrays that the leaf program reads of the batch of step `step`, counted from 0: those of
// to_arrays() and, with integer products, the step's key and the number of each example.
BatchArrays leaf_arrays(const TrainConfig& config, const batches::Batch& batch, int64_t step);

// The tokenizer and the token stores of a run.
struct DataAccess {
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::shared_ptr<const batches::DataSet> stores;
  std::string tokenizer_hash;  // SHA-256 of its canonical JSON
  std::string data_hash;       // DataSet::hash
};
// Opens the token stores. Builds them first when they are missing, and before them the tokenizer when the
// configuration names none (progress as BuildSettings says).
Result<DataAccess> open_data(io::FileSystem& fs, const TrainConfig& config,
                             const data::BuildSettings& settings = {});
// Returns the training batches of a configuration. `stores` may have more components, which an amend added
// later. `steps`: the length of the run, which data.stop_strategy
// must allow; nothing: any step may be asked for. Errors: as batches::Loader::create.
Result<batches::Loader> make_loader(const TrainConfig& config, std::shared_ptr<const batches::DataSet> stores,
                                    std::optional<int64_t> steps = {});
// Opens the tokenizer alone, which must exist.
Result<std::shared_ptr<const tokenizer::Tokenizer>> open_tokenizer(io::FileSystem& fs,
                                                                   const TrainConfig& config);

}  // namespace ostro::train
