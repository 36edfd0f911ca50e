#include "ostro/train/step/data_difference.h"

#include <fmt/format.h>

#include <map>

#include "ostro/data/ledger/ledger.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::train {
namespace {

// By SHA-256 of the content, the file's path.
using Contents = std::map<std::string, std::string>;

Result<Contents> run_contents(io::FileSystem& fs, const std::string& path, const std::string& component) {
  constexpr int64_t kLimit = int64_t{64} << 20;
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kLimit));
  ASSIGN_OR_RETURN(const nlohmann::json root, io::parse_json(text, path));
  ASSIGN_OR_RETURN(const nlohmann::json* parts, io::JsonFields(root, path).array("data"));
  for (const nlohmann::json& part : *parts) {
    const io::JsonFields fields(part, path);
    ASSIGN_OR_RETURN(const std::string name, fields.string("component"));
    if (name != component) continue;
    Contents out;
    ASSIGN_OR_RETURN(const nlohmann::json* files, fields.array("files"));
    for (const nlohmann::json& file : *files) {
      const io::JsonFields one(file, path);
      ASSIGN_OR_RETURN(const std::string sha256, one.string("sha256"));
      ASSIGN_OR_RETURN(out[sha256], one.string("file"));
    }
    return out;
  }
  return not_found("no such component");
}

// "a.txt" or "a.txt and 2 more" of those that `others` lack; empty if there are none.
std::string only_in(const Contents& contents, const Contents& others) {
  std::string first;
  size_t more = 0;
  for (const auto& [sha256, path] : contents) {
    if (others.contains(sha256)) continue;
    if (first.empty())
      first = fmt::format("{} (SHA-256 {})", path, sha256);
    else
      ++more;
  }
  return more == 0 ? first : fmt::format("{} and {} more", first, more);
}

}  // namespace

std::string data_difference(io::FileSystem& fs, const std::string& run_directory,
                            const batches::DataSet& stores) {
  std::string out;
  for (const batches::DataSet::Part& part : stores.parts()) {
    if (part.fs == nullptr) continue;
    const auto had = run_contents(fs, io::join_path(run_directory, kReportFile), part.component.name);
    const auto ledger = data::read_ledger(*part.fs, part.folder);
    if (!had.ok() || !ledger.ok()) continue;
    Contents has;
    for (const data::FileLedger& file : ledger->files) has[file.sha256] = file.source.path;
    const std::string of = part.component.name.empty() ? "" : fmt::format(" of {}", part.component.name);
    if (const std::string lacking = only_in(*had, has); !lacking.empty())
      out += fmt::format("; it lacks what the run read{} from {}", of, lacking);
    if (const std::string besides = only_in(has, *had); !besides.empty())
      out += fmt::format("; it has{} what the run did not read, from {}", of, besides);
  }
  return out;
}

}  // namespace ostro::train
