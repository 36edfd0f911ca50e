// PackedSequences: sequences of whole documents, packed side by side, for chat and supervised data.
#pragma once

#include <memory>

#include "ostro/batches/packing/pack_index.h"
#include "ostro/batches/packing/sequence_reader.h"

namespace ostro::batches {

// Each document is a segment of its own: it attends only to itself, and its targets are its own tokens, each
// with its loss weight. The rest of the sequence is padding of weight 0. Thread-safe. Errors: those of
// reading store and index; kCorrupt when the index does not fit the store.
class PackedSequences final : public SequenceReader {
 public:
  PackedSequences(std::shared_ptr<const data::TokenStore> store, data::Split split,
                  std::shared_ptr<const PackIndex> index)
      : SequenceReader(std::move(store), split, index->rule().seq_len), index_(std::move(index)) {}

  int64_t sequences(bool) const override { return index_->counts().sequences; }
  // `batch` must have segment ids.
  Status read(int64_t sequence, Batch& batch, int64_t row) const override;
  Result<std::vector<DocumentSpan>> documents(int64_t sequence) const override;
  Result<std::vector<RowPart>> parts_of(int64_t row) const override;
  Result<PackCounts> packing() const override { return index_->counts(); }
  const PackIndex& index() const { return *index_; }

 private:
  // The part of a sequence that one row of the store fills.
  struct Part {
    int64_t row = 0;
    int64_t begin = 0, count = 0;  // positions
    int64_t first = 0;             // its first token, in the stream
    int64_t first_token = 0;       // within the row
  };
  Result<std::vector<Part>> parts(int64_t sequence) const;

  std::shared_ptr<const PackIndex> index_;
};

}  // namespace ostro::batches
