// open_parquet_rows: reads the rows of .parquet files. parquet_rows.cc uses Apache Arrow; builds without
// Arrow have no_parquet.cc.
#pragma once

#include "ostro/data/sources/row_reader.h"

namespace ostro::data {

// The library that reads .parquet, with its version; empty in a build without one.
std::string parquet_reader();

// As open_rows. Strings, lists and structs become JSON as json.dumps writes their Python values.
Result<std::unique_ptr<RowReader>> open_parquet_rows(io::FileSystem& fs, const std::string& path,
                                                     const RowOptions& options, int64_t skip_rows);
// The number of rows of each row group of a file. kUnsupported in a build without Arrow.
Result<std::vector<int64_t>> parquet_row_groups(io::FileSystem& fs, const std::string& path);
// The Row::problem of a row of `bytes` bytes, which is more than `limit`.
std::string row_too_long(int64_t bytes, int64_t limit);

}  // namespace ostro::data
