// batch_sources: finds the documents that the sequences of a batch come from. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ostro/batches/loader/data_set.h"
#include "ostro/batches/loader/row_places.h"
#include "ostro/batches/packing/batch.h"
#include "ostro/batches/packing/sequence_reader.h"

namespace ostro::batches {

struct DocumentSource {
  DocumentSpan span;
  RowPlace place;
};

// The source of one row of a batch.
struct SequenceSource {
  std::string component;                  // empty: the one data set of a configuration without components
  std::vector<DocumentSource> documents;  // none: padding
};

// Gives the reader that a component's sequences were read from: Loader::reader or EvalLoader::reader.
using ReaderOf = std::function<const SequenceReader&(size_t component)>;

// The sources of every row of a batch. With `search`, places that the stores do not keep are looked up in the
// source files (find_rows). Errors: stores that cannot be read.
Result<std::vector<SequenceSource>> batch_sources(io::FileSystem& fs, const Batch& batch, const DataSet& data,
                                                  const ReaderOf& reader_of, bool search);

}  // namespace ostro::batches
