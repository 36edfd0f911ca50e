// EncodedUnit, UnitSource: encoded rows of one source file, in order, to be written to a store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/base/sha256.h"
#include "ostro/data/sources/source_files.h"

namespace ostro::prepare {

struct EncodedUnit {
  int64_t file = 0;            // index of the source
  int64_t documents_read = 0;  // in the unit, including skipped ones
  int64_t row_bytes = 0;       // byte of the unpacked file where the rows end; 0: not known
  // Where the rows lie in the stored file (RowReader::stored_bytes()).
  int64_t stored_begin = 0, stored_end = 0;
  bool ends_file = false;
  std::string file_sha256;  // set when the unit ends the file
  int64_t empty = 0, repaired = 0, no_loss = 0, skipped = 0;
  std::string first_skipped;  // the first malformed row that was skipped, and why
  struct Document {
    int64_t number = 0;
    data::Split split = data::Split::kTrain;
    int64_t bytes = 0;           // of text
    int64_t tokens = 0;          // with eos
    int64_t begin = 0, end = 0;  // in the unpacked file
    Sha256Digest hash{};         // hash_row(), if the store keeps it
  };
  std::vector<Document> documents;
  std::vector<uint32_t> tokens;  // of all documents, one after the other
  std::vector<float> weights;    // one for each token; empty where the store has none
};

// Where a build gets its units from, in order. Not thread-safe.
class UnitSource {
 public:
  virtual ~UnitSource() = default;
  // Sets `unit` to the next unit; returns false at the end. Errors: those of reading a source, and of a row
  // that cannot be encoded.
  virtual Result<bool> next(EncodedUnit& unit) = 0;
};

}  // namespace ostro::prepare
