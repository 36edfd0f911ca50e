#include "ostro/data/levanter/levanter_metadata.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/base/log.h"
#include "ostro/data/ledger/store_check.h"
#include "ostro/io/files/path.h"

namespace ostro::data {
namespace {

using Json = nlohmann::json;

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Reads a JSON object from a file beside the tokenizer. An empty object when there is no such file.
Result<Json> read_beside(io::FileSystem& fs, const std::string& folder, const char* name) {
  const std::string path = io::join_path(folder, name);
  ASSIGN_OR_RETURN(const bool exists, fs.exists(path));
  if (!exists) return Json::object();
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, int64_t{1} << 30));
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? std::move(json) : Json::object();
}

// A token is a string, or an object with "content".
void add_token(const Json& token, std::set<std::string>& tokens) {
  if (token.is_string())
    tokens.insert(token.get<std::string>());
  else if (token.is_object() && token.contains("content") && token["content"].is_string())
    tokens.insert(token["content"].get<std::string>());
}

// Counts tokens that are named in files beside the tokenizer but are not in it. transformers adds these to
// the tokenizer, with ids after its own, and counts them in its size.
Result<int64_t> tokens_beside(io::FileSystem& fs, const tokenizer::Tokenizer& tokenizer,
                              const std::string& tokenizer_path) {
  ASSIGN_OR_RETURN(const io::FileInfo info, fs.stat(tokenizer_path));
  const std::string folder = info.is_directory ? tokenizer_path : io::parent_path(tokenizer_path);
  std::set<std::string> tokens;
  ASSIGN_OR_RETURN(const Json added, read_beside(fs, folder, "added_tokens.json"));
  for (const auto& [token, id] : added.items()) tokens.insert(token);
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    ASSIGN_OR_RETURN(const Json config, read_beside(fs, folder, name));
    for (const auto& [key, value] : config.items()) {
      if (key.ends_with("_token")) add_token(value, tokens);
      if (key == "added_tokens_decoder" || key == "additional_special_tokens")
        for (const Json& token : value) add_token(token, tokens);
    }
  }
  return std::count_if(tokens.begin(), tokens.end(),
                       [&](const std::string& token) { return !tokenizer.token_to_id(token); });
}

// The number of ids that are not added tokens: the smallest number that programs report as vocabulary size.
int64_t tokens_of_model(const tokenizer::Tokenizer& tokenizer) {
  const tokenizer::TokenizerSpec& spec = tokenizer.spec();
  std::vector<bool> counts(spec.vocab.size());
  for (size_t id = 0; id < counts.size(); ++id) counts[id] = !spec.vocab[id].empty();
  for (const tokenizer::AddedToken& token : spec.added_tokens)
    if (token.id < counts.size()) counts[token.id] = false;
  return std::count(counts.begin(), counts.end(), true);
}

// The difference between the cache's tokenizer and ours. Empty when none is found.
Result<std::string> difference(io::FileSystem& fs, const LevanterMetadata& metadata,
                               const Preprocessing& wanted, const tokenizer::Tokenizer& tokenizer,
                               const std::string& tokenizer_path) {
  const std::string ours = fmt::format("data.tokenizer ({})", tokenizer_path);
  if (is_sha256(metadata.tokenizer)) {
    if (metadata.tokenizer == wanted.tokenizer) return std::string();
    return fmt::format("{}: the cache's tokenizer has SHA-256 {}, {} has {}", metadata.path,
                       metadata.tokenizer, ours, wanted.tokenizer);
  }
  // "passthrough": the ids were made before, so the size was given by a person and not by a tokenizer.
  if (!metadata.vocab_size || metadata.tokenizer == "passthrough") return std::string();
  const int64_t size = *metadata.vocab_size, least = tokens_of_model(tokenizer),
                most = std::max<int64_t>(least, tokenizer.vocab_size());
  if (size >= least && size <= most) return std::string();
  if (size > most) {
    ASSIGN_OR_RETURN(const int64_t more, tokens_beside(fs, tokenizer, tokenizer_path));
    if (size - most <= more) return std::string();
  }
  return fmt::format("{}: \"vocab_size\" is {}{}; {} has {} tokens, {} without added ones", metadata.path,
                     size, metadata.tokenizer.empty() ? "" : fmt::format(", of {}", metadata.tokenizer), ours,
                     most, least);
}

// append_eos and append_bos only tell what the writer itself added. They are false, too, when the tokenizer
// adds the tokens on its own. So only cases that are certain give a warning.
void warn_of_ends(const LevanterMetadata& metadata, const Preprocessing& wanted,
                  const tokenizer::Tokenizer& tokenizer) {
  const std::optional<uint32_t> eos = tokenizer.eos_id();
  const std::vector<uint32_t>& suffix = tokenizer.spec().suffix;
  const bool own_eos = eos && !suffix.empty() && suffix.back() == *eos;
  const bool wants_eos = wanted.eos_id >= 0;
  const bool is_text = !wanted.is_component() || row_type(wanted.format) == "text";
  if (metadata.append_eos && *metadata.append_eos != wants_eos && (wants_eos ? !own_eos : is_text))
    log_warning(
        fmt::format("{}: \"append_eos\" is {}, and data.enforce_eos is {}: the cache is used as it is",
                    metadata.path, *metadata.append_eos, wants_eos));
  if (metadata.append_bos.value_or(false) && is_text && wanted.before.empty())
    log_warning(
        fmt::format("{}: \"append_bos\" is true: the cache's texts begin with the token that begins a text, "
                    "and those of this program without one (data.enforce_bos)",
                    metadata.path));
}

}  // namespace

LevanterMetadata read_levanter_metadata(const Json& ledger, const std::string& path) {
  LevanterMetadata out{.path = path, .tokenizer = {}, .vocab_size = {}, .append_bos = {}, .append_eos = {}};
  const auto member = [](const Json* object, const char* key) -> const Json* {
    if (object == nullptr || !object->is_object()) return nullptr;
    const auto found = object->find(key);
    return found == object->end() ? nullptr : &*found;
  };
  const Json* told = member(member(&ledger, "metadata"), "preprocessor_metadata");
  if (const Json* name = member(told, "tokenizer"); name != nullptr && name->is_string())
    out.tokenizer = name->get<std::string>();
  if (const Json* size = member(told, "vocab_size"); size != nullptr && size->is_number_integer())
    out.vocab_size = size->get<int64_t>();
  if (const Json* bos = member(told, "append_bos"); bos != nullptr && bos->is_boolean())
    out.append_bos = bos->get<bool>();
  if (const Json* eos = member(told, "append_eos"); eos != nullptr && eos->is_boolean())
    out.append_eos = eos->get<bool>();
  return out;
}

Status check_levanter_metadata(io::FileSystem& fs, const LevanterMetadata& metadata,
                               const Preprocessing& wanted, const tokenizer::Tokenizer& tokenizer,
                               const std::string& tokenizer_path) {
  ASSIGN_OR_RETURN(const std::string wrong, difference(fs, metadata, wanted, tokenizer, tokenizer_path));
  if (!wrong.empty() && row_type(wanted.format) != "prebuilt")
    return invalid_argument(fmt::format(
        "{}; name the tokenizer that the cache was made with, or, if its ids mean the same there, set the "
        "component's format.type to prebuilt",
        wrong));
  if (!wrong.empty()) log_warning(fmt::format("{}; the ids are taken as they are", wrong));
  warn_of_ends(metadata, wanted, tokenizer);
  return {};
}

}  // namespace ostro::data
