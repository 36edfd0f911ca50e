#include "ostro/data/ledger.h"

#include <fmt/core.h>

#include "ostro/base/sha256.h"
#include "ostro/data/chunk_table.h"
#include "ostro/data/ledger_json.h"
#include "ostro/io/atomic_file.h"
#include "ostro/io/path.h"

namespace ostro::data {
namespace {

// Formats 1 (the one-source form) and 2 (components) held the sums of all chunks; they are read, not written.
constexpr const char *kFormat1 = "ostro token store 1", *kFormat2 = "ostro token store 2",
                     *kFormat3 = "ostro token store 3";

const char* old_format_of(const StoreLedger& ledger) {
  return ledger.preprocessing.is_component() || !ledger.levanter_cache.empty() ? kFormat2 : kFormat1;
}

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
    for (const ArrayPlace& place : ledger.places()) {
      const ArrayLedger& array = s.array(place.id);
      arrays[place.path] = {{"elements", array.elements}, {"chunk", array.chunk}, {"sha256", array.sha256}};
    }
    splits[split_name(split)] = {
        {"rows", s.rows}, {"tokens", s.tokens}, {"bytes", s.bytes}, {"arrays", std::move(arrays)}};
  }
  if (!ledger.levanter_cache.empty())
    return {{"fields", fields_json(ledger.preprocessing.fields)}, {"splits", std::move(splits)}};
  return {{"preprocessing", preprocessing_json(ledger.preprocessing)},
          {"files", std::move(files)},
          {"splits", std::move(splits)}};
}

Json types_json(const StoreLedger& ledger) {
  Json types = Json::object();
  for (const Split split : kSplits)
    for (const ArrayPlace& place : ledger.places())
      types[split_name(split)][place.path] = element_name(ledger.split(split).array(place.id).type);
  return types;
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

Status read_files(const io::JsonFields& all, const io::JsonFields& content, const std::string& path,
                  StoreLedger& ledger) {
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
  return {};
}

Result<StoreLedger> parse_ledger(const std::string& text, const std::string& path) {
  ASSIGN_OR_RETURN(Json json, io::parse_json(text, path));
  const io::JsonFields all(json, path);
  ASSIGN_OR_RETURN(const std::string format, all.string("format"));
  if (format != kFormat1 && format != kFormat2 && format != kFormat3)
    return unsupported(fmt::format("{}: \"format\" is \"{}\"; this program reads \"{}\", \"{}\" and \"{}\"",
                                   path, format, kFormat1, kFormat2, kFormat3));
  ASSIGN_OR_RETURN(const std::string checksum, read_sha256(all, "sha256"));
  json.erase("sha256");
  if (const std::string actual = sha256_hex(canonical(json)); actual != checksum)
    return corrupt(fmt::format("{}: \"sha256\" is {}, but the content has {}: the file is damaged", path,
                               checksum, actual));

  StoreLedger ledger;
  ledger.has_sums = format != kFormat3;
  ASSIGN_OR_RETURN(const io::JsonFields content, all.object("content"));
  ASSIGN_OR_RETURN(const io::JsonFields types, all.object(ledger.has_sums ? "chunks" : "types"));
  if (all.has("levanter_cache")) {
    ASSIGN_OR_RETURN(ledger.levanter_cache, all.string("levanter_cache"));
    if (ledger.levanter_cache.empty()) return all.bad("levanter_cache", "is empty");
    ASSIGN_OR_RETURN(const io::JsonFields preprocessing, all.object("preprocessing"));
    ASSIGN_OR_RETURN(ledger.preprocessing, read_preprocessing(preprocessing));
  } else {
    RETURN_IF_ERROR(read_files(all, content, path, ledger));
  }
  if (ledger.has_sums && format != old_format_of(ledger))
    return all.bad("format", "is not that of its content");
  ASSIGN_OR_RETURN(const io::JsonFields splits, content.object("splits"));
  for (const Split split : kSplits) {
    ASSIGN_OR_RETURN(const io::JsonFields fields, splits.object(split_name(split)));
    ASSIGN_OR_RETURN(const io::JsonFields own, types.object(split_name(split)));
    RETURN_IF_ERROR(read_split(fields, own, ledger, ledger.split(split)));
  }
  ASSIGN_OR_RETURN(const std::string hash, read_sha256(all, "hash"));
  if (hash != ledger.hash()) return all.bad("hash", "does not fit the content: the file is damaged");
  return ledger;
}

}  // namespace

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
  compare("format of the rows", store.format.empty() ? "text" : store.format,
          wanted.format.empty() ? "text" : wanted.format);
  compare("data.validation_fraction (0 with validation_urls)", store.validation_fraction,
          wanted.validation_fraction);
  return out;
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
  OSTRO_CHECK(ledger.has_sums, "{}: a ledger without the sums of its chunks", cache_dir);
  RETURN_IF_ERROR(write_chunk_tables(fs, cache_dir, ledger));
  Json json = {{"format", kFormat3},
               {"hash", ledger.hash()},
               {"content", content_json(ledger)},
               {"sources", std::move(sources)},
               {"types", types_json(ledger)}};
  if (!ledger.levanter_cache.empty()) {
    json["levanter_cache"] = ledger.levanter_cache;
    json["preprocessing"] = preprocessing_json(ledger.preprocessing);
  }
  json["sha256"] = sha256_hex(canonical(json));
  return io::write_file_atomically(fs, ledger_path(cache_dir), canonical(json) + "\n");
}

Status write_levanter_ledger(io::FileSystem& fs, const std::string& cache_dir, Split split,
                             const StoreLedger& ledger) {
  const SplitLedger& s = ledger.split(split);
  const StoreFields& fields = ledger.preprocessing.fields;
  Json counts = {{fields.ids, s.tokens}};
  if (fields.weights != WeightKind::kNone) counts[fields.weights_name] = s.array(ArrayId::kWeights).elements;
  const Json json = {{"total_num_rows", s.rows},
                     {"shard_rows", {{split_name(split), s.rows}}},
                     {"is_finished", true},
                     {"finished_shards", {split_name(split)}},
                     {"field_counts", std::move(counts)},
                     {"metadata", {{"preprocessor_metadata", preprocessing_json(ledger.preprocessing)}}}};
  const std::string folder = io::join_path(cache_dir, split_name(split));
  return io::write_file_atomically(fs, io::join_path(folder, "shard_ledger.json"), canonical(json) + "\n");
}

}  // namespace ostro::data
