// Batches as a pure function of (store, options, step). Nothing about a loader is ever saved.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/data/options.h"
#include "ostro/data/order.h"
#include "ostro/data/token_store.h"

namespace ostro::data {

// Arrays are row-major [batch, pos].
struct Batch {
  int64_t step = 0;
  int64_t batch_size = 0, seq_len = 0;
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;      // the token that follows in the stream
  std::vector<float> loss_mask;      // 1: the target counts, 0: padding
  std::vector<int32_t> segment_ids;  // with data.block_cross_document_attention, else empty: which document
                                     // of its sequence a token is of, from 0
  std::vector<int64_t> sequences;    // by row, -1 for rows that are padding
};

// SHA-256 over the SHA-256 of every row in order; a row's is over seq_len (int64), tokens, targets, loss mask
// (f32) and segment ids, little-endian. So each worker can hash its own rows. What a chain entry holds.
std::string batch_fingerprint(const Batch& batch);

// A document in a sequence: positions [begin, end) of the sequence are its tokens from `first_token` on.
struct DocumentSpan {
  std::string file;
  int64_t document = 0;  // number in the file, from 1
  int64_t begin = 0, end = 0;
  int64_t first_token = 0;  // within the document
};

// Cuts the stream of a split into sequences. Sequence i reads tokens [i * L, (i + 1) * L + 1): L tokens, and
// as targets the same shifted by one, so every target of the stream counts once. Thread-safe.
class SequenceReader {
 public:
  SequenceReader(std::shared_ptr<const TokenStore> store, Split split, int64_t seq_len, bool segments);

  // Sequences with all targets; whole == false counts a last, shorter one, too.
  int64_t sequences(bool whole) const;
  const TokenStream& stream() const { return store_->split(split_); }
  int64_t seq_len() const { return seq_len_; }

  // An empty batch of that many padding rows.
  Batch new_batch(int64_t step, int64_t rows) const;
  // Fills a row of a batch; positions behind the stream's end stay padding.
  Status read(int64_t sequence, Batch& batch, int64_t row) const;
  // Which documents the tokens of a sequence are of, in order.
  Result<std::vector<DocumentSpan>> documents(int64_t sequence) const;

 private:
  int64_t count(int64_t sequence) const;  // its targets

  std::shared_ptr<const TokenStore> store_;
  Split split_;
  int64_t seq_len_;
  bool segments_;
};

// Training batches. Thread-safe.
class Loader {
 public:
  // Errors: fewer sequences than a batch has examples (it names the tokens there are and the tokens needed).
  static Result<Loader> create(std::shared_ptr<const TokenStore> store, const DataOptions& options,
                               int64_t seq_len, int64_t batch_size, uint64_t seed);

  int64_t batch_size() const { return batch_size_; }
  const SequenceReader& reader() const { return reader_; }
  // Sequences of an epoch.
  int64_t sequences() const { return order_.sequences(); }

  // The batch of a step >= 0: examples step * batch_size and on. Cost: at most a few chunk reads a sequence.
  // `threads` read and decode, for who cannot wait (training has a Prefetcher); the batch is the same.
  Result<Batch> batch(int64_t step, int threads = 1) const { return rows(step, 0, batch_size_, threads); }
  // Only its rows [begin, end): what a worker needs.
  Result<Batch> rows(int64_t step, int64_t begin, int64_t end, int threads = 1) const;

 private:
  Loader(SequenceReader reader, SequenceOrder order, int64_t batch_size)
      : reader_(std::move(reader)), order_(order), batch_size_(batch_size) {}

  SequenceReader reader_;
  SequenceOrder order_;
  int64_t batch_size_;
};

// Held-out batches: every target of the validation stream once, in stored order; the last batch is filled
// with padding rows. Thread-safe.
class EvalLoader {
 public:
  // `max_batches`: trainer.max_eval_batches. Errors: no held-out text, or a single token of it.
  static Result<EvalLoader> create(std::shared_ptr<const TokenStore> store, const DataOptions& options,
                                   int64_t seq_len, int64_t batch_size, std::optional<int64_t> max_batches);

  int64_t batches() const { return batches_; }
  const SequenceReader& reader() const { return reader_; }
  // Batch i in [0, batches()); its step is i.
  Result<Batch> batch(int64_t i) const;

  // Bits per byte of held-out text for a mean loss in nats per token: loss / ln 2 * tokens / bytes, where
  // tokens (with eos) and bytes of text are those of the whole held-out split, also when max_batches cuts the
  // evaluation short.
  double bits_per_byte(double mean_loss) const;

 private:
  EvalLoader(SequenceReader reader, int64_t batch_size, int64_t batches)
      : reader_(std::move(reader)), batch_size_(batch_size), batches_(batches) {}

  SequenceReader reader_;
  int64_t batch_size_;
  int64_t batches_;
};

}  // namespace ostro::data
