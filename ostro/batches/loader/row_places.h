// find_rows: finds the places of rows of a store in the source files, exactly enough to read them again with
// other tools.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/data/store/token_store.h"

namespace ostro::batches {

// The place of a row within its file. The file and the row's number are in RowSource.
struct RowPlace {
  // The row is bytes [begin, end) of the unpacked file. Both 0: not known, or the file is a .parquet.
  int64_t begin = 0, end = 0;
  // For a .parquet: the columns that the format reads; the row group, and the row within it, both from 0 (-1:
  // not known). Where there is a single column and it holds texts, `cell_bytes` is the size of this row's
  // text in UTF-8 (with U+FFFD for bytes that are not valid).
  std::vector<std::string> columns;
  int64_t row_group = -1, row_in_group = -1;
  int64_t cell_bytes = 0;
  // Of a row that was made from a page (the step extract of a lab): the page, its bytes [page_begin,
  // page_end) in it, and their SHA-256. Empty and 0 for other rows.
  std::string page, page_sha256;
  int64_t page_begin = 0, page_end = 0;
  // The reason why bytes or row groups are not known, e.g. "a.jsonl is not there any more". Empty otherwise.
  std::string unknown;

  bool has_bytes() const { return end > begin; }
};

// The place as far as the store itself knows it.
RowPlace stored_place(const data::RowSource& row);

// Tells whether source files are still the ones that a store was built from. Hashes each file at most once.
// Not thread-safe. The file system must outlive it.
class SourceCheck {
 public:
  // A file with the recorded size but another modification time is hashed, if it has at most `max_hashed`
  // bytes.
  explicit SourceCheck(io::FileSystem& fs, int64_t max_hashed = INT64_MAX)
      : fs_(fs), max_hashed_(max_hashed) {}
  // The reason why the file is not the one that the store was built from. Empty when it is that file.
  std::string difference(const data::FileLedger& was);

 private:
  io::FileSystem& fs_;
  const int64_t max_hashed_;
  std::map<std::string, Result<std::string>> hashes_;  // by path
};

// Limit for SourceCheck where the place of only one row is wanted: larger files are not hashed for that.
inline constexpr int64_t kHashedForOneRow = int64_t{64} << 20;

// The places of `rows`, in the same order. All rows must be from stores whose format reads `fields`. Places
// that a store does not keep are found in the source files. Each file is read once, up to the last row
// wanted; of a .parquet only the footer is read. When a file changed since the store was built, is gone or
// cannot be read, its places become unknown. That is not an error, since the rows themselves are in the
// store.
std::vector<RowPlace> find_rows(io::FileSystem& fs, std::span<const data::RowSource> rows,
                                const std::vector<data::RowField>& fields, SourceCheck& files);

}  // namespace ostro::batches
