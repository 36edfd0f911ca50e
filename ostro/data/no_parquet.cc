// Refuses .parquet files by name: this build has no reader for them.
#include <fmt/core.h>

#include "ostro/data/parquet_rows.h"

namespace ostro::data {

Result<std::unique_ptr<RowReader>> open_parquet_rows(io::FileSystem&, const std::string& path,
                                                     const RowOptions&, int64_t) {
  return unsupported(
      fmt::format("{}: this build cannot read .parquet; write it as .jsonl or .jsonl.zst", path));
}

}  // namespace ostro::data
