#include "ostro/serve/token_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

std::string bytes_of(const tokenizer::Tokenizer& tokenizer, int32_t id) {
  const uint32_t one = static_cast<uint32_t>(id);
  auto bytes = tokenizer.decode_bytes({&one, 1});
  return bytes.ok() ? std::move(*bytes) : "";
}

Json chat_token(const tokenizer::Tokenizer& tokenizer, int32_t id, float log_prob) {
  Json bytes = Json::array();
  for (const char c : bytes_of(tokenizer, id)) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", token_text(tokenizer, id)},
          {"logprob", static_cast<double>(log_prob)},
          {"bytes", std::move(bytes)}};
}

// By text, of two ids with one text the likelier: lm-evaluation-harness looks for the token's text in it.
Json likely_by_text(const tokenizer::Tokenizer& tokenizer, const RatedToken& token) {
  Json out = Json::object();
  for (const auto& [id, log_prob] : token.likely) {
    const std::string text = token_text(tokenizer, id);
    if (!out.contains(text)) out[text] = static_cast<double>(log_prob);
  }
  const std::string own = token_text(tokenizer, token.id);
  if (!out.contains(own)) out[own] = static_cast<double>(token.log_prob);
  return out;
}

}  // namespace

std::string token_text(const tokenizer::Tokenizer& tokenizer, int32_t id) {
  const std::string bytes = bytes_of(tokenizer, id);
  if (tokenizer::is_valid_utf8(bytes)) return bytes;
  std::string out = "bytes:";
  for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return out;
}

std::vector<int32_t> ids_of_rated(const std::vector<RatedToken>& tokens) {
  std::vector<int32_t> out;
  for (const RatedToken& token : tokens) out.push_back(token.id);
  return out;
}

int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::vector<int64_t> text_offsets(const tokenizer::Tokenizer& tokenizer,
                                  const std::vector<RatedToken>& tokens) {
  std::vector<int64_t> out;
  auto text = TextStream::create(tokenizer, {}, {});
  for (const RatedToken& token : tokens) {
    out.push_back(text.ok() ? text->characters() : 0);
    if (text.ok() && !text->add(token.id).ok()) break;
  }
  out.resize(tokens.size());
  return out;
}

std::string echoed(const tokenizer::Tokenizer& tokenizer, const Ask& ask, size_t prompt) {
  if (!ask.prompt_texts[prompt].empty()) return ask.prompt_texts[prompt];
  const auto& ids = ask.prompts[prompt];
  const auto text = tokenizer.decode(std::vector<uint32_t>(ids.begin(), ids.end()), true);
  return text.ok() ? *text : "";
}

Json completion_log_probs(const tokenizer::Tokenizer& tokenizer, const std::vector<RatedToken>& tokens,
                          const std::vector<int64_t>& offsets, bool first_is_unrated, bool likely) {
  Json out = {{"tokens", Json::array()},
              {"token_logprobs", Json::array()},
              {"top_logprobs", likely ? Json::array() : Json()},
              {"text_offset", offsets}};
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool has_none = i == 0 && first_is_unrated;
    out["tokens"].push_back(token_text(tokenizer, tokens[i].id));
    out["token_logprobs"].push_back(has_none ? Json() : Json(static_cast<double>(tokens[i].log_prob)));
    if (likely) out["top_logprobs"].push_back(has_none ? Json() : likely_by_text(tokenizer, tokens[i]));
  }
  return out;
}

Json chat_log_probs(const tokenizer::Tokenizer& tokenizer, const std::vector<RatedToken>& tokens) {
  Json content = Json::array();
  for (const RatedToken& token : tokens) {
    Json one = chat_token(tokenizer, token.id, token.log_prob);
    one["top_logprobs"] = Json::array();
    for (const auto& [id, log_prob] : token.likely)
      one["top_logprobs"].push_back(chat_token(tokenizer, id, log_prob));
    content.push_back(std::move(one));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

}  // namespace ostro::serve
