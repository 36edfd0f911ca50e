#include "ostro/data/journal.h"

#include <fmt/core.h>

#include <charconv>

#include "ostro/data/ledger_json.h"
#include "ostro/io/atomic_file.h"
#include "ostro/io/crc32c.h"
#include "ostro/io/path.h"

namespace ostro::data {
namespace {

constexpr const char* kFormat = "ostro token store journal 1";

std::string line_of(const Json& json) {
  const std::string text = canonical(json);
  return fmt::format("{:08x} {}\n", io::crc32c(std::as_bytes(std::span(text))), text);
}

// The JSON of a line without its "\n", or a discarded value when it is not whole.
Json parse_line(std::string_view line) {
  const Json bad(nlohmann::detail::value_t::discarded);
  if (line.size() < 9 || line[8] != ' ') return bad;
  uint32_t crc = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + 8, crc, 16);
  const std::string_view text = line.substr(9);
  if (parsed.ptr != line.data() + 8 || crc != io::crc32c(std::as_bytes(std::span(text)))) return bad;
  return Json::parse(text, nullptr, false);
}

Result<Sha256Digest> digest_of(const std::string& hex, const std::string& where) {
  Sha256Digest digest{};
  if (hex.size() != 64) return corrupt(fmt::format("{}: not a SHA-256", where));
  for (size_t i = 0; i < digest.size(); ++i) {
    const char* at = hex.data() + 2 * i;
    if (std::from_chars(at, at + 2, digest[i], 16).ptr != at + 2)
      return corrupt(fmt::format("{}: not a SHA-256", where));
  }
  return digest;
}

Json array_json(const ArrayWriter::Position& position, std::span<const ChunkSum> new_sums) {
  Json sums = Json::array();
  for (const ChunkSum& sum : new_sums)
    sums.push_back({{"sha256", to_hex(sum.sha256)}, {"crc32c", sum.crc32c}, {"last", sum.last}});
  return {{"elements", position.zarr.elements},
          {"shard_bytes", position.zarr.shard_bytes},
          {"tail_crc32c", position.tail_crc32c},
          {"sums", std::move(sums)}};
}

Status read_array(const io::JsonFields& fields, ArrayWriter::Position& position,
                  std::vector<ChunkSum>& sums) {
  ASSIGN_OR_RETURN(position.zarr.elements, fields.integer("elements", 0, INT64_MAX));
  ASSIGN_OR_RETURN(position.zarr.shard_bytes, fields.integer("shard_bytes", 0, INT64_MAX));
  ASSIGN_OR_RETURN(const int64_t tail, fields.integer("tail_crc32c", 0, UINT32_MAX));
  position.tail_crc32c = static_cast<uint32_t>(tail);
  ASSIGN_OR_RETURN(const Json* list, fields.array("sums"));
  for (const Json& item : *list) {
    const io::JsonFields entry(item, fields.where() + ": sums");
    ChunkSum sum;
    ASSIGN_OR_RETURN(const std::string hex, entry.string("sha256"));
    ASSIGN_OR_RETURN(sum.sha256, digest_of(hex, entry.where()));
    ASSIGN_OR_RETURN(const int64_t crc, entry.integer("crc32c", 0, UINT32_MAX));
    sum.crc32c = static_cast<uint32_t>(crc);
    ASSIGN_OR_RETURN(sum.last, entry.integer("last", INT64_MIN, INT64_MAX));
    sums.push_back(sum);
  }
  return {};
}

Status apply_commit(const io::JsonFields& fields, const std::vector<SourceFile>& sources, BuildState& state) {
  const auto source_count = static_cast<int64_t>(sources.size());
  ASSIGN_OR_RETURN(state.file, fields.integer("file", 0, source_count));
  ASSIGN_OR_RETURN(state.documents, fields.integer("documents", 0, INT64_MAX));
  ASSIGN_OR_RETURN(state.encoded, fields.boolean("encoded"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> bytes, fields.integers("bytes", 0, INT64_MAX));
  if (bytes.size() != 2) return fields.bad("bytes", "is not a pair");
  state.bytes = {bytes[0], bytes[1]};
  ASSIGN_OR_RETURN(const Json* files, fields.array("files"));
  for (const Json& item : *files) {
    if (state.files.size() >= sources.size()) return fields.bad("files", "are more than the sources");
    FileLedger file;
    file.source = sources[state.files.size()];
    RETURN_IF_ERROR(read_file_content(io::JsonFields(item, fields.where() + ": files"), file));
    state.files.push_back(std::move(file));
  }
  if (static_cast<int64_t>(state.files.size()) != state.file)
    return fields.bad("files", "are not those before \"file\"");
  ASSIGN_OR_RETURN(const io::JsonFields current, fields.object("current"));
  state.current = {};
  RETURN_IF_ERROR(read_file_content(current, state.current));
  ASSIGN_OR_RETURN(const io::JsonFields arrays, fields.object("arrays"));
  for (const Split split : kSplits)
    for (const ArrayId id : kArrays) {
      const std::string name = io::join_path(split_name(split), array_path(id));
      ASSIGN_OR_RETURN(const io::JsonFields array, arrays.object(name));
      const auto s = static_cast<size_t>(split), a = static_cast<size_t>(id);
      RETURN_IF_ERROR(read_array(array, state.positions[s][a], state.sums[s][a]));
    }
  return {};
}

Status read_header(const Json& json, const std::string& where, Journal::Found& found) {
  const io::JsonFields fields(json, where);
  ASSIGN_OR_RETURN(const std::string format, fields.string("format"));
  if (format != kFormat)
    return unsupported(
        fmt::format("{}: \"format\" is \"{}\"; this program reads \"{}\"", where, format, kFormat));
  ASSIGN_OR_RETURN(const io::JsonFields preprocessing, fields.object("preprocessing"));
  ASSIGN_OR_RETURN(found.preprocessing, read_preprocessing(preprocessing));
  ASSIGN_OR_RETURN(const Json* sources, fields.array("sources"));
  for (const Json& item : *sources) {
    ASSIGN_OR_RETURN(SourceFile source, read_source(io::JsonFields(item, where + ": sources")));
    found.sources.push_back(std::move(source));
  }
  return {};
}

}  // namespace

std::string Journal::path(const std::string& cache_dir) { return io::join_path(cache_dir, "journal.jsonl"); }

Result<Journal> Journal::create(io::FileSystem& fs, const std::string& cache_dir,
                                const Preprocessing& preprocessing, const std::vector<SourceFile>& sources) {
  Json list = Json::array();
  for (const SourceFile& source : sources) list.push_back(source_json(source));
  const Json header = {{"format", kFormat},
                       {"preprocessing", preprocessing_json(preprocessing)},
                       {"sources", std::move(list)}};
  RETURN_IF_ERROR(io::write_file_atomically(fs, path(cache_dir), line_of(header)));
  ASSIGN_OR_RETURN(auto file, fs.open_append(path(cache_dir)));
  return Journal(std::move(file));
}

Result<Journal::Found> Journal::read(io::FileSystem& fs, const std::string& cache_dir) {
  const std::string name = path(cache_dir);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(name, int64_t{1} << 33));
  Found found;
  for (int64_t number = 1;; ++number) {
    const auto begin = static_cast<size_t>(found.good_bytes);
    const size_t end = text.find('\n', begin);
    const Json json = end == std::string::npos
                          ? Json(nlohmann::detail::value_t::discarded)
                          : parse_line(std::string_view(text).substr(begin, end - begin));
    const std::string where = fmt::format("{}:{}", name, number);
    if (json.is_discarded()) {
      if (number == 1) return corrupt(fmt::format("{}: damaged", where));
      return found;
    }
    if (number == 1) {
      RETURN_IF_ERROR(read_header(json, where, found));
    } else {
      RETURN_IF_ERROR(apply_commit(io::JsonFields(json, where), found.sources, found.state));
      found.has_commit = true;
    }
    found.good_bytes = static_cast<int64_t>(end) + 1;
  }
}

