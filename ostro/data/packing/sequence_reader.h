// From the rows of a token store to sequences of a fixed length: cut out of the stream of all tokens, or
// whole documents packed side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ostro/data/packing/batch.h"
#include "ostro/data/packing/packing.h"
#include "ostro/data/store/token_store.h"

namespace ostro::data {

// A document in a sequence: positions [begin, end) of the sequence are its tokens from `first_token` on. The
// token behind the last of them is a target only.
struct DocumentSpan {
  RowSource source;
  int64_t row = 0;  // in the split's store
  int64_t begin = 0, end = 0;
  int64_t first_token = 0;  // within the document
};

// The sequences of one split of a store. Thread-safe.
class SequenceReader {
 public:
  SequenceReader(std::shared_ptr<const TokenStore> store, Split split, int64_t seq_len)
      : store_(std::move(store)), split_(split), seq_len_(seq_len) {}
  virtual ~SequenceReader() = default;

  // Sequences with all targets; whole == false counts a last, shorter one, too.
  virtual int64_t sequences(bool whole) const = 0;
  // Fills a row of a batch; what the sequence leaves free stays padding, a segment of its own.
  virtual Status read(int64_t sequence, Batch& batch, int64_t row) const = 0;
  // Which documents the tokens of a sequence are of, in order.
  virtual Result<std::vector<DocumentSpan>> documents(int64_t sequence) const = 0;

  // What packing made of the rows; zeros for what is cut out of a stream, where nothing is left out.
  virtual PackCounts packing() const { return {}; }

  const TokenStream& stream() const { return store_->split(split_); }
  int64_t seq_len() const { return seq_len_; }

 protected:
  // The span of a row of the store in a sequence.
  Result<DocumentSpan> span_of(int64_t row, int64_t begin, int64_t end, int64_t first_token) const;

 private:
  std::shared_ptr<const TokenStore> store_;
  Split split_;
  int64_t seq_len_;
};

// Sequence i reads tokens [i * L, (i + 1) * L + 1) of the stream: L tokens, and as targets the same shifted
// by one, so every target of the stream counts once.
class StreamSequences final : public SequenceReader {
 public:
  // `by_document`: batches with segment ids get the number of the document in the sequence, else 0.
  StreamSequences(std::shared_ptr<const TokenStore> store, Split split, int64_t seq_len, bool by_document);

  int64_t sequences(bool whole) const override;
  Status read(int64_t sequence, Batch& batch, int64_t row) const override;
  Result<std::vector<DocumentSpan>> documents(int64_t sequence) const override;

 private:
  int64_t count(int64_t sequence) const;  // its targets

  bool by_document_;
};

}  // namespace ostro::data
