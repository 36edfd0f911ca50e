// Replaces parquet_rows.cc in a build without Apache Arrow.
#include <fmt/core.h>

#include "ostro/data/sources/parquet_rows.h"

namespace ostro::data {
namespace {

Error no_arrow(const std::string& path) {
  return unsupported(fmt::format(
      "{}: this build cannot read .parquet (ostro --version); use a released package, or install "
      "pyarrow (scripts/setup.sh --python), then configure and build again: cmake --preset release && "
      "scripts/build.sh",
      path));
}

}  // namespace

std::string parquet_reader() { return ""; }

Result<std::unique_ptr<RowReader>> open_parquet_rows(io::FileSystem&, const std::string& path,
                                                     const RowOptions&, int64_t) {
  return no_arrow(path);
}

Result<std::vector<int64_t>> parquet_row_groups(io::FileSystem&, const std::string& path) {
  return no_arrow(path);
}

}  // namespace ostro::data
