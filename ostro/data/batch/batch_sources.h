// Where the sequences of a batch come from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ostro/data/batch/data_set.h"
#include "ostro/data/batch/row_places.h"
#include "ostro/data/packing/batch.h"
#include "ostro/data/packing/sequence_reader.h"

namespace ostro::data {

struct DocumentSource {
  DocumentSpan span;
  RowPlace place;
};

// Of a row of a batch.
struct SequenceSource {
  std::string component;                  // empty: the one data set of a configuration without components
  std::vector<DocumentSource> documents;  // none: padding
};

// The sequences that a batch of a component was read from: Loader::reader, EvalLoader::reader.
using ReaderOf = std::function<const SequenceReader&(size_t component)>;

// The sources of every row of a batch. `search`: what the stores do not keep is looked for in their source
// files (find_rows). Errors: stores that cannot be read.
Result<std::vector<SequenceSource>> batch_sources(io::FileSystem& fs, const Batch& batch, const DataSet& data,
                                                  const ReaderOf& reader_of, bool search);

}  // namespace ostro::data
