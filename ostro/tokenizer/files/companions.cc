#include "ostro/tokenizer/files/companions.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "ostro/io/files/path.h"
#include "ostro/tokenizer/split/json_fields.h"

namespace ostro::tokenizer {
namespace {

constexpr int64_t kMaxCompanion = int64_t{1} << 30;
constexpr const char* kNamed[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                  "pad_token", "cls_token", "mask_token"};
constexpr const char* kExtra[] = {"extra_special_tokens", "additional_special_tokens"};

// An empty object where there is no such file.
Result<Json> read_object(io::FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(const bool exists, files.exists(path));
  if (!exists) return Json(Json::object());
  ASSIGN_OR_RETURN(const std::string text, files.read_file(path, kMaxCompanion));
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return corrupt("not a JSON object").with_context(path);
  return json;
}

// "eos_token": "x" or {"content": "x"}; empty when the file does not say.
Result<std::string> token_name(const Json& config, const char* key) {
  const Json& value = member(config, key);
  if (value.is_null()) return std::string();
  if (value.is_string()) return value.get<std::string>();
  if (member(value, "content").is_string()) return value["content"].get<std::string>();
  return corrupt(fmt::format("\"{}\" is neither a token nor an object with \"content\"", key));
}

// A token with the properties of an object, which transformers all takes for false where they are absent.
Result<AddedToken> token_of(const Json& json, uint32_t id) {
  AddedToken out;
  out.id = id;
  ASSIGN_OR_RETURN(out.content, text_field(json, "content"));
  ASSIGN_OR_RETURN(out.single_word, flag(json, "single_word", false));
  ASSIGN_OR_RETURN(out.lstrip, flag(json, "lstrip", false));
  ASSIGN_OR_RETURN(out.rstrip, flag(json, "rstrip", false));
  ASSIGN_OR_RETURN(out.special, flag(json, "special", false));
  ASSIGN_OR_RETURN(out.normalized, flag(json, "normalized", !out.special));
  return out;
}

// {"277": {"content": "<|im_start|>", ...}}, by id.
Status read_decoder(const Json& decoder, std::vector<AddedToken>& out) {
  std::map<uint32_t, AddedToken> by_id;
  for (const auto& [key, value] : decoder.items()) {
    const bool digits = !key.empty() && key.size() < 9 &&
                        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) return corrupt(fmt::format("added_tokens_decoder: \"{}\" is not a token id", key));
    const auto id = static_cast<uint32_t>(std::stoul(key));
    ASSIGN_OR_RETURN(by_id[id], token_of(value, id));
  }
  for (auto& [id, token] : by_id) out.push_back(std::move(token));
  return {};
}

// The tokens of a list or of the values of an object: texts, or objects with "content".
Result<std::vector<AddedToken>> read_extra(const Json& value, const char* key) {
  std::vector<AddedToken> out;
  if (value.is_null()) return out;
  if (!value.is_array() && !value.is_object())
    return corrupt(fmt::format("\"{}\" is neither a list of tokens nor an object of them", key));
  for (const Json& entry : value) {
    if (entry.is_string()) {
      out.push_back({.id = kNoTokenId, .content = entry.get<std::string>(), .special = true});
      continue;
    }
    ASSIGN_OR_RETURN(AddedToken token, token_of(entry, kNoTokenId));
    token.special = true;
    token.normalized = member(entry, "normalized") == true;
    out.push_back(std::move(token));
  }
  return out;
}

// {"<|im_start|>": 330}: special where the directory names the token as a special one.
// `named`: the tokens that the configuration names.
Status read_added_file(const Json& json, const std::vector<std::string>& named,
                       const std::vector<AddedToken>& extra, std::vector<AddedToken>& out) {
  std::vector<std::string> special = named;
  for (const AddedToken& token : extra) special.push_back(token.content);
  std::map<uint32_t, AddedToken> by_id;
  for (const auto& [content, json_id] : json.items()) {
    ASSIGN_OR_RETURN(const uint32_t id, id_value(json_id, "added token \"" + content + "\""));
    const bool is_special = std::find(special.begin(), special.end(), content) != special.end();
    by_id[id] = {.id = id, .content = content, .normalized = !is_special, .special = is_special};
  }
  for (auto& [id, token] : by_id) out.push_back(std::move(token));
  return {};
}

// A number or a list of them. Anything else is of another program, and says nothing here.
std::vector<uint32_t> stop_ids(const Json& config) {
  std::vector<uint32_t> out;
  const Json& value = member(config, "eos_token_id");
  const auto add = [&out](const Json& id) {
    if (id.is_number_unsigned() && id.get<uint64_t>() <= kMaxId) out.push_back(id.get<uint32_t>());
  };
  if (value.is_array())
    for (const Json& id : value) add(id);
  else
    add(value);
  return out;
}

// The ids after which a model stops: a generation_config.json has them, or else the model's config.json.
std::vector<uint32_t> read_stops(io::FileSystem& files, const std::string& directory) {
  for (const char* name : {"generation_config.json", "config.json"}) {
    const auto json = read_object(files, io::join_path(directory, name));
    if (!json.ok()) continue;  // what reads the file for itself says what is wrong with it
    if (std::vector<uint32_t> out = stop_ids(*json); !out.empty()) return out;
  }
  return {};
}

Status read_config(const Json& config, Companions& out) {
  ASSIGN_OR_RETURN(out.eos, token_name(config, "eos_token"));
  ASSIGN_OR_RETURN(out.bos, token_name(config, "bos_token"));
  for (const char* key : kNamed) {
    ASSIGN_OR_RETURN(std::string name, token_name(config, key));
    if (!name.empty()) out.named.push_back(std::move(name));
  }
  out.add_bos = member(config, "add_bos_token") == true;
  out.add_eos = member(config, "add_eos_token") == true;
  if (member(config, kBeginsTexts).is_boolean()) out.begins_texts = config[kBeginsTexts].get<bool>();
  if (member(config, "tokenizer_class").is_string()) out.class_name = config["tokenizer_class"];
  return {};
}

}  // namespace

