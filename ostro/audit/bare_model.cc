#include "ostro/audit/bare_model.h"

#include <fmt/format.h>

#include "ostro/io/files/path.h"

namespace ostro::audit {

Error no_run(io::FileSystem& fs, const std::string& path, Error error) {
  if (error.code() != ErrorCode::kNotFound) return error;
  const auto is_model = fs.exists(io::join_path(path, "config.json"));
  if (!is_model.ok() || !*is_model) return error;
  return not_found(fmt::format(
      "{} is a model without a record. With the directory of its run: ostro export --checkpoint RUN --to hf "
      "--out AGAIN, then compare AGAIN with {} (docs/guide/check_a_run.md)",
      path, path));
}

}  // namespace ostro::audit
