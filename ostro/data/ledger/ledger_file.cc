#include "ostro/data/ledger/ledger_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "ostro/base/sha256.h"
#include "ostro/data/ledger/ledger_head.h"
#include "ostro/data/ledger/ledger_json.h"
#include "ostro/io/json/json_slices.h"

namespace ostro::data {
namespace {

// Fast path for files as a build wrote them: the text without its member "sha256", if that is the right
// checksum. Nothing otherwise.
std::optional<std::string> without_checksum(std::string_view text) {
  const auto members = io::json_slices(text);
  if (!members) return std::nullopt;
  const std::string_view sum = io::json_slice(*members, "sha256");
  constexpr std::string_view kBefore = ",\"sha256\":";
  if (sum.size() != 66) return std::nullopt;
  const auto at = static_cast<size_t>(sum.data() - text.data());
  if (at < kBefore.size() || text.substr(at - kBefore.size(), kBefore.size()) != kBefore) return std::nullopt;
  std::string rest(text.substr(0, at - kBefore.size()));
  rest += text.substr(at + sum.size());
  if (sha256_hex(rest) != sum.substr(1, 64)) return std::nullopt;
  return rest;
}

// Slow path, for a file that was reformatted, and for the error when it is damaged: the canonical JSON
// without its member "sha256", which must be the checksum of that.
Result<std::string> without_checksum_slowly(const std::string& text, const std::string& path) {
  ASSIGN_OR_RETURN(Json json, io::parse_json(text, path));
  const io::JsonFields all(json, path);
  ASSIGN_OR_RETURN(const std::string format, all.string("format"));
  RETURN_IF_ERROR(check_ledger_format(format, path));
  ASSIGN_OR_RETURN(const std::string checksum, all.sha256("sha256"));
  json.erase("sha256");
  std::string rest = canonical(json);
  if (const std::string actual = sha256_hex(rest); actual != checksum)
    return corrupt(fmt::format("{}: \"sha256\" is {}, but the content has {}: the file is damaged", path,
                               checksum, actual));
  return rest;
}

// Replaces `list`, which is a part of `text`, by an empty list.
std::string with_empty_list(std::string_view text, std::string_view list) {
  const auto at = static_cast<size_t>(list.data() - text.data());
  return fmt::format("{}[]{}", text.substr(0, at), text.substr(at + list.size()));
}

// The members of an object. `what` is its name in errors.
Result<std::vector<io::JsonSlice>> members_of(std::string_view text, const std::string& what) {
  auto members = io::json_slices(text);
  if (members) return std::move(*members);
  return corrupt(
      fmt::format("{} is not a JSON object whose keys stand there once and without escapes", what));
}

// kCorrupt unless writing the parsed values again gives exactly `content` (which has an empty list of files).
// So the values that are used are all, and only, those that the hash was computed from.
Status check_content(std::string_view content, const StoreLedger& head, const std::string& path) {
  const std::string expected = canonical(content_json(head));
  if (content == expected) return {};
  const auto at = static_cast<size_t>(
      std::mismatch(content.begin(), content.end(), expected.begin(), expected.end()).first -
      content.begin());
  const size_t begin = at - std::min<size_t>(at, 30), count = at - begin + 30;
  return corrupt(fmt::format("{}: \"content\" has {} where a build writes {}: the file is damaged", path,
                             content.substr(begin, count), expected.substr(begin, count)));
}

}  // namespace

Result<std::shared_ptr<LedgerFile>> LedgerFile::open(io::FileSystem& fs, const std::string& cache_dir) {
  const std::shared_ptr<LedgerFile> file(new LedgerFile());
  file->path_ = ledger_path(cache_dir);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(file->path_, int64_t{1} << 32));
  RETURN_IF_ERROR(file->parse(text));
  return file;
}

