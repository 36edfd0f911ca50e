#include "ostro/data/ledger/ledger.h"

#include <fmt/format.h>

#include "ostro/base/sha256.h"
#include "ostro/data/ledger/ledger_json.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::data {
namespace {

Json types_json(const StoreLedger& ledger) {
  Json types = Json::object();
  for (const Split split : kSplits)
    for (const ArrayPlace& place : ledger.places())
      types[split_name(split)][place.path] = element_name(ledger.split(split).array(place.id).type);
  return types;
}

Json parts_json(const std::vector<StorePart>& parts) {
  Json json = Json::array();
  for (const StorePart& part : parts) {
    Json entry = {{"folder", part.folder}, {"rows", part.rows}, {"tokens", part.tokens}};
    if (!part.hash.empty()) entry["hash"] = part.hash;
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace

std::vector<std::string> differences(const Preprocessing& store, const Preprocessing& wanted) {
  // A store of plain texts that was built without components is that of a component of plain texts, too.
  if (!store.is_component() && wanted.is_component() &&
      wanted.format ==
          canonical({{"type", "text"}, {"text_key", store.text_key}, {"special_tokens_in_text", "parsed"}})) {
    Preprocessing alone = wanted;
    alone.format.clear();
    alone.text_key = store.text_key;
    return differences(store, alone);
  }
  std::vector<std::string> out;
  const auto compare = [&out](const char* key, const auto& a, const auto& b) {
    if (a != b) out.push_back(fmt::format("{}: the store has {}, the configuration {}", key, a, b));
  };
  compare("data.tokenizer (SHA-256)", store.tokenizer, wanted.tokenizer);
  compare("vocabulary of data.tokenizer", store.vocab_size, wanted.vocab_size);
  const auto begin = [](const std::vector<int64_t>& ids) {
    return ids.empty() ? std::string("none") : fmt::format("token {}", fmt::join(ids, ", "));
  };
  compare("data.enforce_bos, token that begins a document", begin(store.before), begin(wanted.before));
  const auto eos = [](int64_t id) { return id < 0 ? std::string("none") : fmt::format("token {}", id); };
  compare("data.enforce_eos, token that ends a document", eos(store.eos_id), eos(wanted.eos_id));
  compare("data.text_key", store.text_key, wanted.text_key);
  compare("format of the rows", store.format.empty() ? "text" : store.format,
          wanted.format.empty() ? "text" : wanted.format);
  const auto rows = [](const std::string& hash) { return hash.empty() ? std::string("none") : hash; };
  compare("data.rows, SHA-256 of the rows that are left out", rows(store.left_out), rows(wanted.left_out));
  compare("data.validation_fraction (0 with validation_urls)", store.validation_fraction,
          wanted.validation_fraction);
  return out;
}

std::string StoreLedger::hash() const {
  OSTRO_CHECK(has_files, "the hash of a ledger without its files");
  return sha256_hex(canonical(content_json(*this)));
}

std::string ledger_path(const std::string& cache_dir) { return io::join_path(cache_dir, "ledger.json"); }

Status write_ledger(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger) {
  const std::string hash = ledger.hash();
  Json sources = Json::array();
  for (const FileLedger& file : ledger.files) {
    sources.push_back(source_json(file.source));
    if (!file.left_out.empty()) sources.back()["left_out"] = file.left_out;
  }
  OSTRO_CHECK(!ledger.root.empty(), "{}: a ledger without a root", cache_dir);
  Json json = {{"format", kLedgerFormat},       {"hash", hash},
               {"root", ledger.root},           {"content", content_json(ledger)},
               {"sources", std::move(sources)}, {"types", types_json(ledger)}};
  if (!ledger.levanter_cache.empty()) {
    json["levanter_cache"] = ledger.levanter_cache;
    if (!ledger.levanter_tokenizer.empty()) json["levanter_tokenizer"] = ledger.levanter_tokenizer;
    json["preprocessing"] = preprocessing_json(ledger.preprocessing);
  }
  if (!ledger.parts.empty()) json["parts"] = parts_json(ledger.parts);
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