Result<Companions> read_companions(io::FileSystem& files, const std::string& directory) {
  const auto path = [&](const char* name) { return io::join_path(directory, name); };
  Companions out;
  out.place = path("tokenizer_config.json");
  ASSIGN_OR_RETURN(Json config, read_object(files, out.place));
  const bool has_decoder = config.contains("added_tokens_decoder");
  if (!has_decoder) {
    const std::string map_path = path("special_tokens_map.json");
    ASSIGN_OR_RETURN(const Json map, read_object(files, map_path));
    for (const auto& [key, value] : map.items()) config[key] = value;
  }
  std::vector<AddedToken> extra;
  const auto read = [&]() -> Status {
    RETURN_IF_ERROR(read_config(config, out));
    for (const char* key : kExtra) {
      ASSIGN_OR_RETURN(auto more, read_extra(member(config, key), key));
      extra.insert(extra.end(), more.begin(), more.end());
    }
    return has_decoder ? read_decoder(config["added_tokens_decoder"], out.added) : Status();
  };
  if (const Status status = read(); !status.ok()) return status.error().with_context(out.place);
  if (!has_decoder) {
    const std::string added_path = path("added_tokens.json");
    ASSIGN_OR_RETURN(const Json added, read_object(files, added_path));
    const Status status = read_added_file(added, out.named, extra, out.added);
    if (!status.ok()) return status.error().with_context(added_path);
  }
  for (AddedToken& token : extra) {
    const bool known = std::any_of(out.added.begin(), out.added.end(),
                                   [&](const AddedToken& t) { return t.content == token.content; });
    if (!known && !token.content.empty()) out.added.push_back(std::move(token));
  }
  out.stops = read_stops(files, directory);
  return out;
}

Status apply(const Companions& companions, bool is_model, Tokenizer& tokenizer) {
  std::vector<AddedToken> added;
  for (const AddedToken& token : companions.added) {
    // A special token that is only named keeps the properties that the tokenizer gives it.
    const auto& own = tokenizer.spec().added_tokens;
    const bool keeps =
        token.id == kNoTokenId &&
        std::any_of(own.begin(), own.end(), [&](const AddedToken& t) { return t.content == token.content; });
    if (!keeps) added.push_back(token);
  }
  if (is_model)
    for (const std::string& name : companions.named)
      if (tokenizer.token_to_id(name) &&
          std::none_of(added.begin(), added.end(), [&](const AddedToken& t) { return t.content == name; }))
        added.push_back({.id = kNoTokenId, .content = name, .special = true});
  if (!added.empty()) {
    ASSIGN_OR_RETURN(auto with, tokenizer.with_added_tokens(added));
    if (with) tokenizer = std::move(*with);
  }
  if (!companions.eos.empty()) RETURN_IF_ERROR(tokenizer.set_eos_token(companions.eos));
  if (!companions.bos.empty()) RETURN_IF_ERROR(tokenizer.set_bos_token(companions.bos));
  if (companions.begins_texts) tokenizer.set_begins_texts(*companions.begins_texts);
  std::vector<uint32_t> stops;
  for (const uint32_t id : companions.stops)
    if (tokenizer.id_to_token(id) && id != tokenizer.eos_id()) stops.push_back(id);
  tokenizer.set_more_stops(std::move(stops));
  tokenizer.set_class_name(companions.class_name);
  return {};
}

}  // namespace ostro::tokenizer
