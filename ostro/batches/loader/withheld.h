// Withheld: the documents that data.without takes out of training (docs/spec/batches.md, "Documents left
// out"). Immutable, so threads may share one.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "ostro/batches/loader/data_set.h"
#include "ostro/batches/packing/sequence_reader.h"

namespace ostro::batches {

class Withheld {
 public:
  // No document.
  Withheld() = default;
  // The documents of the options, found in the stores. `readers`: the training sequences of each component.
  // Errors (of data.without): a document that no component has, or that is held out; those of reading.
  static Result<Withheld> create(const DataSet& stores, const data::DataOptions& options,
                                 const std::vector<std::shared_ptr<const SequenceReader>>& readers);

  // True if a sequence holds a token of one of the documents, or has one as a target.
  bool touches(size_t component, int64_t sequence) const;
  // Takes the documents out of row `row` of a batch, which holds this sequence as it was read.
  void apply(size_t component, int64_t sequence, Batch& batch, int64_t row) const;

 private:
  std::vector<std::map<int64_t, std::vector<RowPart>>> parts_;  // by component and sequence
  bool blank_ = false;
};

}  // namespace ostro::batches
