#include "ostro/data/ledger.h"

#include <fmt/core.h>

#include "ostro/base/sha256.h"
#include "ostro/data/ledger_json.h"
#include "ostro/io/atomic_file.h"
#include "ostro/io/path.h"

namespace ostro::data {
namespace {

constexpr const char* kFormat = "ostro token store 1";
constexpr int64_t kMax = INT64_MAX;

// What the hash is taken of: no path, no time, nothing that depends on how the bytes are compressed.
Json content_json(const StoreLedger& ledger) {
  Json files = Json::array(), splits = Json::object();
  for (const FileLedger& file : ledger.files) {
    Json entry = file_content_json(file);
    entry["format"] = file_format_name(file.source.format);
    entry["list"] = split_name(file.source.list);
    files.push_back(std::move(entry));
  }
  for (const Split split : kSplits) {
    const SplitLedger& s = ledger.split(split);
    Json arrays = Json::object();
    for (const ArrayId id : kArrays) {
      const ArrayLedger& array = s.array(id);
      arrays[array_path(id)] = {
          {"elements", array.elements}, {"chunk", array.chunk}, {"sha256", array.sha256}};
    }
    splits[split_name(split)] = {
        {"rows", s.rows}, {"tokens", s.tokens}, {"bytes", s.bytes}, {"arrays", std::move(arrays)}};
  }
  return {{"preprocessing", preprocessing_json(ledger.preprocessing)},
          {"files", std::move(files)},
          {"splits", std::move(splits)}};
}

Json chunks_json(const StoreLedger& ledger) {
  Json chunks = Json::object();
  for (const Split split : kSplits)
    for (const ArrayId id : kArrays) {
      const ArrayLedger& array = ledger.split(split).array(id);
      Json entry = {{"crc32c", array.crc32c}};
      if (id == ArrayId::kOffsets) entry["last"] = array.last;
      chunks[split_name(split)][array_path(id)] = std::move(entry);
    }
  return chunks;
}

Status read_array(const io::JsonFields& content, const io::JsonFields& chunks, ArrayId id,
                  ArrayLedger& array) {
  ASSIGN_OR_RETURN(const io::JsonFields fields, content.object(array_path(id)));
  ASSIGN_OR_RETURN(array.elements, fields.integer("elements", 0, kMax));
  ASSIGN_OR_RETURN(array.chunk, fields.integer("chunk", 2, int64_t{1} << 27));
  ASSIGN_OR_RETURN(array.sha256, read_sha256(fields, "sha256"));
  ASSIGN_OR_RETURN(const io::JsonFields sums, chunks.object(array_path(id)));
  ASSIGN_OR_RETURN(const std::vector<int64_t> crcs, sums.integers("crc32c", 0, UINT32_MAX));
  for (const int64_t crc : crcs) array.crc32c.push_back(static_cast<uint32_t>(crc));
  const int64_t count = array.elements / array.chunk + (array.elements % array.chunk != 0 ? 1 : 0);
  if (static_cast<int64_t>(crcs.size()) != count)
    return sums.bad("crc32c", fmt::format("has {} entries for {} chunks", crcs.size(), count));
  if (id != ArrayId::kOffsets) return {};
  ASSIGN_OR_RETURN(array.last, sums.integers("last", 0, kMax));
  if (static_cast<int64_t>(array.last.size()) != count)
    return sums.bad("last", fmt::format("has {} entries for {} chunks", array.last.size(), count));
  return {};
}

Status read_split(const io::JsonFields& fields, const io::JsonFields& chunks, SplitLedger& split) {
  ASSIGN_OR_RETURN(split.rows, fields.integer("rows", 0, kMax - 1));
  ASSIGN_OR_RETURN(split.tokens, fields.integer("tokens", 0, kMax));
  ASSIGN_OR_RETURN(split.bytes, fields.integer("bytes", 0, kMax));
  ASSIGN_OR_RETURN(const io::JsonFields arrays, fields.object("arrays"));
  for (const ArrayId id : kArrays) RETURN_IF_ERROR(read_array(arrays, chunks, id, split.array(id)));
  const bool fits = split.array(ArrayId::kData).elements == split.tokens &&
                    split.array(ArrayId::kOffsets).elements == split.rows + 1 &&
                    split.array(ArrayId::kDocument).elements == split.rows &&
                    split.array(ArrayId::kBytes).elements == split.rows;
  if (!fits)
    return arrays.bad("input_ids/data", "and its neighbours do not have the split's rows and tokens");
  return {};
}

Result<StoreLedger> parse_ledger(const std::string& text, const std::string& path) {
  ASSIGN_OR_RETURN(Json json, io::parse_json(text, path));
  const io::JsonFields all(json, path);
  ASSIGN_OR_RETURN(const std::string format, all.string("format"));
  if (format != kFormat)
    return unsupported(
        fmt::format("{}: \"format\" is \"{}\"; this program reads \"{}\"", path, format, kFormat));
  ASSIGN_OR_RETURN(const std::string checksum, read_sha256(all, "sha256"));
  Json rest = json;
  rest.erase("sha256");
  if (const std::string actual = sha256_hex(canonical(rest)); actual != checksum)
    return corrupt(fmt::format("{}: \"sha256\" is {}, but the content has {}: the file is damaged", path,
                               checksum, actual));

  StoreLedger ledger;
  ASSIGN_OR_RETURN(const io::JsonFields content, all.object("content"));
  ASSIGN_OR_RETURN(const io::JsonFields chunks, all.object("chunks"));
  ASSIGN_OR_RETURN(const io::JsonFields preprocessing, content.object("preprocessing"));
  ASSIGN_OR_RETURN(ledger.preprocessing, read_preprocessing(preprocessing));
  ASSIGN_OR_RETURN(const Json* files, content.array("files"));
  ASSIGN_OR_RETURN(const Json* sources, all.array("sources"));
  if (files->size() != sources->size()) return all.bad("sources", "does not match \"files\"");
  for (size_t i = 0; i < files->size(); ++i) {
    FileLedger file;
    ASSIGN_OR_RETURN(file.source,
                     read_source(io::JsonFields((*sources)[i], fmt::format("{}: sources[{}]", path, i))));
    RETURN_IF_ERROR(
        read_file_content(io::JsonFields((*files)[i], fmt::format("{}: files[{}]", path, i)), file));
    ledger.files.push_back(std::move(file));
  }
  ASSIGN_OR_RETURN(const io::JsonFields splits, content.object("splits"));
  for (const Split split : kSplits) {
    ASSIGN_OR_RETURN(const io::JsonFields fields, splits.object(split_name(split)));
    ASSIGN_OR_RETURN(const io::JsonFields sums, chunks.object(split_name(split)));
    RETURN_IF_ERROR(read_split(fields, sums, ledger.split(split)));
  }
  ASSIGN_OR_RETURN(const std::string hash, read_sha256(all, "hash"));
  if (hash != ledger.hash()) return all.bad("hash", "does not fit the content: the file is damaged");
  return ledger;
}

}  // namespace

Result<Preprocessing> preprocessing_of(const DataOptions& options, const tokenizer::Tokenizer& tokenizer) {
  Preprocessing p;
  p.tokenizer = sha256_hex(tokenizer.canonical_json());
  p.vocab_size = tokenizer.vocab_size();
  if (options.enforce_eos) {
    const auto eos = tokenizer.eos_id();
    if (!eos)
      return invalid_argument(fmt::format(
          "data.enforce_eos: {} names no token that ends a text; put a tokenizer_config.json with "
          "\"eos_token\" beside it, or set data.enforce_eos to false",
          options.tokenizer));
    p.eos_id = *eos;
  }
  p.text_key = options.text_key;
  p.validation_fraction = options.validation_urls.empty() ? options.validation_fraction : 0;
  return p;
}

std::vector<std::string> differences(const Preprocessing& store, const Preprocessing& wanted) {
  std::vector<std::string> out;
  const auto compare = [&out](const char* key, const auto& a, const auto& b) {
    if (a != b) out.push_back(fmt::format("{}: the store has {}, the configuration {}", key, a, b));
  };
  compare("data.tokenizer (SHA-256)", store.tokenizer, wanted.tokenizer);
  compare("vocabulary of data.tokenizer", store.vocab_size, wanted.vocab_size);
  const auto eos = [](int64_t id) { return id < 0 ? std::string("none") : fmt::format("token {}", id); };
  compare("data.enforce_eos, token that ends a document", eos(store.eos_id), eos(wanted.eos_id));
  compare("data.text_key", store.text_key, wanted.text_key);
  compare("data.validation_fraction (0 with validation_urls)", store.validation_fraction,
          wanted.validation_fraction);
  return out;
}

const char* array_path(ArrayId id) {
  constexpr const char* kPaths[] = {"input_ids/data", "input_ids/offsets", "rows/document", "rows/bytes"};
  return kPaths[static_cast<size_t>(id)];
}

std::string StoreLedger::hash() const { return sha256_hex(canonical(content_json(*this))); }

std::string ledger_path(const std::string& cache_dir) { return io::join_path(cache_dir, "ledger.json"); }

Result<StoreLedger> read_ledger(io::FileSystem& fs, const std::string& cache_dir) {
  const std::string path = ledger_path(cache_dir);
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, int64_t{1} << 32));
  return parse_ledger(text, path);
}

