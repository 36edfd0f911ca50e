// Reads and writes tokenizer.json. A feature that would change ids and is not supported is refused by name.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/tokenizer/model/tokenizer.h"
#include "ostro/tokenizer/model/tokenizer_state.h"
#include "ostro/tokenizer/split/json_fields.h"
#include "ostro/tokenizer/split/pre_tokenizer.h"
#include "ostro/tokenizer/unicode/base64.h"

namespace ostro::tokenizer {
namespace {

// True if brackets outside strings are nested deeper than in any real tokenizer.json. Code that walks the
// parsed value recurses, and a hostile file must not overflow the stack.
bool nests_too_deep(std::string_view text) {
  constexpr int kMaxDepth = 100;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (c == '\\' && in_string) ++i;
    if (in_string) continue;
    if ((c == '[' || c == '{') && ++depth > kMaxDepth) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

Status read_vocab(const Json& model, TokenizerSpec& spec) {
  const Json& vocab = member(model, "vocab");
  if (!vocab.is_object()) return corrupt("model.vocab is missing or not an object of token: id");
  for (const auto& [token, json_id] : vocab.items()) {
    ASSIGN_OR_RETURN(const uint32_t id, id_value(json_id, "token \"" + token + "\""));
    if (token.empty()) return corrupt(fmt::format("model.vocab: token {} is empty", id));
    if (id >= spec.vocab.size()) spec.vocab.resize(id + 1);
    if (!spec.vocab[id].empty()) {
      return corrupt(
          fmt::format("model.vocab: id {} belongs to \"{}\" and \"{}\"", id, spec.vocab[id], token));
    }
    spec.vocab[id] = token;
  }
  return {};
}

Status read_merges(const Json& model, TokenizerSpec& spec) {
  const Json& merges = member(model, "merges");
  const Json& vocab = model["vocab"];
  if (!merges.is_array()) return corrupt("model.merges is missing or not a list");
  for (const Json& merge : merges) {
    std::string left, right;
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      const size_t space = text.find(' ');
      if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
        return corrupt(fmt::format("model.merges: {} is not two tokens with a space between", shown(merge)));
      }
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else {
      return corrupt(fmt::format("model.merges: {} is neither \"a b\" nor [\"a\", \"b\"]", shown(merge)));
    }
    for (const std::string& part : {left, right}) {
      if (!vocab.contains(part)) {
        return corrupt(
            fmt::format("model.merges: \"{}\" of {} is not in the vocabulary", part, shown(merge)));
      }
    }
    spec.merges.emplace_back(vocab[left].get<uint32_t>(), vocab[right].get<uint32_t>());
  }
  return {};
}

Status read_bpe(const Json& model, TokenizerSpec& spec) {
  for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json& value = member(model, key);
    const bool neutral = value.is_null() || value == "" || value == 0.0;
    if (!neutral) return not_supported(fmt::format("model.{}", key), value);
  }
  RETURN_IF_ERROR(read_vocab(model, spec));
  RETURN_IF_ERROR(read_merges(model, spec));
  ASSIGN_OR_RETURN(spec.ignore_merges, flag(model, "ignore_merges", false));
  ASSIGN_OR_RETURN(spec.byte_fallback, flag(model, "byte_fallback", false));
  ASSIGN_OR_RETURN(spec.fuse_unknown, flag(model, "fuse_unk", false));
  const Json& unknown = member(model, "unk_token");
  if (!unknown.is_null() && !unknown.is_string()) return corrupt("model.unk_token is not a string");
  spec.unknown_token = unknown.dump();
  return {};
}

Status read_unigram(const Json& model, TokenizerSpec& spec) {
  const Json& vocab = member(model, "vocab");
  if (!vocab.is_array()) return corrupt("model.vocab is missing or not a list of [token, score]");
  for (const Json& entry : vocab) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || entry[0] == "" ||
        !entry[1].is_number())
      return corrupt(fmt::format("model.vocab: entry {} is {}, expected [token, score]", spec.vocab.size(),
                                 shown(entry)));
    spec.vocab.push_back(entry[0].get<std::string>());
    spec.scores.push_back(entry[1].get<double>());
  }
  const Json& unknown = member(model, "unk_id");
  if (unknown.is_null()) return not_supported("model.unk_id", unknown);
  ASSIGN_OR_RETURN(spec.unknown_id, id_value(unknown, "the unknown token (model.unk_id)"));
  ASSIGN_OR_RETURN(spec.byte_fallback, flag(model, "byte_fallback", false));
  return {};
}

// Reads the model part of a file that Ostro wrote for a SentencePiece .model.
Status read_sentencepiece(const Json& model, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(const std::string text, text_field(model, "proto"));
  ASSIGN_OR_RETURN(spec.sentencepiece, base64_decode(text));
  ASSIGN_OR_RETURN(spec.add_bos, flag(model, "add_bos", false));
  ASSIGN_OR_RETURN(spec.add_eos, flag(model, "add_eos", false));
  return {};
}

