#include "ostro/data/loader.h"

#include <fmt/core.h>

#include <algorithm>
#include <numbers>
#include <thread>

#include "ostro/base/sha256.h"

namespace ostro::data {
namespace {

template <typename T>
std::span<const std::byte> row_bytes(const std::vector<T>& array, int64_t row, int64_t length) {
  if (array.empty()) return {};
  return std::as_bytes(
      std::span(array).subspan(static_cast<size_t>(row * length), static_cast<size_t>(length)));
}

}  // namespace

std::string batch_fingerprint(const Batch& batch) {
  Sha256 all;
  for (int64_t row = 0; row < batch.batch_size; ++row) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(&batch.seq_len, 1)));
    hash.update(row_bytes(batch.tokens, row, batch.seq_len));
    hash.update(row_bytes(batch.targets, row, batch.seq_len));
    hash.update(row_bytes(batch.loss_mask, row, batch.seq_len));
    hash.update(row_bytes(batch.segment_ids, row, batch.seq_len));
    const Sha256Digest digest = hash.finish();
    all.update(std::as_bytes(std::span(digest)));
  }
  return to_hex(all.finish());
}

SequenceReader::SequenceReader(std::shared_ptr<const TokenStore> store, Split split, int64_t seq_len,
                               bool segments)
    : store_(std::move(store)), split_(split), seq_len_(seq_len), segments_(segments) {
  OSTRO_CHECK(seq_len >= 1, "sequences of {} tokens", seq_len);
}

int64_t SequenceReader::sequences(bool whole) const {
  const int64_t targets = std::max<int64_t>(stream().tokens() - 1, 0);
  return whole ? targets / seq_len_ : targets / seq_len_ + (targets % seq_len_ != 0 ? 1 : 0);
}

int64_t SequenceReader::count(int64_t sequence) const {
  OSTRO_CHECK(sequence >= 0 && sequence < sequences(false), "{}: sequence {} of {}", stream().name(),
              sequence, sequences(false));
  return std::min(seq_len_, stream().tokens() - 1 - sequence * seq_len_);
}

Batch SequenceReader::new_batch(int64_t step, int64_t rows) const {
  const auto size = static_cast<size_t>(rows * seq_len_);
  Batch batch{.step = step, .batch_size = rows, .seq_len = seq_len_};
  batch.tokens.resize(size);
  batch.targets.resize(size);
  batch.loss_mask.resize(size);
  if (segments_) batch.segment_ids.resize(size);
  batch.sequences.resize(static_cast<size_t>(rows), -1);
  return batch;
}

Status SequenceReader::read(int64_t sequence, Batch& batch, int64_t row) const {
  const int64_t first = sequence * seq_len_, targets = count(sequence);
  std::vector<int32_t> window(static_cast<size_t>(targets + 1));
  RETURN_IF_ERROR(stream().read(first, window));
  const int64_t at = row * seq_len_;
  std::copy(window.begin(), window.end() - 1, batch.tokens.begin() + at);
  std::copy(window.begin() + 1, window.end(), batch.targets.begin() + at);
  std::fill_n(batch.loss_mask.begin() + at, targets, 1.0f);
  if (segments_) {
    ASSIGN_OR_RETURN(const std::vector<RowSpan> rows, stream().rows_of(first, targets));
    int32_t segment = 0;
    for (const RowSpan& span : rows) {
      const int64_t begin = std::max(span.begin, first) - first, end = std::min(span.end - first, targets);
      std::fill_n(batch.segment_ids.begin() + at + begin, end - begin, segment++);
    }
    // Padding is of a document of its own.
    std::fill_n(batch.segment_ids.begin() + at + targets, seq_len_ - targets, segment);
  }
  batch.sequences[static_cast<size_t>(row)] = sequence;
  return {};
}

Result<std::vector<DocumentSpan>> SequenceReader::documents(int64_t sequence) const {
  const int64_t first = sequence * seq_len_, targets = count(sequence);
  ASSIGN_OR_RETURN(const std::vector<RowSpan> rows, stream().rows_of(first, targets));
  std::vector<DocumentSpan> spans;
  for (const RowSpan& span : rows) {
    ASSIGN_OR_RETURN(RowSource source, stream().source(span.row));
    const int64_t begin = std::max(span.begin, first);
    spans.push_back({std::move(source.file), source.document, begin - first,
                     std::min(span.end - first, targets), begin - span.begin});
  }
  return spans;
}

