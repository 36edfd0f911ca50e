// PairSequences: the sequences of a store of preference pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ostro/batches/packing/sequence_reader.h"

namespace ostro::batches {

// Sequence i is row i: 2 L positions, of which the first L hold the beginning of the chosen text and the last
// L that of the rejected one, each filled up with padding. The loss mask is 1 for tokens of the answers. So a
// pair is never divided when a batch is cut into parts. Thread-safe.
class PairSequences final : public SequenceReader {
 public:
  // L is `text_len`, the length of a sequence of the model.
  PairSequences(std::shared_ptr<const data::TokenStore> store, data::Split split, int64_t text_len);

  int64_t sequences(bool whole) const override;
  // kCorrupt when the row does not hold two texts.
  Status read(int64_t sequence, Batch& batch, int64_t row) const override;
  // The chosen text, then the rejected one.
  Result<std::vector<DocumentSpan>> documents(int64_t sequence) const override;
  Result<std::vector<RowPart>> parts_of(int64_t row) const override;
  // Counts pairs of which a text is cut. Reads the rows that are long enough for that.
  Result<PackCounts> packing() const override;

 private:
  struct Pair {
    std::vector<int32_t> ids;
    std::vector<float> parts;
    int64_t rejected = 0;  // its first token
    // The tokens [begin, end) of a text.
    std::pair<int64_t, int64_t> text(int64_t side) const {
      return side == 0 ? std::pair{int64_t{0}, rejected}
                       : std::pair{rejected, static_cast<int64_t>(ids.size())};
    }
  };
  Result<Pair> pair(int64_t sequence) const;
  void count_cut(const Pair& pair, PackCounts& counts) const;
  // Targets of a text of so many tokens that are in the sequence.
  int64_t targets(const std::pair<int64_t, int64_t>& text) const;

  int64_t text_len_;
};

}  // namespace ostro::batches
