#include "ostro/train/step/batches.h"

#include <fmt/format.h>

#include "ostro/numerics/threefry.h"
#include "ostro/prepare/tokenizer/trained_tokenizer.h"
#include "ostro/train/programs/programs.h"

namespace ostro::train {

using runtime::Buffer;

BatchArrays to_arrays(const batches::Batch& b) {
  ir::Shape ids{ir::DType::i32, {{"batch", b.batch_size}, {"pos", b.seq_len}}};
  if (b.pairs) ids.axes = {{"batch", b.batch_size}, {"side", 2}, {"pos", b.seq_len / 2}};
  BatchArrays out = {Buffer::copy_of(ids, b.tokens.data()), Buffer::copy_of(ids, b.targets.data()),
                     Buffer::copy_of(ids.with_dtype(ir::DType::f32), b.loss_mask.data())};
  if (!b.segment_ids.empty()) out.push_back(Buffer::copy_of(ids, b.segment_ids.data()));
  if (!b.reference.empty())
    out.push_back(
        Buffer::copy_of({ir::DType::f64, {{"batch", b.batch_size}, {"side", 2}}}, b.reference.data()));
  return out;
}

BatchArrays leaf_arrays(const TrainConfig& config, const batches::Batch& batch, int64_t step) {
  BatchArrays out = to_arrays(batch);
  if (precision(config).int8_block == 0) return out;
  const int64_t examples = out[0].shape().axes[0].size;
  const numerics::Key key = numerics::fold_in(
      numerics::fold_in(numerics::key_from_seed(static_cast<uint64_t>(config.trainer.seed)), "dither"),
      static_cast<uint32_t>(step));
  std::vector<uint32_t> keys;
  std::vector<int32_t> numbers;
  for (int64_t i = 0; i < examples; ++i) {
    keys.insert(keys.end(), {key.word0, key.word1});
    numbers.push_back(static_cast<int32_t>(i));
  }
  out.push_back(Buffer::copy_of({ir::DType::u32, {{"batch", examples}, {"word", 2}}}, keys.data()));
  out.push_back(Buffer::copy_of({ir::DType::i32, {{"batch", examples}}}, numbers.data()));
  return out;
}

Result<std::shared_ptr<const tokenizer::Tokenizer>> open_tokenizer(io::FileSystem& fs,
                                                                   const TrainConfig& config) {
  ASSIGN_OR_RETURN(tokenizer::Tokenizer t, prepare::open_tokenizer(fs, config.data));
  return std::shared_ptr<const tokenizer::Tokenizer>(std::make_shared<tokenizer::Tokenizer>(std::move(t)));
}

Result<DataAccess> open_data(io::FileSystem& fs, const TrainConfig& config,
                             const data::BuildSettings& settings) {
  DataAccess out;
  ASSIGN_OR_RETURN(tokenizer::Tokenizer tokenizer, prepare::make_tokenizer(fs, config.data, settings));
  out.tokenizer = std::make_shared<tokenizer::Tokenizer>(std::move(tokenizer));
  out.tokenizer_hash = out.tokenizer->hash();
  ASSIGN_OR_RETURN(out.stores, batches::build_data_set(fs, config.data, *out.tokenizer, settings));
  out.data_hash = out.stores->hash();
  return out;
}

Result<batches::Loader> make_loader(const TrainConfig& config, std::shared_ptr<const batches::DataSet> stores,
                                    std::optional<int64_t> steps) {
  return batches::Loader::create(batches::DataSet::of_components(std::move(stores), config.data), config.data,
                                 config.model_options().seq_len(), config.trainer.train_batch_size,
                                 static_cast<uint64_t>(config.trainer.seed), steps);
}

}  // namespace ostro::train
