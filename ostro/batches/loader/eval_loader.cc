#include "ostro/batches/loader/eval_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

#include "ostro/base/check.h"

namespace ostro::batches {

Result<EvalLoader> EvalLoader::create(const DataSet& data, size_t component, const data::DataOptions& options,
                                      int64_t seq_len, int64_t batch_size,
                                      std::optional<int64_t> max_batches) {
  OSTRO_CHECK(batch_size >= 1, "batches of {} examples", batch_size);
  const DataSet::Part& part = data.parts()[component];
  EvalLoader loader;
  loader.name_ = part.component.name;
  loader.component_ = component;
  loader.batch_size_ = batch_size;
  loader.text_bytes_ = part.store->ledger().split(data::Split::kValidation).bytes;
  loader.shape_ = batch_shape(data, data::Split::kValidation, options, seq_len);
  loader.scores_ = part.scores[static_cast<size_t>(data::Split::kValidation)];
  loader.whole_text_ = std::holds_alternative<data::TextFormat>(part.component.format);
  ASSIGN_OR_RETURN(loader.reader_, open_sequences(part, data::Split::kValidation, options, seq_len));
  const int64_t n = loader.reader_->sequences(false);
  const data::TokenStream& stream = loader.reader_->stream();
  if (n == 0)
    return invalid_argument(
        fmt::format("{}: {} held-out documents with {} tokens are too few to evaluate; raise "
                    "{}.validation_fraction or set {}.validation_urls",
                    stream.name(), stream.rows(), stream.tokens(), part.component.key, part.component.key));
  loader.batches_ = (n + batch_size - 1) / batch_size;
  if (max_batches) loader.batches_ = std::min(loader.batches_, *max_batches);
  return loader;
}

Result<Batch> EvalLoader::batch(int64_t i) const {
  OSTRO_CHECK(i >= 0 && i < batches_, "batch {} of {}", i, batches_);
  Batch batch = make_batch(i, batch_size_, shape_);
  const int64_t first = i * batch_size_, n = reader_->sequences(false);
  for (int64_t row = 0; row < std::min(batch_size_, n - first); ++row) {
    batch.components[static_cast<size_t>(row)] = component_;
    RETURN_IF_ERROR(reader_->read(first + row, batch, row));
    if (scores_ != nullptr)
      std::copy_n(scores_->begin() + 2 * (first + row), 2, batch.reference.begin() + 2 * row);
  }
  return batch;
}

double EvalLoader::bits_per_byte(double mean_loss) const {
  return mean_loss / std::numbers::ln2 * reader_->stream().tokens_per_byte();
}

}  // namespace ostro::batches