Result<Journal> Journal::reopen(io::FileSystem& fs, const std::string& cache_dir, const Found& found) {
  RETURN_IF_ERROR(fs.truncate(path(cache_dir), found.good_bytes));
  ASSIGN_OR_RETURN(auto file, fs.open_append(path(cache_dir)));
  Journal journal(std::move(file));
  journal.files_ = found.state.files.size();
  for (size_t s = 0; s < 2; ++s)
    for (size_t a = 0; a < 4; ++a) journal.sums_[s][a] = found.state.sums[s][a].size();
  return journal;
}

Status Journal::append(const BuildState& state) {
  Json files = Json::array(), arrays = Json::object();
  for (; files_ < state.files.size(); ++files_) files.push_back(file_content_json(state.files[files_]));
  for (const Split split : kSplits)
    for (const ArrayId id : kArrays) {
      const auto s = static_cast<size_t>(split), a = static_cast<size_t>(id);
      const std::span<const ChunkSum> sums = state.sums[s][a];
      arrays[io::join_path(split_name(split), array_path(id))] =
          array_json(state.positions[s][a], sums.subspan(sums_[s][a]));
      sums_[s][a] = sums.size();
    }
  const Json json = {{"file", state.file},         {"documents", state.documents},
                     {"encoded", state.encoded},   {"bytes", state.bytes},
                     {"files", std::move(files)},  {"current", file_content_json(state.current)},
                     {"arrays", std::move(arrays)}};
  RETURN_IF_ERROR(file_->append(line_of(json)));
  return file_->sync();
}

}  // namespace ostro::data
