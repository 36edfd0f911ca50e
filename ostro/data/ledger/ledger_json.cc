#include "ostro/data/ledger/ledger_json.h"

#include <algorithm>
#include <cmath>

namespace ostro::data {

Result<std::array<int64_t, 2>> read_pair(const io::JsonFields& fields, std::string_view key) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, fields.integers(key, 0, kMaxCount));
  if (values.size() != 2) return fields.bad(key, "is not a pair of numbers");
  return std::array<int64_t, 2>{values[0], values[1]};
}

std::string canonical(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json fields_json(const StoreFields& fields) {
  return {
      {"ids", fields.ids},
      {"weights", fields.weights == WeightKind::kNone ? Json() : Json(fields.weights_name)},
      {"weights_are", fields.weights == WeightKind::kNone ? Json() : Json(weight_kind_name(fields.weights))}};
}

Json preprocessing_json(const Preprocessing& p) {
  Json json = {{"tokenizer", p.tokenizer},
               {"vocab_size", p.vocab_size},
               {"eos_id", p.eos_id < 0 ? Json() : Json(p.eos_id)},
               {"validation_fraction", p.validation_fraction}};
  if (!p.before.empty()) json["before"] = p.before;
  if (!p.left_out.empty()) json["left_out"] = p.left_out;
  if (p.is_component()) {
    json["format"] = Json::parse(p.format, nullptr, false);
    OSTRO_CHECK(json["format"].is_object(), "the identity of a row format is not a JSON object: {}",
                p.format);
    json["fields"] = fields_json(p.fields);
  } else {
    json["text_key"] = p.text_key;
    json["special_tokens_in_text"] = "parsed";
  }
  return json;
}

namespace {

Status read_fields(const io::JsonFields& json, StoreFields& fields) {
  ASSIGN_OR_RETURN(fields.ids, json.string("ids"));
  ASSIGN_OR_RETURN(const Json* kind, json.get("weights_are"));
  if (kind->is_null()) return {};
  ASSIGN_OR_RETURN(fields.weights_name, json.string("weights"));
  ASSIGN_OR_RETURN(const std::string name, json.string("weights_are"));
  for (const WeightKind k : {WeightKind::kAssistantMasks, WeightKind::kSourcesLen, WeightKind::kLossWeights,
                             WeightKind::kPairParts})
    if (name == weight_kind_name(k)) fields.weights = k;
  if (fields.weights == WeightKind::kNone) return json.bad("weights_are", "is no kind of weights");
  return {};
}

}  // namespace

Result<Preprocessing> read_preprocessing(const io::JsonFields& fields) {
  Preprocessing p;
  ASSIGN_OR_RETURN(p.tokenizer, fields.sha256("tokenizer"));
  ASSIGN_OR_RETURN(p.vocab_size, fields.integer("vocab_size", 1, INT32_MAX));
  ASSIGN_OR_RETURN(const Json* eos, fields.get("eos_id"));
  if (!eos->is_null()) {
    ASSIGN_OR_RETURN(p.eos_id, fields.integer("eos_id", 0, p.vocab_size - 1));
  }
  if (fields.has("before")) {
    ASSIGN_OR_RETURN(p.before, fields.integers("before", 0, p.vocab_size - 1));
  }
  if (fields.has("left_out")) {
    ASSIGN_OR_RETURN(p.left_out, fields.sha256("left_out"));
  }
  if (fields.has("format")) {
    RETURN_IF_ERROR(fields.object("format"));
    ASSIGN_OR_RETURN(const Json* format, fields.get("format"));
    p.format = canonical(*format);
    ASSIGN_OR_RETURN(const io::JsonFields names, fields.object("fields"));
    RETURN_IF_ERROR(read_fields(names, p.fields));
  } else {
    ASSIGN_OR_RETURN(p.text_key, fields.string("text_key"));
  }
  ASSIGN_OR_RETURN(const Json* fraction, fields.get("validation_fraction"));
  if (!fraction->is_number()) return fields.bad("validation_fraction", "is not a number");
  p.validation_fraction = fraction->get<double>();
  if (!(p.validation_fraction >= 0 && p.validation_fraction < 1))
    return fields.bad("validation_fraction", "is not a fraction");
  return p;
}

Json source_json(const SourceFile& source) {
  return {{"path", source.path},
          {"format", file_format_name(source.format)},
          {"list", split_name(source.list)},
          {"size", source.size},
          {"mtime_ns", source.mtime_ns}};
}

Result<SourceFile> read_source(const io::JsonFields& fields) {
  SourceFile source;
  ASSIGN_OR_RETURN(source.path, fields.string("path"));
  ASSIGN_OR_RETURN(const std::string format, fields.string("format"));
  ASSIGN_OR_RETURN(const std::string list, fields.string("list"));
  const std::optional<FileFormat> known = parse_file_format(format);
  if (!known) return fields.bad("format", "is not text, jsonl or parquet");
  if (list != "train" && list != "validation") return fields.bad("list", "is not train or validation");
  source.format = *known;
  source.list = list == "train" ? Split::kTrain : Split::kValidation;
  ASSIGN_OR_RETURN(source.size, fields.integer("size", 0, kMaxCount));
  ASSIGN_OR_RETURN(source.mtime_ns, fields.integer("mtime_ns", INT64_MIN, kMaxCount));
  return source;
}

Status read_left_out(const io::JsonFields& source, FileLedger& file) {
  if (!source.has("left_out")) return {};
  ASSIGN_OR_RETURN(const io::JsonFields fields, source.object("left_out"));
  ASSIGN_OR_RETURN(const Json* reasons, source.get("left_out"));
  for (const auto& [reason, unused] : reasons->items()) {
    ASSIGN_OR_RETURN(file.left_out[reason], fields.integer(reason, 1, kMaxCount));
  }
  return {};
}

Json file_content_json(const FileLedger& file) {
  Json json = {{"sha256", file.sha256},     {"documents", file.documents}, {"empty", file.empty},
               {"repaired", file.repaired}, {"rows", file.rows},           {"tokens", file.tokens}};
  if (file.no_loss > 0) json["no_loss"] = file.no_loss;
  if (file.skipped > 0) json["skipped"] = file.skipped;
  return json;
}

Status read_file_content(const io::JsonFields& fields, FileLedger& file) {
  ASSIGN_OR_RETURN(file.sha256, fields.string("sha256"));
  ASSIGN_OR_RETURN(file.documents, fields.integer("documents", 0, kMaxCount));
  ASSIGN_OR_RETURN(file.empty, fields.integer("empty", 0, kMaxCount));
  ASSIGN_OR_RETURN(file.repaired, fields.integer("repaired", 0, kMaxCount));
  ASSIGN_OR_RETURN(file.rows, read_pair(fields, "rows"));
  ASSIGN_OR_RETURN(file.tokens, read_pair(fields, "tokens"));
  if (fields.has("no_loss")) {
    ASSIGN_OR_RETURN(file.no_loss, fields.integer("no_loss", 0, kMaxCount));
  }
  if (fields.has("skipped")) {
    ASSIGN_OR_RETURN(file.skipped, fields.integer("skipped", 0, kMaxCount));
  }
  return {};
}

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

}  // namespace ostro::data
