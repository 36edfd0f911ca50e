// Where rows of a store stand in the files that it was built from, said so that anybody can read them again.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/data/store/token_store.h"

namespace ostro::data {

// The file and the row's number in it are in its RowSource.
struct RowPlace {
  // Bytes [begin, end) of the unpacked file hold the row; both 0: not known, or a .parquet.
  int64_t begin = 0, end = 0;
  // In a .parquet: the columns that the format reads; the row group and the row in that, both from 0 (-1: not
  // known); where the only column holds texts, the bytes of the row's, in UTF-8 (U+FFFD for what is not).
  std::vector<std::string> columns;
  int64_t row_group = -1, row_in_group = -1;
  int64_t cell_bytes = 0;
  // Not empty: why bytes, or row groups, are not known ("a.jsonl is not there any more").
  std::string unknown;

  bool has_bytes() const { return end > begin; }
};

// What the store itself knows.
RowPlace stored_place(const RowSource& row);

// Tells whether source files are what stores were built from, each hashed at most once. Not thread-safe;
// refers to the file system.
class SourceCheck {
 public:
  // A file with the size that it had, but another time, is hashed when it has at most so many bytes.
  explicit SourceCheck(io::FileSystem& fs, int64_t max_hashed = INT64_MAX)
      : fs_(fs), max_hashed_(max_hashed) {}
  // Why the file is not known to be what the store was built from; empty: it is.
  std::string difference(const FileLedger& was);

 private:
  io::FileSystem& fs_;
  const int64_t max_hashed_;
  std::map<std::string, Result<std::string>> hashes_;  // by path
};

// Files of this many bytes are hashed to name the place of a single row.
inline constexpr int64_t kHashedForOneRow = int64_t{64} << 20;

// The places of rows, in order, all of stores whose format reads `fields`. What a store does not keep is
// found in the source files, each of which is read once, up to the last row wanted (of a .parquet its
// footer). Files that changed since the store was built, are gone or cannot be read make places unknown, and
// nothing else: the rows are in the store.
std::vector<RowPlace> find_rows(io::FileSystem& fs, std::span<const RowSource> rows,
                                const std::vector<RowField>& fields, SourceCheck& files);

}  // namespace ostro::data
