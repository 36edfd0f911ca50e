// Rows of .parquet files: parquet_rows.cc with Apache Arrow, no_parquet.cc without.
#pragma once

#include "ostro/data/row_reader.h"

namespace ostro::data {

// As open_rows. Strings, lists and structs become JSON as their Python values would with json.dumps.
Result<std::unique_ptr<RowReader>> open_parquet_rows(io::FileSystem& fs, const std::string& path,
                                                     const RowOptions& options, int64_t skip_rows);
// What is wrong with a row of more than `limit` bytes.
std::string row_too_long(int64_t bytes, int64_t limit);

}  // namespace ostro::data
