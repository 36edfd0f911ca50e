#include "ostro/data/ledger_file.h"

#include <fmt/core.h>

#include "ostro/base/sha256.h"
#include "ostro/data/ledger_json.h"
#include "ostro/io/json_slices.h"

namespace ostro::data {
namespace {

// Formats 1 (the one-source form) and 2 (components) held the sums of all chunks; they are read, not written.
constexpr const char *kFormat1 = "ostro token store 1", *kFormat2 = "ostro token store 2";

const char* old_format_of(const StoreLedger& ledger) {
  return ledger.preprocessing.is_component() || !ledger.levanter_cache.empty() ? kFormat2 : kFormat1;
}

Status check_format(const io::JsonFields& all) {
  ASSIGN_OR_RETURN(const std::string format, all.string("format"));
  if (format == kFormat1 || format == kFormat2 || format == kLedgerFormat) return {};
  return unsupported(fmt::format("{}: \"format\" is \"{}\"; this program reads \"{}\", \"{}\" and \"{}\"",
                                 all.where(), format, kFormat1, kFormat2, kLedgerFormat));
}

Status read_type(const io::JsonFields& fields, const char* key, ElementType& type) {
  ASSIGN_OR_RETURN(const std::string name, fields.string(key));
  const std::optional<ElementType> known = parse_element(name);
  if (!known) return fields.bad(key, "is not a type of elements");
  type = *known;
  return {};
}

// The type and sums of an array in formats 1 and 2.
Status read_sums(const io::JsonFields& sums, const ArrayPlace& place, ArrayLedger& array) {
  if (sums.has("type")) RETURN_IF_ERROR(read_type(sums, "type", array.type));
  ASSIGN_OR_RETURN(const std::vector<int64_t> crcs, sums.integers("crc32c", 0, UINT32_MAX));
  for (const int64_t crc : crcs) array.crc32c.push_back(static_cast<uint32_t>(crc));
  if (static_cast<int64_t>(crcs.size()) != array.chunks())
    return sums.bad("crc32c", fmt::format("has {} entries for {} chunks", crcs.size(), array.chunks()));
  if (place.id != ArrayId::kOffsets) return {};
  ASSIGN_OR_RETURN(array.last, sums.integers("last", 0, kMaxCount));
  if (static_cast<int64_t>(array.last.size()) != array.chunks())
    return sums.bad("last", fmt::format("has {} entries for {} chunks", array.last.size(), array.chunks()));
  return {};
}

// `types`: of a split, type or sums by array.
Status read_array(const io::JsonFields& content, const io::JsonFields& types, bool has_sums,
                  const ArrayPlace& place, ArrayLedger& array) {
  ASSIGN_OR_RETURN(const io::JsonFields fields, content.object(place.path));
  ASSIGN_OR_RETURN(array.elements, fields.integer("elements", 0, kMaxCount));
  ASSIGN_OR_RETURN(array.chunk, fields.integer("chunk", 2, int64_t{1} << 27));
  ASSIGN_OR_RETURN(array.sha256, read_sha256(fields, "sha256"));
  if (has_sums) {
    ASSIGN_OR_RETURN(const io::JsonFields sums, types.object(place.path));
    RETURN_IF_ERROR(read_sums(sums, place, array));
  } else {
    RETURN_IF_ERROR(read_type(types, place.path.c_str(), array.type));
  }
  if (place.id == ArrayId::kOffsets && array.type != ElementType::kInt64)
    return content.bad(place.path, "is not of int64");
  if (place.id != ArrayId::kWeights && !is_integer(array.type))
    return content.bad(place.path, "is not of integers");
  return {};
}

// How many elements an array must have; -1: that is not told by the split's counts.
int64_t expected_elements(ArrayId id, const SplitLedger& split, WeightKind weights) {
  switch (id) {
    case ArrayId::kData:
      return split.tokens;
    case ArrayId::kOffsets:
    case ArrayId::kWeightOffsets:
      return split.rows + 1;
    case ArrayId::kRowHash:
      return split.rows > INT64_MAX / 32 ? -1 : 32 * split.rows;
    case ArrayId::kWeights:
      return weights == WeightKind::kSourcesLen ? split.rows : split.tokens;
    case ArrayId::kDocument:
    case ArrayId::kBytes:
    case ArrayId::kBegin:
    case ArrayId::kEnd:
      break;
  }
  return split.rows;
}

Status read_split(const io::JsonFields& fields, const io::JsonFields& types, const StoreLedger& ledger,
                  SplitLedger& split) {
  ASSIGN_OR_RETURN(split.rows, fields.integer("rows", 0, kMaxCount - 1));
  ASSIGN_OR_RETURN(split.tokens, fields.integer("tokens", 0, kMaxCount));
  ASSIGN_OR_RETURN(split.bytes, fields.integer("bytes", 0, kMaxCount));
  ASSIGN_OR_RETURN(const io::JsonFields arrays, fields.object("arrays"));
  for (const ArrayPlace& place : ledger.places()) {
    ArrayLedger& array = split.array(place.id);
    RETURN_IF_ERROR(read_array(arrays, types, ledger.has_sums, place, array));
    // A Levanter cache may lack a split.
    const bool absent = !ledger.levanter_cache.empty() && split.rows == 0 && array.elements == 0;
    if (!absent && array.elements != expected_elements(place.id, split, ledger.preprocessing.fields.weights))
      return arrays.bad(place.path,
                        fmt::format("has {} elements, which does not fit the split's {} rows and {} "
                                    "tokens",
                                    array.elements, split.rows, split.tokens));
  }
  return {};
}

// The text without its member "sha256" if it is canonical and has that checksum; else nothing.
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

// The same, taken apart and put together again, for a file that somebody formatted, and for what to say of
// one that is damaged.
Result<std::string> without_checksum_slowly(const std::string& text, const std::string& path) {
  ASSIGN_OR_RETURN(Json json, io::parse_json(text, path));
  const io::JsonFields all(json, path);
  RETURN_IF_ERROR(check_format(all));
  ASSIGN_OR_RETURN(const std::string checksum, read_sha256(all, "sha256"));
  json.erase("sha256");
  std::string rest = canonical(json);
  if (const std::string actual = sha256_hex(rest); actual != checksum)
    return corrupt(fmt::format("{}: \"sha256\" is {}, but the content has {}: the file is damaged", path,
                               checksum, actual));
  return rest;
}

// `text` with an empty list in place of a list that is a part of it.
std::string with_empty_list(std::string_view text, std::string_view list) {
  const auto at = static_cast<size_t>(list.data() - text.data());
  return fmt::format("{}[]{}", text.substr(0, at), text.substr(at + list.size()));
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
  const auto members = io::json_slices(*rest);
  if (!members) return corrupt(fmt::format("{}: not a JSON object", path_));
  const std::string_view content = io::json_slice(*members, "content"),
                         sources = io::json_slice(*members, "sources");
  const auto content_members = io::json_slices(content);
  if (!content_members) return corrupt(fmt::format("{}: \"content\" is not a JSON object", path_));
  hash_ = sha256_hex(content);
  std::string head = *rest;
  if (io::json_slice(*members, "levanter_cache").empty()) {
    const std::string_view files = io::json_slice(*content_members, "files");
    if (!files.starts_with('[') || !sources.starts_with('[') || files.data() > sources.data())
      return corrupt(fmt::format("{}: \"files\" or \"sources\" is not a list, or not in its place", path_));
    files_text_ = files;
    sources_text_ = sources;
    // The one that stands later first: it does not move the other.
    head = with_empty_list(*rest, sources);
    const auto at = static_cast<size_t>(files.data() - rest->data());
    head = with_empty_list(head, std::string_view(head).substr(at, files.size()));
  }
  return read_head(head);
}

Status LedgerFile::read_head(const std::string& text) {
  ASSIGN_OR_RETURN(const Json json, io::parse_json(text, path_));
  const io::JsonFields all(json, path_);
  RETURN_IF_ERROR(check_format(all));
  ASSIGN_OR_RETURN(const std::string format, all.string("format"));
  head_.has_files = false;
  head_.has_sums = format != kLedgerFormat;
  ASSIGN_OR_RETURN(const io::JsonFields content, all.object("content"));
  ASSIGN_OR_RETURN(const io::JsonFields types, all.object(head_.has_sums ? "chunks" : "types"));
  if (all.has("levanter_cache")) {
    ASSIGN_OR_RETURN(head_.levanter_cache, all.string("levanter_cache"));
    if (head_.levanter_cache.empty()) return all.bad("levanter_cache", "is empty");
  }
  ASSIGN_OR_RETURN(const io::JsonFields preprocessing,
                   (head_.levanter_cache.empty() ? content : all).object("preprocessing"));
  ASSIGN_OR_RETURN(head_.preprocessing, read_preprocessing(preprocessing));
  if (head_.has_sums && format != old_format_of(head_))
    return all.bad("format", "is not that of its content");
  ASSIGN_OR_RETURN(const io::JsonFields splits, content.object("splits"));
  for (const Split split : kSplits) {
    ASSIGN_OR_RETURN(const io::JsonFields fields, splits.object(split_name(split)));
    ASSIGN_OR_RETURN(const io::JsonFields own, types.object(split_name(split)));
    RETURN_IF_ERROR(read_split(fields, own, head_, head_.split(split)));
  }
  ASSIGN_OR_RETURN(const std::string hash, read_sha256(all, "hash"));
  if (hash != hash_) return all.bad("hash", "does not fit the content: the file is damaged");
  return {};
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
      ASSIGN_OR_RETURN(file.source,
                       read_source(io::JsonFields(sources[i], fmt::format("{}: sources[{}]", path_, i))));
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

void LedgerFile::drop_sums() {
  head_.has_sums = false;
  for (SplitLedger& split : head_.splits)
    for (ArrayLedger& array : split.arrays) {
      array.crc32c = {};
      array.last = {};
    }
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
