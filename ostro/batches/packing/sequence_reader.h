// SequenceReader: makes sequences of a fixed length from the rows of a token store. They are cut out of the
// stream of all tokens, or hold whole documents packed side by side.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ostro/batches/packing/batch.h"
#include "ostro/batches/packing/packing.h"
#include "ostro/data/store/token_store.h"

namespace ostro::batches {

// A document's part in a sequence: positions [begin, end) hold its tokens from `first_token` on. The token
// after the last of them is only a target.
struct DocumentSpan {
  data::RowSource source;
  int64_t row = 0;  // in the split's store
  int64_t begin = 0, end = 0;
  int64_t first_token = 0;  // within the document
};

// A row's part in a sequence: what DocumentSpan says, found from the row.
struct RowPart {
  int64_t sequence = 0;
  int64_t begin = 0, end = 0;  // positions that hold tokens of the row; equal: only targets are the row's
  int64_t target_begin = 0, target_end = 0;  // positions whose target is a token of the row
  int64_t first_token = 0;                   // the one at `begin`, or the first target, within the row
};

// The sequences of one split of a store. Thread-safe.
class SequenceReader {
 public:
  SequenceReader(std::shared_ptr<const data::TokenStore> store, data::Split split, int64_t seq_len)
      : store_(std::move(store)), split_(split), seq_len_(seq_len) {}
  virtual ~SequenceReader() = default;

  // Number of sequences. With `whole`, only those that have all targets; without, a shorter last one counts,
  // too.
  virtual int64_t sequences(bool whole) const = 0;
  // Copies a sequence into row `row` of a batch. Positions that the sequence leaves free become padding, with
  // a segment of their own.
  virtual Status read(int64_t sequence, Batch& batch, int64_t row) const = 0;
  // The documents that the tokens of a sequence come from, in order.
  virtual Result<std::vector<DocumentSpan>> documents(int64_t sequence) const = 0;

  // The parts of a row of the store in the sequences that have all targets, in their order. None: the row is
  // in no sequence, because nothing is kept of it. Errors are those of reading the store.
  virtual Result<std::vector<RowPart>> parts_of(int64_t row) const = 0;

  // Counts of what packing did with the rows. All zero for a stream that is cut, which leaves nothing out.
  // Errors are those of reading the store.
  virtual Result<PackCounts> packing() const { return PackCounts(); }

  const data::TokenStream& stream() const { return store_->split(split_); }
  int64_t seq_len() const { return seq_len_; }

 protected:
  // The DocumentSpan of a row of the store, with its source looked up.
  Result<DocumentSpan> span_of(int64_t row, int64_t begin, int64_t end, int64_t first_token) const;

 private:
  std::shared_ptr<const data::TokenStore> store_;
  data::Split split_;
  int64_t seq_len_;
};

// Cuts the stream of tokens. Sequence i reads tokens [i * L, (i + 1) * L + 1): L inputs, and as targets the
// same tokens shifted by one. So every target of the stream counts once.
class StreamSequences final : public SequenceReader {
 public:
  // With `by_document` segment ids number the documents within a sequence, from 0. Without it they are all 0.
  StreamSequences(std::shared_ptr<const data::TokenStore> store, data::Split split, int64_t seq_len,
                  bool by_document);

  int64_t sequences(bool whole) const override;
  Status read(int64_t sequence, Batch& batch, int64_t row) const override;
  Result<std::vector<DocumentSpan>> documents(int64_t sequence) const override;
  Result<std::vector<RowPart>> parts_of(int64_t row) const override;

 private:
  int64_t count(int64_t sequence) const;  // targets of that sequence

  bool by_document_;
};

}  // namespace ostro::batches