Status read_model(const Json& root, TokenizerSpec& spec) {
  const Json& model = member(root, "model");
  if (!model.is_object()) return corrupt("\"model\" is missing");
  const std::string type = type_of(model);
  if (type.empty() || type == "BPE") return read_bpe(model, spec);
  if (type == "Unigram") {
    spec.kind = ModelKind::kUnigram;
    return read_unigram(model, spec);
  }
  if (type == "SentencePiece") {
    spec.kind = ModelKind::kSentencePiece;
    return read_sentencepiece(model, spec);
  }
  return unsupported(fmt::format("model {} is not supported (BPE and Unigram are)", type));
}

Status read_added_tokens(const Json& root, TokenizerSpec& spec) {
  const Json& tokens = member(root, "added_tokens");
  if (tokens.is_null()) return {};
  if (!tokens.is_array()) return corrupt("\"added_tokens\" is not a list");
  for (const Json& json : tokens) {
    const Json& content = member(json, "content");
    if (!json.is_object() || !content.is_string()) {
      return corrupt(fmt::format("added_tokens: {} has no \"content\"", shown(json)));
    }
    AddedToken token;
    token.content = content.get<std::string>();
    ASSIGN_OR_RETURN(token.id, id_value(member(json, "id"), "added token \"" + token.content + "\""));
    ASSIGN_OR_RETURN(token.single_word, flag(json, "single_word", false));
    ASSIGN_OR_RETURN(token.lstrip, flag(json, "lstrip", false));
    ASSIGN_OR_RETURN(token.rstrip, flag(json, "rstrip", false));
    ASSIGN_OR_RETURN(token.special, flag(json, "special", false));
    ASSIGN_OR_RETURN(token.normalized, flag(json, "normalized", !token.special));
    spec.added_tokens.push_back(std::move(token));
  }
  return {};
}

Result<Splitter> splitter_of(const Json& split) {
  const Json& regex = member(member(split, "pattern"), "Regex");
  ASSIGN_OR_RETURN(const bool invert, flag(split, "invert", false));
  // The pattern matches all of the text, so these two settings give the same pieces.
  const bool matches_are_pieces = member(split, "behavior") == (invert ? "Removed" : "Isolated");
  if (!regex.is_string() || !matches_are_pieces) return not_supported("pre_tokenizer", split);
  const auto splitter = splitter_of_pattern(regex.get_ref<const std::string&>());
  if (splitter) return *splitter;
  std::string known;
  for (const KnownPattern& p : known_patterns())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", p.name);
  return unsupported(fmt::format(
      "pre_tokenizer: the Split pattern {} is not known (known, by their exact text: those of {})",
      regex.dump(), known));
}

// Reads the plain byte-level form, for which the spec has fields. Any other form is an error.
Status read_byte_level(const Json& json, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(const auto steps, components(json, "pre_tokenizer", "pretokenizers"));
  spec.splitter = Splitter::kNone;
  bool has_byte_level = false;
  for (const Json* step : steps) {
    const std::string type = type_of(*step);
    if (type == "Split" && spec.splitter == Splitter::kNone && !has_byte_level) {
      ASSIGN_OR_RETURN(spec.splitter, splitter_of(*step));
    } else if (type == "ByteLevel" && !has_byte_level) {
      has_byte_level = true;
      ASSIGN_OR_RETURN(const bool prefix, flag(*step, "add_prefix_space", true));
      ASSIGN_OR_RETURN(spec.byte_level_splits, flag(*step, "use_regex", true));
      if (spec.byte_level_splits && spec.splitter != Splitter::kNone)
        return not_supported("pre_tokenizer", json);
      (spec.splitter == Splitter::kNone ? spec.prefix_text : spec.prefix_pieces) = prefix;
      if (spec.byte_level_splits) spec.splitter = Splitter::kGpt2;
    } else {
      return not_supported("pre_tokenizer", *step);
    }
  }
  if (!has_byte_level) return not_supported("pre_tokenizer without ByteLevel:", json);
  return {};
}

Status read_pre_tokenizer(const Json& root, TokenizerSpec& spec) {
  const Json& json = member(root, "pre_tokenizer");
  if (spec.kind == ModelKind::kByteBpe) {
    TokenizerSpec plain;
    if (read_byte_level(json, plain).ok()) {
      spec.splitter = plain.splitter;
      spec.byte_level_splits = plain.byte_level_splits;
      spec.prefix_text = plain.prefix_text;
      spec.prefix_pieces = plain.prefix_pieces;
      return {};
    }
  }
  ASSIGN_OR_RETURN(const PreTokenizer steps, PreTokenizer::from_json(json));
  if (steps.byte_level() && spec.kind != ModelKind::kByteBpe)
    return not_supported("pre_tokenizer of a Unigram model:", json);
  if (!steps.byte_level() && spec.kind == ModelKind::kByteBpe) spec.kind = ModelKind::kCharBpe;
  spec.pre_tokenizer = json.dump();
  return {};
}

