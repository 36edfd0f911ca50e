#include "ostro/prepare/store/journal.h"

#include <fmt/core.h>

#include <charconv>

#include "ostro/data/ledger/ledger_json.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/io/read/crc32c.h"

namespace ostro::prepare {
namespace {

// 1: for a configuration without components, 2: for a component.
constexpr const char *kJournal1 = "ostro token store journal 1", *kJournal2 = "ostro token store journal 2";

std::string line_of(const data::Json& json) {
  const std::string text = data::canonical(json);
  return fmt::format("{:08x} {}\n", io::crc32c(std::as_bytes(std::span(text))), text);
}

// Parses a line without its "\n". A discarded value when the line is not complete.
data::Json parse_line(std::string_view line) {
  const data::Json bad(nlohmann::detail::value_t::discarded);
  if (line.size() < 9 || line[8] != ' ') return bad;
  uint32_t crc = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + 8, crc, 16);
  const std::string_view text = line.substr(9);
  if (parsed.ptr != line.data() + 8 || crc != io::crc32c(std::as_bytes(std::span(text)))) return bad;
  return data::Json::parse(text, nullptr, false);
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

data::Json array_json(const data::ArrayWriter::Position& position, std::span<const data::ChunkSum> new_sums) {
  data::Json sums = data::Json::array();
  for (const data::ChunkSum& sum : new_sums)
    sums.push_back({{"sha256", to_hex(sum.sha256)}, {"crc32c", sum.crc32c}, {"last", sum.last}});
  return {{"elements", position.zarr.elements},
          {"shard_bytes", position.zarr.shard_bytes},
          {"tail_crc32c", position.tail_crc32c},
          {"sums", std::move(sums)}};
}

Status read_array(const io::JsonFields& fields, data::ArrayWriter::Position& position,
                  std::vector<data::ChunkSum>& sums) {
  ASSIGN_OR_RETURN(position.zarr.elements, fields.integer("elements", 0, INT64_MAX));
  ASSIGN_OR_RETURN(position.zarr.shard_bytes, fields.integer("shard_bytes", 0, INT64_MAX));
  ASSIGN_OR_RETURN(const int64_t tail, fields.integer("tail_crc32c", 0, UINT32_MAX));
  position.tail_crc32c = static_cast<uint32_t>(tail);
  ASSIGN_OR_RETURN(const data::Json* list, fields.array("sums"));
  for (const data::Json& item : *list) {
    const io::JsonFields entry(item, fields.where() + ": sums");
    data::ChunkSum sum;
    ASSIGN_OR_RETURN(const std::string hex, entry.string("sha256"));
    ASSIGN_OR_RETURN(sum.sha256, digest_of(hex, entry.where()));
    ASSIGN_OR_RETURN(const int64_t crc, entry.integer("crc32c", 0, UINT32_MAX));
    sum.crc32c = static_cast<uint32_t>(crc);
    ASSIGN_OR_RETURN(sum.last, entry.integer("last", INT64_MIN, INT64_MAX));
    sums.push_back(sum);
  }
  return {};
}

std::vector<data::ArrayPlace> places_of(const data::Preprocessing& preprocessing) {
  return data::array_places(preprocessing.fields, preprocessing.row_arrays());
}

Status apply_commit(const io::JsonFields& fields, const Journal::Header& header, BuildState& state) {
  const std::vector<data::SourceFile>& sources = header.sources;
  const auto source_count = static_cast<int64_t>(sources.size());
  ASSIGN_OR_RETURN(state.file, fields.integer("file", 0, source_count));
  ASSIGN_OR_RETURN(state.documents, fields.integer("documents", 0, INT64_MAX));
  state.row_bytes = 0;
  if (fields.has("row_bytes")) {
    ASSIGN_OR_RETURN(state.row_bytes, fields.integer("row_bytes", 0, INT64_MAX));
  }
  if (fields.has("first_offsets")) {
    ASSIGN_OR_RETURN(const std::vector<int64_t> first, fields.integers("first_offsets", 0, INT64_MAX));
    if (first.size() != 2) return fields.bad("first_offsets", "is not a pair");
    state.first_offsets = {first[0], first[1]};
  }
  ASSIGN_OR_RETURN(state.encoded, fields.boolean("encoded"));
  ASSIGN_OR_RETURN(const std::vector<int64_t> bytes, fields.integers("bytes", 0, INT64_MAX));
  if (bytes.size() != 2) return fields.bad("bytes", "is not a pair");
  state.bytes = {bytes[0], bytes[1]};
  ASSIGN_OR_RETURN(const data::Json* files, fields.array("files"));
  for (const data::Json& item : *files) {
    if (state.files.size() >= sources.size()) return fields.bad("files", "are more than the sources");
    data::FileLedger file;
    file.source = sources[state.files.size()];
    RETURN_IF_ERROR(data::read_file_content(io::JsonFields(item, fields.where() + ": files"), file));
    state.files.push_back(std::move(file));
  }
  if (static_cast<int64_t>(state.files.size()) != state.file)
    return fields.bad("files", "are not those before \"file\"");
  ASSIGN_OR_RETURN(const io::JsonFields current, fields.object("current"));
  state.current = {};
  RETURN_IF_ERROR(data::read_file_content(current, state.current));
  ASSIGN_OR_RETURN(const io::JsonFields arrays, fields.object("arrays"));
  for (const data::Split split : data::kSplits)
    for (const data::ArrayPlace& place : places_of(header.preprocessing)) {
      const std::string name = io::join_path(data::split_name(split), place.path);
      ASSIGN_OR_RETURN(const io::JsonFields array, arrays.object(name));
      const auto s = static_cast<size_t>(split), a = static_cast<size_t>(place.id);
      RETURN_IF_ERROR(read_array(array, state.positions[s][a], state.sums[s][a]));
    }
  return {};
}

Status read_header(const data::Json& json, const std::string& where, Journal::Header& header) {
  const io::JsonFields fields(json, where);
  ASSIGN_OR_RETURN(const std::string format, fields.string("format"));
  if (format != kJournal1 && format != kJournal2)
    return unsupported(fmt::format("{}: \"format\" is \"{}\"; this program reads \"{}\" and \"{}\"", where,
                                   format, kJournal1, kJournal2));
  ASSIGN_OR_RETURN(const io::JsonFields preprocessing, fields.object("preprocessing"));
  ASSIGN_OR_RETURN(header.preprocessing, data::read_preprocessing(preprocessing));
  if (fields.has("from_stores")) {
    ASSIGN_OR_RETURN(header.from_stores, fields.boolean("from_stores"));
  }
  ASSIGN_OR_RETURN(const data::Json* sources, fields.array("sources"));
  for (const data::Json& item : *sources) {
    ASSIGN_OR_RETURN(data::SourceFile source, data::read_source(io::JsonFields(item, where + ": sources")));
    header.sources.push_back(std::move(source));
  }
  return {};
}

}  // namespace

std::string Journal::path(const std::string& cache_dir) { return io::join_path(cache_dir, "journal.jsonl"); }

Result<Journal> Journal::create(io::FileSystem& fs, const std::string& cache_dir, const Header& header,
                                const BuildState* base) {
  data::Json list = data::Json::array();
  for (const data::SourceFile& source : header.sources) list.push_back(data::source_json(source));
  data::Json json = {{"format", header.preprocessing.is_component() ? kJournal2 : kJournal1},
                     {"preprocessing", data::preprocessing_json(header.preprocessing)},
                     {"sources", std::move(list)}};
  if (header.from_stores) json["from_stores"] = true;
  Journal journal;
  journal.places_ = places_of(header.preprocessing);
  std::string text = line_of(json);
  if (base != nullptr) text += journal.commit_line(*base, true);
  RETURN_IF_ERROR(io::write_file_atomically(fs, path(cache_dir), text));
  ASSIGN_OR_RETURN(journal.file_, fs.open_append(path(cache_dir)));
  return journal;
}

Result<Journal::Found> Journal::read(io::FileSystem& fs, const std::string& cache_dir) {
  const std::string name = path(cache_dir);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(name, int64_t{1} << 33));
  Found found;
  for (int64_t number = 1;; ++number) {
    const auto begin = static_cast<size_t>(found.good_bytes);
    const size_t end = text.find('\n', begin);
    const data::Json json = end == std::string::npos
                                ? data::Json(nlohmann::detail::value_t::discarded)
                                : parse_line(std::string_view(text).substr(begin, end - begin));
    const std::string where = fmt::format("{}:{}", name, number);
    if (json.is_discarded()) {
      if (number == 1) return corrupt(fmt::format("{}: damaged", where));
      return found;
    }
    if (number == 1) {
      RETURN_IF_ERROR(read_header(json, where, found.header));
    } else {
      const io::JsonFields fields(json, where);
      RETURN_IF_ERROR(apply_commit(fields, found.header, found.state));
      found.has_commit = true;
      if (fields.has("base")) found.base = found.state;
    }
    found.good_bytes = static_cast<int64_t>(end) + 1;
  }
}