Status check_order_options(const DataOptions& options) {
  const auto refuse = [](const char* key) {
    return unsupported(fmt::format("data.{}: only its default can be trained on yet", key));
  };
  if (!options.components.empty()) return refuse("components");
  if (options.target_budget) return refuse("target_budget");
  return {};
}

Result<Loader> Loader::create(std::shared_ptr<const TokenStore> store, const DataOptions& options,
                              int64_t seq_len, int64_t batch_size, uint64_t seed) {
  RETURN_IF_ERROR(check_order_options(options));
  OSTRO_CHECK(batch_size >= 1, "batches of {} examples", batch_size);
  SequenceReader reader(std::move(store), Split::kTrain, seq_len, options.block_cross_document_attention);
  const int64_t n = reader.sequences(true);
  if (n < batch_size)
    return invalid_argument(fmt::format(
        "{}: {} tokens in {} documents are too few for one batch: {} examples of {} tokens need {}; "
        "add text to data.train_urls, or lower trainer.train_batch_size or model.seq_len",
        reader.stream().name(), reader.stream().tokens(), reader.stream().rows(), batch_size, seq_len,
        batch_size * seq_len + 1));
  return Loader(std::move(reader), SequenceOrder(data_key(seed), n, options.shuffle), batch_size);
}

Result<Batch> Loader::rows(int64_t step, int64_t begin, int64_t end, int threads) const {
  OSTRO_CHECK(step >= 0 && 0 <= begin && begin <= end && end <= batch_size_, "rows [{}, {}) of step {}",
              begin, end, step);
  if (step > INT64_MAX / batch_size_ - 1)
    return invalid_argument(fmt::format("step {}: too large for batches of {} examples", step, batch_size_));
  Batch batch = reader_.new_batch(step, end - begin);
  std::vector<std::pair<int64_t, int64_t>> sequence_rows;
  for (int64_t row = begin; row < end; ++row)
    sequence_rows.emplace_back(order_(step * batch_size_ + row), row - begin);
  // In stored order, so that a chunk that several rows lie in is decoded once.
  std::sort(sequence_rows.begin(), sequence_rows.end());
  const auto read = [&](size_t first, size_t last) -> Status {
    for (size_t i = first; i < last; ++i)
      RETURN_IF_ERROR(reader_.read(sequence_rows[i].first, batch, sequence_rows[i].second));
    return {};
  };
  // Each thread has neighbouring sequences, so few chunks are wanted by two.
  const size_t count = sequence_rows.size(),
               parts = std::clamp<size_t>(static_cast<size_t>(threads), 1, std::max<size_t>(count, 1));
  std::vector<Status> done(parts);
  std::vector<std::jthread> others;
  for (size_t part = 1; part < parts; ++part)
    others.emplace_back([&, part] { done[part] = read(count * part / parts, count * (part + 1) / parts); });
  done[0] = read(0, count / parts);
  others.clear();  // joins
  for (const Status& status : done) RETURN_IF_ERROR(status);
  return batch;
}

Result<EvalLoader> EvalLoader::create(std::shared_ptr<const TokenStore> store, const DataOptions& options,
                                      int64_t seq_len, int64_t batch_size,
                                      std::optional<int64_t> max_batches) {
  OSTRO_CHECK(batch_size >= 1, "batches of {} examples", batch_size);
  SequenceReader reader(std::move(store), Split::kValidation, seq_len,
                        options.block_cross_document_attention);
  const int64_t n = reader.sequences(false);
  if (n == 0)
    return invalid_argument(
        fmt::format("{}: {} held-out documents with {} tokens are too few to evaluate; raise "
                    "data.validation_fraction or set "
                    "data.validation_urls",
                    reader.stream().name(), reader.stream().rows(), reader.stream().tokens()));
  int64_t batches = (n + batch_size - 1) / batch_size;
  if (max_batches) batches = std::min(batches, *max_batches);
  return EvalLoader(std::move(reader), batch_size, batches);
}

Result<Batch> EvalLoader::batch(int64_t i) const {
  OSTRO_CHECK(i >= 0 && i < batches_, "batch {} of {}", i, batches_);
  Batch batch = reader_.new_batch(i, batch_size_);
  const int64_t first = i * batch_size_, n = reader_.sequences(false);
  for (int64_t row = 0; row < std::min(batch_size_, n - first); ++row)
    RETURN_IF_ERROR(reader_.read(first + row, batch, row));
  return batch;
}

double EvalLoader::bits_per_byte(double mean_loss) const {
  return mean_loss / std::numbers::ln2 * reader_.stream().tokens_per_byte();
}

}  // namespace ostro::data