Status read_decoder(const Json& root, TokenizerSpec& spec) {
  const Json& json = member(root, "decoder");
  ASSIGN_OR_RETURN(const auto steps, components(json, "decoder", "decoders"));
  const bool plain =
      steps.size() == 1 && type_of(*steps.front()) == "ByteLevel" && spec.kind == ModelKind::kByteBpe;
  if (!plain) spec.decoder = json.dump();
  return {};
}

Result<std::vector<uint32_t>> template_ids(const Json& processor, const Json& name) {
  std::vector<uint32_t> out;
  const Json& token =
      name.is_string() ? member(member(processor, "special_tokens"), name.get<std::string>().c_str()) : name;
  const Json& ids = member(token, "ids");
  if (!ids.is_array()) return corrupt(fmt::format("post_processor: no special token {}", shown(name)));
  for (const Json& id : ids) {
    ASSIGN_OR_RETURN(const uint32_t value, id_value(id, "special token " + shown(name)));
    out.push_back(value);
  }
  return out;
}

// Reads which ids a TemplateProcessing adds around a text into spec.prefix and spec.suffix.
Status read_template(const Json& processor, TokenizerSpec& spec) {
  const Json& single = member(processor, "single");
  if (!single.is_array()) return corrupt("post_processor: TemplateProcessing without \"single\"");
  std::vector<uint32_t> before, after;
  int sequences = 0;
  for (const Json& item : single) {
    if (item.is_object() && item.contains("SpecialToken")) {
      ASSIGN_OR_RETURN(const auto ids, template_ids(processor, member(item["SpecialToken"], "id")));
      auto& side = sequences == 0 ? before : after;
      side.insert(side.end(), ids.begin(), ids.end());
    } else if (item.is_object() && member(item, "Sequence").is_object() &&
               member(item["Sequence"], "id") == "A") {
      ++sequences;
    } else {
      return not_supported("post_processor", item);
    }
  }
  if (sequences != 1) return not_supported("post_processor", single);
  spec.prefix.insert(spec.prefix.begin(), before.begin(), before.end());
  spec.suffix.insert(spec.suffix.end(), after.begin(), after.end());
  return {};
}

// Reads the id of a pair like ["</s>", 2], as BertProcessing and RobertaProcessing have it.
Result<uint32_t> named_id(const Json& processor, const char* key) {
  const Json& pair = member(processor, key);
  if (!pair.is_array() || pair.size() != 2)
    return corrupt(fmt::format("post_processor: \"{}\" is {}, expected [token, id]", key, shown(pair)));
  return id_value(pair[1], shown(pair[0]));
}

Status read_post_processor(const Json& root, TokenizerSpec& spec) {
  const Json& json = member(root, "post_processor");
  ASSIGN_OR_RETURN(const auto steps, components(json, "post_processor", "processors"));
  for (const Json* step : steps) {
    const std::string type = type_of(*step);
    if (type == "TemplateProcessing") {
      RETURN_IF_ERROR(read_template(*step, spec));
    } else if (type == "RobertaProcessing" || type == "BertProcessing") {
      ASSIGN_OR_RETURN(const uint32_t before, named_id(*step, "cls"));
      ASSIGN_OR_RETURN(const uint32_t after, named_id(*step, "sep"));
      spec.prefix.insert(spec.prefix.begin(), before);
      spec.suffix.push_back(after);
    } else if (type != "ByteLevel") {  // ByteLevel changes offsets alone
      return not_supported("post_processor", *step);
    }
  }
  spec.post_processor = json.dump();
  return {};
}

Result<TokenizerSpec> read_spec(std::string_view text) {
  if (nests_too_deep(text)) return corrupt("not a tokenizer.json: more than 100 nested brackets");
  const Json root = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return corrupt("not a JSON object");
  for (const char* key : {"truncation", "padding"}) {
    const Json& value = member(root, key);
    if (!value.is_null()) return not_supported(key, value);
  }
  TokenizerSpec spec;
  RETURN_IF_ERROR(read_model(root, spec));
  RETURN_IF_ERROR(read_added_tokens(root, spec));
  if (spec.kind == ModelKind::kSentencePiece) return spec;  // the .model defines everything else
  spec.normalizer = member(root, "normalizer").dump();
  RETURN_IF_ERROR(read_pre_tokenizer(root, spec));
  RETURN_IF_ERROR(read_decoder(root, spec));
  RETURN_IF_ERROR(read_post_processor(root, spec));
  return spec;
}

OrderedJson byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