Status LedgerFile::parse(const std::string& text) {
  const std::string_view line =
      text.ends_with('\n') ? std::string_view(text).substr(0, text.size() - 1) : text;
  std::optional<std::string> rest = without_checksum(line);
  if (!rest) {
    ASSIGN_OR_RETURN(rest, without_checksum_slowly(text, path_));
  }
  ASSIGN_OR_RETURN(const auto members, members_of(*rest, path_));
  // Check the format first, since another format may have other members.
  const std::string_view format = io::json_slice(members, "format");
  if (format.size() < 2 || format.front() != '"')
    return corrupt(fmt::format("{}: \"format\" is not a string", path_));
  RETURN_IF_ERROR(check_ledger_format(std::string(format.substr(1, format.size() - 2)), path_));
  const std::string_view content = io::json_slice(members, "content"),
                         sources = io::json_slice(members, "sources");
  ASSIGN_OR_RETURN(const auto content_members, members_of(content, path_ + ": \"content\""));
  hash_ = sha256_hex(content);
  std::string head = *rest, content_head(content);
  if (io::json_slice(members, "levanter_cache").empty()) {
    const std::string_view files = io::json_slice(content_members, "files");
    if (!files.starts_with('[') || !sources.starts_with('[') || files.data() > sources.data())
      return corrupt(fmt::format("{}: \"files\" or \"sources\" is not a list, or not in its place", path_));
    files_text_ = files;
    sources_text_ = sources;
    content_head = with_empty_list(content, files);
    // Replace the later list first, because that does not move the other one.
    head = with_empty_list(*rest, sources);
    const auto at = static_cast<size_t>(files.data() - rest->data());
    head = with_empty_list(head, std::string_view(head).substr(at, files.size()));
  }
  if (io::json_slice(members, "hash") != '"' + hash_ + '"')
    return corrupt(fmt::format("{}: \"hash\" does not fit the content: the file is damaged", path_));
  ASSIGN_OR_RETURN(head_, read_ledger_head(head, path_));
  return check_content(content_head, head_, path_);
}

Result<const LedgerFile::Files*> LedgerFile::files() const {
  const std::lock_guard lock(mutex_);
  if (files_ != nullptr) return files_.get();
  StoreLedger whole = head_;
  whole.has_files = true;
  if (!files_text_.empty()) {
    ASSIGN_OR_RETURN(const Json files, io::parse_json(files_text_, path_));
    ASSIGN_OR_RETURN(const Json sources, io::parse_json(sources_text_, path_));
    if (files.size() != sources.size())
      return corrupt(fmt::format("{}: \"sources\" does not match \"files\"", path_));
    for (size_t i = 0; i < files.size(); ++i) {
      FileLedger file;
      const io::JsonFields source(sources[i], fmt::format("{}: sources[{}]", path_, i));
      ASSIGN_OR_RETURN(file.source, read_source(source));
      RETURN_IF_ERROR(read_left_out(source, file));
      RETURN_IF_ERROR(
          read_file_content(io::JsonFields(files[i], fmt::format("{}: files[{}]", path_, i)), file));
      whole.files.push_back(std::move(file));
    }
  }
  if (hash_ != whole.hash())
    return corrupt(
        fmt::format("{}: \"hash\" does not fit \"files\" and \"sources\": the file is damaged", path_));
  auto out = std::make_unique<Files>();
  out->list = std::move(whole.files);
  for (size_t split = 0; split < 2; ++split) {
    int64_t row = 0;
    for (const FileLedger& file : out->list) out->row_ends[split].push_back(row += file.rows[split]);
  }
  files_ = std::move(out);
  return files_.get();
}

Result<StoreLedger> read_ledger(io::FileSystem& fs, const std::string& cache_dir) {
  ASSIGN_OR_RETURN(const auto file, LedgerFile::open(fs, cache_dir));
  ASSIGN_OR_RETURN(const LedgerFile::Files* files, file->files());
  StoreLedger ledger = file->head();
  ledger.files = files->list;
  ledger.has_files = true;
  return ledger;
}

}  // namespace ostro::data
