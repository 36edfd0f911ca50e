#include "ostro/train/step/batches.h"

#include <fmt/format.h>

#include "ostro/base/log.h"
#include "ostro/data/tokenizer/trained_tokenizer.h"

namespace ostro::train {

using runtime::Buffer;

BatchArrays to_arrays(const data::Batch& b) {
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

Result<std::shared_ptr<const tokenizer::Tokenizer>> open_tokenizer(io::FileSystem& fs,
                                                                   const TrainConfig& config) {
  ASSIGN_OR_RETURN(tokenizer::Tokenizer t, data::open_tokenizer(fs, config.data));
  return std::shared_ptr<const tokenizer::Tokenizer>(std::make_shared<tokenizer::Tokenizer>(std::move(t)));
}

Result<DataAccess> open_data(io::FileSystem& fs, const TrainConfig& config,
                             const data::BuildSettings& settings) {
  DataAccess out;
  ASSIGN_OR_RETURN(tokenizer::Tokenizer tokenizer, data::make_tokenizer(fs, config.data, settings));
  out.tokenizer = std::make_shared<tokenizer::Tokenizer>(std::move(tokenizer));
  out.tokenizer_hash = out.tokenizer->hash();
  ASSIGN_OR_RETURN(out.stores, data::build_data_set(fs, config.data, *out.tokenizer, settings));
  out.data_hash = out.stores->hash();
  return out;
}

Result<data::Loader> make_loader(const TrainConfig& config, std::shared_ptr<const data::DataSet> stores,
                                 std::optional<int64_t> steps) {
  return data::Loader::create(std::move(stores), config.data, config.model_options().seq_len(),
                              config.trainer.train_batch_size, static_cast<uint64_t>(config.trainer.seed),
                              steps);
}

}  // namespace ostro::train