OrderedJson write_pre_tokenizer(const TokenizerSpec& spec) {
  if (!spec.pre_tokenizer.empty()) return OrderedJson::parse(spec.pre_tokenizer);
  if (spec.byte_level_splits || spec.splitter == Splitter::kNone)
    return byte_level(spec.prefix_text, spec.byte_level_splits);
  const OrderedJson split = {{"type", "Split"},
                             {"pattern", {{"Regex", pattern_of(spec.splitter)}}},
                             {"behavior", "Isolated"},
                             {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level(spec.prefix_pieces, false)}}};
}

OrderedJson write_added_tokens(const TokenizerSpec& spec) {
  OrderedJson out = OrderedJson::array();
  for (const AddedToken& token : spec.added_tokens) {
    out.push_back({{"id", token.id},
                   {"content", token.content},
                   {"single_word", token.single_word},
                   {"lstrip", token.lstrip},
                   {"rstrip", token.rstrip},
                   {"normalized", token.normalized},
                   {"special", token.special}});
  }
  return out;
}

OrderedJson write_unigram(const TokenizerSpec& spec) {
  OrderedJson vocab = OrderedJson::array();
  for (uint32_t id = 0; id < spec.vocab.size(); ++id)
    vocab.push_back(OrderedJson::array({spec.vocab[id], spec.scores[id]}));
  return {{"type", "Unigram"},
          {"unk_id", *spec.unknown_id},
          {"vocab", std::move(vocab)},
          {"byte_fallback", spec.byte_fallback}};
}

OrderedJson write_bpe(const TokenizerSpec& spec) {
  OrderedJson vocab = OrderedJson::object();
  // ordered_json's operator[] searches; the names are known to be distinct, so append directly.
  auto& entries = vocab.get_ref<OrderedJson::object_t&>();
  for (uint32_t id = 0; id < spec.vocab.size(); ++id) {
    if (!spec.vocab[id].empty())
      static_cast<std::vector<OrderedJson::object_t::value_type>&>(entries).emplace_back(spec.vocab[id], id);
  }
  OrderedJson merges = OrderedJson::array();
  for (const auto& [left, right] : spec.merges)
    merges.push_back(OrderedJson::array({spec.vocab[left], spec.vocab[right]}));
  const bool by_characters =
      spec.kind == ModelKind::kCharBpe;  // no id depends on these if all bytes have tokens
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", OrderedJson::parse(spec.unknown_token)},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", by_characters && spec.fuse_unknown},
          {"byte_fallback", by_characters && spec.byte_fallback},
          {"ignore_merges", spec.ignore_merges},
          {"vocab", std::move(vocab)},
          {"merges", std::move(merges)}};
}

OrderedJson write_spec(const TokenizerSpec& spec) {
  if (spec.kind == ModelKind::kSentencePiece) {
    OrderedJson out = {{"version", "1.0"},
                       {"model",
                        {{"type", "SentencePiece"},
                         {"add_bos", spec.add_bos},
                         {"add_eos", spec.add_eos},
                         {"proto", base64_encode(spec.sentencepiece)}}}};
    if (!spec.added_tokens.empty()) out["added_tokens"] = write_added_tokens(spec);
    return out;
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", write_added_tokens(spec)},
          {"normalizer", OrderedJson::parse(spec.normalizer)},
          {"pre_tokenizer", write_pre_tokenizer(spec)},
          {"post_processor", OrderedJson::parse(spec.post_processor)},
          {"decoder", spec.decoder.empty() ? byte_level(true, true) : OrderedJson::parse(spec.decoder)},
          {"model", spec.kind == ModelKind::kUnigram ? write_unigram(spec) : write_bpe(spec)}};
}

}  // namespace

Result<Tokenizer> Tokenizer::from_json(std::string_view json, std::string_view name) {
  auto spec = read_spec(json);
  if (!spec.ok()) return spec.error().with_context(name);
  auto tokenizer = from_spec(std::move(spec).value());
  if (!tokenizer.ok()) return tokenizer.error().with_context(name);
  const TokenizerSpec& s = tokenizer->spec();
  if (tokenizer->missing_bytes() > 0 && (s.unknown_token != "null" || s.byte_fallback)) {
    return unsupported(fmt::format("model.unk_token is {} and byte_fallback {}, but {} bytes have no token",
                                   s.unknown_token, s.byte_fallback, tokenizer->missing_bytes()))
        .with_context(name);
  }
  return tokenizer;
}

std::string Tokenizer::to_json() const { return write_spec(state_->spec).dump(2) + "\n"; }

std::string Tokenizer::canonical_json() const { return Json(write_spec(state_->spec)).dump(); }

const std::string& Tokenizer::hash() const {
  std::call_once(state_->hashed, [&] { state_->hash = sha256_hex(canonical_json()); });
  return state_->hash;
}

}  // namespace ostro::tokenizer