Result<Journal> Journal::reopen(io::FileSystem& fs, const std::string& cache_dir, const Found& found) {
  RETURN_IF_ERROR(fs.truncate(path(cache_dir), found.good_bytes));
  Journal journal;
  ASSIGN_OR_RETURN(journal.file_, fs.open_append(path(cache_dir)));
  journal.places_ = places_of(found.header.preprocessing);
  journal.files_ = found.state.files.size();
  for (size_t s = 0; s < 2; ++s)
    for (size_t a = 0; a < data::kArrayCount; ++a) journal.sums_[s][a] = found.state.sums[s][a].size();
  return journal;
}

std::string Journal::commit_line(const BuildState& state, bool is_base) {
  data::Json files = data::Json::array(), arrays = data::Json::object();
  for (; files_ < state.files.size(); ++files_) files.push_back(data::file_content_json(state.files[files_]));
  for (const data::Split split : data::kSplits)
    for (const data::ArrayPlace& place : places_) {
      const auto s = static_cast<size_t>(split), a = static_cast<size_t>(place.id);
      const std::span<const data::ChunkSum> sums = state.sums[s][a];
      arrays[io::join_path(data::split_name(split), place.path)] =
          array_json(state.positions[s][a], sums.subspan(sums_[s][a]));
      sums_[s][a] = sums.size();
    }
  data::Json json = {{"file", state.file},         {"documents", state.documents},
                     {"encoded", state.encoded},   {"bytes", state.bytes},
                     {"files", std::move(files)},  {"current", data::file_content_json(state.current)},
                     {"arrays", std::move(arrays)}};
  if (state.row_bytes > 0) json["row_bytes"] = state.row_bytes;
  if (state.first_offsets != std::array<int64_t, 2>{}) json["first_offsets"] = state.first_offsets;
  if (is_base) json["base"] = true;
  return line_of(json);
}

Status Journal::append(const BuildState& state) {
  RETURN_IF_ERROR(file_->append(commit_line(state, false)));
  return file_->sync();
}

}  // namespace ostro::prepare
