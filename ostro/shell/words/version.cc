#include "ostro/shell/words/version.h"

#include <fmt/core.h>

#include "ostro/chain/record.h"
#include "ostro/chain/version.h"
#include "ostro/data/sources/parquet_rows.h"

namespace ostro::cli {

std::string program_version() { return OSTRO_VERSION; }

std::string version_text() {
  const std::string parquet = data::parquet_reader();
  return fmt::format(
      "ostro {}\ncommit    {}\nnumerics  {}\nparquet   {}\n", program_version(), chain::source_commit(),
      chain::kNumericsVersion,
      parquet.empty() ? "left out: this build was made without Apache Arrow" : "read by " + parquet);
}

}  // namespace ostro::cli
