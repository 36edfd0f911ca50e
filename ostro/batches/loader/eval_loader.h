// EvalLoader: held-out batches of one component.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ostro/batches/loader/data_set.h"
#include "ostro/batches/packing/batch.h"
#include "ostro/batches/packing/sequence_reader.h"

namespace ostro::batches {

// Gives every target of a validation split once, in stored order. The last batch is filled up with padding
// rows. Thread-safe.
class EvalLoader {
 public:
  // `component` is an index into data.parts(), `max_batches` is trainer.max_eval_batches. Errors: there is no
  // held-out text, or only a single token of it.
  static Result<EvalLoader> create(const DataSet& data, size_t component, const data::DataOptions& options,
                                   int64_t seq_len, int64_t batch_size, std::optional<int64_t> max_batches);

  const std::string& component_name() const { return name_; }
  int64_t batches() const { return batches_; }
  const SequenceReader& reader() const { return *reader_; }
  // Batch i in [0, batches()); its step is i.
  Result<Batch> batch(int64_t i) const;

  // True if every token is a target. Only then are bits per byte meaningful.
  bool has_bits_per_byte() const { return whole_text_; }
  // Converts a mean loss in nats per token to bits per byte of held-out text: loss / ln 2 * tokens / bytes.
  // Tokens (with eos) and bytes of text are those of the whole held-out split, even when max_batches cuts the
  // evaluation short.
  double bits_per_byte(double mean_loss) const;
  // Bytes of text of the whole held-out split.
  int64_t text_bytes() const { return text_bytes_; }

 private:
  EvalLoader() = default;

  std::string name_;
  std::shared_ptr<const SequenceReader> reader_;
  size_t component_ = 0;
  int64_t batch_size_ = 0;
  int64_t batches_ = 0;
  int64_t text_bytes_ = 0;
  BatchShape shape_;
  std::shared_ptr<const PairScores> scores_;  // null: none
  bool whole_text_ = true;
};

}  // namespace ostro::batches
