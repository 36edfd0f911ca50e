#include "ostro/page/facts/facts.h"

#include "ostro/io/json/file_header.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::page {
namespace {

using OrderedJson = nlohmann::ordered_json;
using io::JsonFields;

constexpr io::FileHeader kFileHeader = {"ostro report", 1};

OrderedJson split_json(const SplitFacts& split) {
  return {{"documents", split.documents}, {"tokens", split.tokens}, {"bytes", split.bytes}};
}

Result<double> read_number(const JsonFields& fields, std::string_view key) {
  ASSIGN_OR_RETURN(const nlohmann::json* number, fields.get(key));
  if (!number->is_number()) return fields.bad(key, "is not a number");
  return number->get<double>();
}

Result<SplitFacts> read_split(const JsonFields& fields, std::string_view key) {
  ASSIGN_OR_RETURN(const nlohmann::json* object, fields.get(key));
  const JsonFields split(*object, fields.where() + ": " + std::string(key));
  SplitFacts out;
  ASSIGN_OR_RETURN(out.documents, split.integer("documents", 0, INT64_MAX));
  ASSIGN_OR_RETURN(out.tokens, split.integer("tokens", 0, INT64_MAX));
  ASSIGN_OR_RETURN(out.bytes, split.integer("bytes", 0, INT64_MAX));
  return out;
}

Result<ComponentFacts> read_component(const JsonFields& fields) {
  ComponentFacts out;
  ASSIGN_OR_RETURN(out.name, fields.string("component"));
  ASSIGN_OR_RETURN(out.train, read_split(fields, "train"));
  ASSIGN_OR_RETURN(out.held_out, read_split(fields, "held_out"));
  if (fields.has("files")) {  // else there are none, or the report is one of an earlier version
    ASSIGN_OR_RETURN(const nlohmann::json* files, fields.array("files"));
    for (const nlohmann::json& file : *files) {
      const JsonFields one(file, fields.where() + ": files");
      ASSIGN_OR_RETURN(std::string path, one.string("file"));
      ASSIGN_OR_RETURN(std::string sha256, one.string("sha256"));
      out.files.push_back({std::move(path), std::move(sha256)});
    }
  }
  if (!fields.has("unigram")) return out;
  ASSIGN_OR_RETURN(const nlohmann::json* object, fields.get("unigram"));
  const JsonFields unigram(*object, fields.where() + ": unigram");
  out.unigram.emplace();
  ASSIGN_OR_RETURN(out.unigram->nats_per_token, read_number(unigram, "nats_per_token"));
  ASSIGN_OR_RETURN(out.unigram->bits_per_byte, read_number(unigram, "bits_per_byte"));
  return out;
}

Result<Sample> read_sample(const JsonFields& fields) {
  Sample out;
  ASSIGN_OR_RETURN(out.component, fields.string("component"));
  ASSIGN_OR_RETURN(out.file, fields.string("file"));
  ASSIGN_OR_RETURN(out.document, fields.integer("document", 0, INT64_MAX));
  ASSIGN_OR_RETURN(out.prompt, fields.string("prompt"));
  ASSIGN_OR_RETURN(out.text, fields.string("text"));
  ASSIGN_OR_RETURN(out.model, fields.string("model"));
  return out;
}

}  // namespace

std::string facts_json(const Facts& facts) {
  OrderedJson json = io::begin_file(kFileHeader);
  json["data"] = OrderedJson::array();
  for (const ComponentFacts& part : facts.data) {
    OrderedJson one = {
        {"component", part.name}, {"train", split_json(part.train)}, {"held_out", split_json(part.held_out)}};
    if (part.unigram)
      one["unigram"] = {{"nats_per_token", part.unigram->nats_per_token},
                        {"bits_per_byte", part.unigram->bits_per_byte}};
    for (const FileFacts& file : part.files)
      one["files"].push_back({{"file", file.file}, {"sha256", file.sha256}});
    json["data"].push_back(std::move(one));
  }
  json["checkpoint"] = facts.checkpoint;
  json["step"] = facts.step;
  json["temperature"] = facts.temperature;
  json["seed"] = facts.seed;
  json["samples"] = OrderedJson::array();
  for (const Sample& sample : facts.samples)
    json["samples"].push_back({{"component", sample.component},
                               {"file", sample.file},
                               {"document", sample.document},
                               {"prompt", sample.prompt},
                               {"text", sample.text},
                               {"model", sample.model}});
  // The text of tokens may end inside a character.
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<Facts> read_facts(io::FileSystem& fs, const std::string& path) {
  constexpr int64_t kLimit = int64_t{64} << 20;
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kLimit));
  ASSIGN_OR_RETURN(const nlohmann::json root, io::parse_json(text, path));
  const JsonFields fields(root, path);
  RETURN_IF_ERROR(io::check_header(fields, kFileHeader));
  Facts facts;
  ASSIGN_OR_RETURN(const nlohmann::json* data, fields.array("data"));
  for (size_t i = 0; i < data->size(); ++i) {
    ASSIGN_OR_RETURN(ComponentFacts part,
                     read_component(JsonFields((*data)[i], fmt::format("{}: data[{}]", path, i))));
    facts.data.push_back(std::move(part));
  }
  ASSIGN_OR_RETURN(facts.checkpoint, fields.string("checkpoint"));
  ASSIGN_OR_RETURN(facts.step, fields.integer("step", 0, INT64_MAX));
  ASSIGN_OR_RETURN(facts.temperature, read_number(fields, "temperature"));
  ASSIGN_OR_RETURN(facts.seed, fields.integer("seed", 0, INT64_MAX));
  ASSIGN_OR_RETURN(const nlohmann::json* samples, fields.array("samples"));
  for (size_t i = 0; i < samples->size(); ++i) {
    ASSIGN_OR_RETURN(Sample sample,
                     read_sample(JsonFields((*samples)[i], fmt::format("{}: samples[{}]", path, i))));
    facts.samples.push_back(std::move(sample));
  }
  return facts;
}

}  // namespace ostro::page
