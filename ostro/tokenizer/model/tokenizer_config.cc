// What stands beside a tokenizer.json or a .model: tokenizer_config.json, and tokenizers that differ from one
// in that.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/log.h"
#include "ostro/tokenizer/model/shown_token.h"
#include "ostro/tokenizer/model/tokenizer.h"
#include "ostro/tokenizer/model/tokenizer_state.h"
#include "ostro/tokenizer/split/json_fields.h"

namespace ostro::tokenizer {
namespace {

OrderedJson token_json(const AddedToken& token) {
  return {{"content", token.content}, {"single_word", token.single_word}, {"lstrip", token.lstrip},
          {"rstrip", token.rstrip},   {"normalized", token.normalized},   {"special", token.special}};
}

bool same_properties(const AddedToken& a, const AddedToken& b) {
  return a.single_word == b.single_word && a.lstrip == b.lstrip && a.rstrip == b.rstrip &&
         a.normalized == b.normalized && a.special == b.special;
}

}  // namespace

bool Tokenizer::is_unigram_model() const {
  return state_->sentencepiece && state_->sentencepiece->proto().kind == SentencePieceProto::Kind::kUnigram;
}

std::string Tokenizer::tokenizer_config_json(int64_t model_max_length,
                                             std::optional<bool> begins_texts) const {
  const TokenizerSpec& spec = state_->spec;
  const bool is_model = spec.kind == ModelKind::kSentencePiece;
  OrderedJson out = OrderedJson::object();
  if (!is_model)
    out["tokenizer_class"] = "PreTrainedTokenizerFast";
  else if (!class_name().empty() || !is_unigram_model())
    out["tokenizer_class"] = class_name().empty() ? "LlamaTokenizer" : class_name();
  out["clean_up_tokenization_spaces"] = false;
  if (state_->bos) out["bos_token"] = *id_to_token(*state_->bos);
  if (state_->eos) out["eos_token"] = *id_to_token(*state_->eos);
  if (is_model) {
    out["add_bos_token"] = spec.add_bos;
    out["add_eos_token"] = spec.add_eos;
    for (const AddedToken& token : spec.added_tokens)
      out["added_tokens_decoder"][std::to_string(token.id)] = token_json(token);
  }
  if (begins_texts) out[kBeginsTexts] = *begins_texts;
  if (model_max_length > 0) out["model_max_length"] = model_max_length;
  return out.dump(2) + "\n";
}

std::string Tokenizer::generation_config_json() const {
  const auto id = [](const std::optional<uint32_t>& token) {
    return token ? OrderedJson(*token) : OrderedJson(nullptr);
  };
  std::vector<uint32_t> stops = more_stops();
  if (eos_id() && std::find(stops.begin(), stops.end(), *eos_id()) == stops.end())
    stops.insert(stops.begin(), *eos_id());
  const OrderedJson out = {{"bos_token_id", id(bos_id())},
                           {"eos_token_id", stops.size() > 1 ? OrderedJson(stops) : id(eos_id())},
                           {"do_sample", false}};
  return out.dump(2) + "\n";
}

Result<std::optional<Tokenizer>> Tokenizer::with_added_tokens(const std::vector<AddedToken>& tokens) const {
  TokenizerSpec spec = state_->spec;
  uint32_t next = vocab_size();
  bool changed = false;
  for (const AddedToken& token : tokens) {
    const auto there = std::find_if(spec.added_tokens.begin(), spec.added_tokens.end(),
                                    [&](const AddedToken& t) { return t.content == token.content; });
    const bool is_new = there == spec.added_tokens.end();
    if (!is_new && same_properties(*there, token)) continue;
    changed = true;
    const auto known = token_to_id(token.content);
    // An added token is known by its id, too; one that stands in the list twice keeps its first id.
    const uint32_t id = known ? *known : is_new ? next++ : there->id;
    AddedToken& added = is_new ? spec.added_tokens.emplace_back() : *there;
    added = token;
    added.id = id;
    if (token.id != kNoTokenId && token.id != id)
      log_warning(fmt::format("added token {} is named with id {}, and gets id {}, as in transformers",
                              shown_token(token.content), token.id, id));
  }
  if (!changed) return std::optional<Tokenizer>();
  ASSIGN_OR_RETURN(Tokenizer out, from_spec(std::move(spec)));
  return std::optional<Tokenizer>(std::move(out));
}

Result<Tokenizer> Tokenizer::with_beginning(const std::vector<uint32_t>& ids) const {
  TokenizerSpec spec = state_->spec;
  spec.prefix = ids;
  spec.add_bos = !ids.empty();
  if (spec.kind != ModelKind::kSentencePiece) {
    OrderedJson single = OrderedJson::array(), tokens = OrderedJson::object();
    const auto add = [&](uint32_t id) {
      const std::string name(*id_to_token(id));
      single.push_back({{"SpecialToken", {{"id", name}, {"type_id", 0}}}});
      tokens[name] = {
          {"id", name}, {"ids", OrderedJson::array({id})}, {"tokens", OrderedJson::array({name})}};
    };
    for (const uint32_t id : ids) add(id);
    single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
    for (const uint32_t id : spec.suffix) add(id);
    OrderedJson pair = single;
    for (const OrderedJson& item : single) {
      OrderedJson second = item;
      for (auto& part : second) part["type_id"] = 1;
      if (second.contains("Sequence")) second["Sequence"]["id"] = "B";
      pair.push_back(std::move(second));
    }
    spec.post_processor = OrderedJson{
        {"type", "TemplateProcessing"},
        {"single", single},
        {"pair", pair},
        {"special_tokens",
         tokens}}.dump();
  }
  ASSIGN_OR_RETURN(Tokenizer out, from_spec(std::move(spec)));
  out.state_->eos = state_->eos;
  out.state_->bos = state_->bos;
  out.state_->more_stops = state_->more_stops;
  out.state_->class_name = state_->class_name;
  return out;
}

}  // namespace ostro::tokenizer