Status write_ledger(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger) {
  Json sources = Json::array();
  for (const FileLedger& file : ledger.files) sources.push_back(source_json(file.source));
  Json json = {{"format", kFormat},
               {"hash", ledger.hash()},
               {"content", content_json(ledger)},
               {"sources", std::move(sources)},
               {"chunks", chunks_json(ledger)}};
  json["sha256"] = sha256_hex(canonical(json));
  return io::write_file_atomically(fs, ledger_path(cache_dir), canonical(json) + "\n");
}

Status write_levanter_ledger(io::FileSystem& fs, const std::string& cache_dir, Split split,
                             const StoreLedger& ledger) {
  const SplitLedger& s = ledger.split(split);
  const Json json = {{"total_num_rows", s.rows},
                     {"shard_rows", {{split_name(split), s.rows}}},
                     {"is_finished", true},
                     {"finished_shards", {split_name(split)}},
                     {"field_counts", {{"input_ids", s.tokens}}},
                     {"metadata", {{"preprocessor_metadata", preprocessing_json(ledger.preprocessing)}}}};
  const std::string folder = io::join_path(cache_dir, split_name(split));
  return io::write_file_atomically(fs, io::join_path(folder, "shard_ledger.json"), canonical(json) + "\n");
}

}  // namespace ostro::data
