#include "ostro/experiment/journal/line_chain.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/base/failpoint.h"
#include "ostro/base/sha256.h"
#include "ostro/io/files/path.h"

namespace ostro::lab {
namespace {

constexpr const char* kPutBack =
    "Put back a copy, or begin anew (of a lab: move its folder away and run the plan again)";

}  // namespace

std::string line_hash(const std::string& previous, const std::string& entry) {
  return sha256_hex(previous + entry);
}

std::string line_text(const nlohmann::json& entry) {
  return entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<LineChain> LineChain::open(io::FileSystem& fs, const std::string& path, const std::string& noun) {
  LineChain chain(fs, path);
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (exists) RETURN_IF_ERROR(chain.read(noun));
  return chain;
}

Status LineChain::read(const std::string& noun) {
  ASSIGN_OR_RETURN(const std::string text, fs_->read_file(path_));
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      torn_bytes_ = static_cast<int64_t>(text.size() - begin);
      break;
    }
    const std::string line = text.substr(begin, end - begin);
    const std::string where = fmt::format("{}: line {}", path_, lines_.size() + 1);
    auto entry = nlohmann::json::parse(line, nullptr, false);
    // A text that is no UTF-8 is in no canonical form, either.
    if (entry.is_discarded() || !entry.is_object() || line_text(entry) != line || !entry.contains("h") ||
        !entry["h"].is_string())
      return corrupt(fmt::format("{}: is no line of a {}. {}", where, noun, kPutBack));
    const std::string hash = entry["h"];
    entry.erase("h");
    HashedLine taken{line_text(entry), hash};
    if (line_hash(head(), taken.entry) != hash)
      return corrupt(
          fmt::format("{}: its hash \"h\" is wrong: this line was altered, or one is missing before it. {}",
                      where, kPutBack));
    lines_.push_back(std::move(taken));
    begin = end + 1;
    bytes_ = static_cast<int64_t>(begin);
  }
  return {};
}

Status LineChain::append(const nlohmann::json& entry) {
  if (torn_bytes_ > 0) {
    RETURN_IF_ERROR(fs_->truncate(path_, bytes_));
    torn_bytes_ = 0;
  }
  HashedLine added{line_text(entry), ""};
  added.hash = line_hash(head(), added.entry);
  nlohmann::json with_hash = entry;
  with_hash["h"] = added.hash;
  const std::string line = line_text(with_hash) + "\n";
  ASSIGN_OR_RETURN(const auto file, fs_->open_append(path_));
  Status written = file->append(std::string_view(line).substr(0, line.size() / 2));
  if (written.ok()) {
    failpoint("journal_append");
    written = file->append(std::string_view(line).substr(line.size() / 2));
  }
  if (written.ok()) written = file->sync();
  if (written.ok() && lines_.empty()) written = fs_->sync_dir(io::parent_path(path_));  // the file is new
  if (!written.ok()) {
    static_cast<void>(fs_->truncate(path_, bytes_));  // readers take what is left for torn
    return written;
  }
  bytes_ += static_cast<int64_t>(line.size());
  lines_.push_back(std::move(added));
  return {};
}

}  // namespace ostro::lab
