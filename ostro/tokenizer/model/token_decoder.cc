#include "ostro/tokenizer/model/token_decoder.h"

#include <nlohmann/json.hpp>

#include "ostro/tokenizer/model/byte_alphabet.h"
#include "ostro/tokenizer/sentencepiece/byte_token.h"
#include "ostro/tokenizer/split/json_fields.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
Result<TokenDecoder::Step> TokenDecoder::read_step(const Json& json) {
  const std::string type = type_of(json);
  if (type == "ByteLevel") return Step(ByteLevel{});
  if (type == "ByteFallback") return Step(ByteFallback{});
  if (type == "Fuse") return Step(Fuse{});
  if (type == "Strip") {
    Strip out;
    ASSIGN_OR_RETURN(out.content, text_field(json, "content"));
    ASSIGN_OR_RETURN(const int64_t start, count_field(json, "start"));
    ASSIGN_OR_RETURN(const int64_t stop, count_field(json, "stop"));
    if (out.content.empty()) return not_supported("decoder", json);
    out.start = static_cast<size_t>(start);
    out.stop = static_cast<size_t>(stop);
    return Step(std::move(out));
  }
  if (type == "Replace") {
    ASSIGN_OR_RETURN(SimplePattern pattern,
                     SimplePattern::from_json(member(json, "pattern"), "decoder Replace"));
    ASSIGN_OR_RETURN(std::string by, text_field(json, "content"));
    return Step(Replace{std::move(pattern), std::move(by)});
  }
  if (type == "Metaspace") {
    Metaspace out;
    ASSIGN_OR_RETURN(out.replacement, text_field(json, "replacement"));
    ASSIGN_OR_RETURN(const bool prefix, flag(json, "add_prefix_space", true));
    const Json& scheme = member(json, "prepend_scheme");
    if (out.replacement.empty() || !(scheme.is_null() || scheme.is_string()))
      return not_supported("decoder", json);
    out.drops_first = scheme.is_null() ? prefix : scheme != "never";
    return Step(std::move(out));
  }
  return not_supported("decoder", json);
}

Result<TokenDecoder> TokenDecoder::from_json(const Json& json) {
  ASSIGN_OR_RETURN(const auto steps, components(json, "decoder", "decoders"));
  TokenDecoder out;
  for (const Json* step : steps) {
    ASSIGN_OR_RETURN(Step read, read_step(*step));
    out.steps_.push_back(std::move(read));
  }
  return out;
}

struct TokenDecoder::Runner {
  std::vector<std::string>& tokens;
  bool raw;

  void operator()(const ByteLevel&) const {
    std::string text;
    for (const std::string& token : tokens) {
      const auto bytes = characters_to_bytes(token);
      text += bytes ? *bytes : token;
    }
    tokens.assign(1, std::move(text));
  }

  void operator()(const ByteFallback&) const {
    std::vector<std::string> out;
    std::string run;
    const auto finish = [&] {
      if (run.empty()) return;
      if (raw || is_valid_utf8(run)) {
        out.push_back(std::move(run));
      } else {
        for (size_t i = 0; i < run.size(); ++i) out.emplace_back(kReplacementCharacter);
      }
      run.clear();
    };
    for (std::string& token : tokens) {
      if (const auto byte = byte_of_token(token)) {
        run.push_back(static_cast<char>(*byte));
      } else {
        finish();
        out.push_back(std::move(token));
      }
    }
    finish();
    tokens = std::move(out);
  }

  void operator()(const Fuse&) const {
    std::string text;
    for (const std::string& token : tokens) text += token;
    tokens.assign(1, std::move(text));
  }

  void operator()(const Strip& s) const {
    for (std::string& token : tokens) {
      std::string_view text = token;
      for (size_t i = 0; i < s.start && text.starts_with(s.content); ++i)
        text.remove_prefix(s.content.size());
      for (size_t i = 0; i < s.stop && text.ends_with(s.content); ++i) text.remove_suffix(s.content.size());
      token = std::string(text);
    }
  }

  void operator()(const Replace& r) const {
    for (std::string& token : tokens) {
      std::string text;
      r.pattern.replace(token, r.by, text);
      token = std::move(text);
    }
  }

  void operator()(const Metaspace& m) const {
    for (std::string& token : tokens) {
      const bool drop = m.drops_first && &token == &tokens.front();
      std::string text;
      for (size_t i = 0; i < token.size();) {
        const size_t next = std::min(token.find(m.replacement, i), token.size());
        text.append(token, i, next - i);
        if (next < token.size() && !drop) text += ' ';
        i = next < token.size() ? next + m.replacement.size() : next;
      }
      token = std::move(text);
    }
  }
};

std::string TokenDecoder::decode(std::vector<std::string> tokens, bool raw) const {
  for (const Step& step : steps_) std::visit(Runner{tokens, raw}, step);
  std::string text;
  for (const std::string& token : tokens) {
    if (steps_.empty() && &token != &tokens.front()) text += ' ';
    text += token;
  }
  return text;
}

}  // namespace ostro::tokenizer
