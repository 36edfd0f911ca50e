// Builds the parts of a Tokenizer from its spec.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ostro/tokenizer/model/byte_alphabet.h"
#include "ostro/tokenizer/model/shown_token.h"
#include "ostro/tokenizer/model/tokenizer_state.h"
#include "ostro/tokenizer/sentencepiece/byte_token.h"
#include "ostro/tokenizer/sentencepiece/char_bpe.h"
#include "ostro/tokenizer/sentencepiece/unigram.h"
#include "ostro/tokenizer/split/json_fields.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr double kUnknownBelowLeast = 10;

std::array<uint32_t, 256> byte_token_ids(const std::unordered_map<std::string, uint32_t>& ids) {
  std::array<uint32_t, 256> out;
  for (size_t byte = 0; byte < out.size(); ++byte) {
    const auto it = ids.find(byte_token(static_cast<uint8_t>(byte)));
    out[byte] = it == ids.end() ? kNoToken : it->second;
  }
  return out;
}

// The score as Hugging Face reads it. Its JSON reader takes the digits as an integer, rounds that to a double
// and divides by a power of ten, which rounds again. The last bit matters when two paths have almost the same
// score.
double as_hugging_face_reads(double score) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), score, std::chars_format::scientific).ptr;
  uint64_t digits = 0;
  int exponent = 0;
  for (const char* p = text; p < end; ++p) {
    if (*p == 'e') {
      int written = 0;
      std::from_chars(p + (p[1] == '+' ? 2 : 1), end, written);
      exponent += written;
      break;
    }
    if (*p == '-') continue;
    if (*p == '.') {
      exponent -= static_cast<int>(std::find(p, static_cast<const char*>(end), 'e') - p - 1);
    } else {
      digits = 10 * digits + static_cast<uint64_t>(*p - '0');
    }
  }
  constexpr int kMost = 22;  // powers of ten that are exact
  if (!std::isfinite(score) || std::abs(exponent) > kMost) return score;
  double power = 1;
  for (int i = 0; i < std::abs(exponent); ++i) power *= 10;
  const auto whole = static_cast<double>(digits);
  return std::copysign(exponent < 0 ? whole / power : whole * power, score);
}

}  // namespace

Status Tokenizer::State::make_parts() {
  ASSIGN_OR_RETURN(normalizer, Normalizer::from_json(Json::parse(spec.normalizer)));
  if (!spec.pre_tokenizer.empty()) {
    ASSIGN_OR_RETURN(pre_tokenizer, PreTokenizer::from_json(Json::parse(spec.pre_tokenizer)));
  }
  if (!spec.decoder.empty()) {
    ASSIGN_OR_RETURN(decoder, TokenDecoder::from_json(Json::parse(spec.decoder)));
  }
  switch (spec.kind) {
    case ModelKind::kByteBpe: return make_byte_model();
    case ModelKind::kCharBpe: return make_char_model();
    case ModelKind::kUnigram: return make_unigram_model();
    case ModelKind::kSentencePiece:
      pre_tokenizer.emplace();  // a pre-tokenizer that does not cut
      break;
  }
  return {};
}

// Must run first, because it fills in the vocabulary.
Status Tokenizer::State::make_sentencepiece() {
  ASSIGN_OR_RETURN(SentencePieceProto proto, SentencePieceProto::parse(spec.sentencepiece));
  ASSIGN_OR_RETURN(sentencepiece, SentencePiece::from_proto(std::move(proto)));
  const SentencePieceProto& p = sentencepiece->proto();
  spec.vocab.clear();
  for (const auto& piece : p.pieces) spec.vocab.push_back(piece.text);
  bos = sentencepiece->control_id(p.bos_piece);
  eos = sentencepiece->control_id(p.eos_piece);
  spec.prefix.clear();
  spec.suffix.clear();
  if (spec.add_bos && bos) spec.prefix.push_back(*bos);
  if (spec.add_eos && eos) spec.suffix.push_back(*eos);
  return {};
}

// The token that the merge with this rank produces.
Result<uint32_t> Tokenizer::State::merged_id(uint32_t rank) const {
  const auto [left, right] = spec.merges[rank];
  const auto& vocab = spec.vocab;
  if (left >= vocab.size() || right >= vocab.size() || vocab[left].empty() || vocab[right].empty()) {
    return corrupt(
        fmt::format("merge {} joins ids {} and {}, which are not both in the vocabulary", rank, left, right));
  }
  const auto joined = ids.find(vocab[left] + vocab[right]);
  if (joined == ids.end()) {
    return corrupt(fmt::format("merge {} makes {}, which is not in the vocabulary", rank,
                               shown_token(vocab[left] + vocab[right])));
  }
  return joined->second;
}

Status Tokenizer::State::make_byte_model() {
  std::vector<std::string> token_bytes(spec.vocab.size());
  for (uint32_t id = 0; id < spec.vocab.size(); ++id) {
    auto bytes = characters_to_bytes(spec.vocab[id]);
    if (!bytes) continue;
    if (bytes->size() == 1) model.byte_ids[static_cast<uint8_t>((*bytes)[0])] = id;
    token_bytes[id] = std::move(*bytes);
  }
  std::vector<Merge> merges;
  merges.reserve(spec.merges.size());
  for (uint32_t rank = 0; rank < spec.merges.size(); ++rank) {
    ASSIGN_OR_RETURN(const uint32_t result, merged_id(rank));
    merges.push_back({spec.merges[rank].first, spec.merges[rank].second, result});
  }
  model.set_merges(std::move(merges));
  model.set_whole_pieces(token_bytes, spec.ignore_merges);
  return {};
}

Status Tokenizer::State::make_char_model() {
  CharBpe::Parts parts;
  for (uint32_t id = 0; id < spec.vocab.size(); ++id) {
    const std::string& token = spec.vocab[id];
    if (token.empty()) continue;
    const CodePoint c = read_code_point(token.data());
    if (c.length == token.size()) parts.characters.insert(c.value, id);
    if (spec.ignore_merges) parts.whole.insert(token, id);
  }
  parts.merges.reserve(spec.merges.size());
  for (uint32_t rank = 0; rank < spec.merges.size(); ++rank) {
    ASSIGN_OR_RETURN(const uint32_t result, merged_id(rank));
    parts.merges.push_back({spec.merges[rank].first, spec.merges[rank].second, rank, result});
  }
  parts.byte_fallback = spec.byte_fallback;
  parts.byte_ids = byte_token_ids(ids);
  parts.fuse_unknown = spec.fuse_unknown;
  const Json unknown = Json::parse(spec.unknown_token);
  if (unknown.is_string()) {
    const auto it = ids.find(unknown.get<std::string>());
    if (it == ids.end())
      return corrupt(fmt::format("model.unk_token {} is not in the vocabulary", shown(unknown)));
    parts.unknown = it->second;
  }
  piece_model = std::make_unique<CharBpe>(std::move(parts));
  return {};
}

Status Tokenizer::State::make_unigram_model() {
  Unigram::Parts parts;
  if (!spec.unknown_id || *spec.unknown_id >= spec.vocab.size() || spec.scores.size() != spec.vocab.size())
    return corrupt("model.unk_id is not the id of a token, or a token has no score");
  parts.tokens.unknown = *spec.unknown_id;
  std::vector<double>& scores = parts.tokens.scores;
  scores.resize(spec.scores.size());
  std::transform(spec.scores.begin(), spec.scores.end(), scores.begin(), as_hugging_face_reads);
  parts.tokens.unknown_score = *std::min_element(scores.begin(), scores.end()) - kUnknownBelowLeast;
  for (uint32_t id = 0; id < spec.vocab.size(); ++id) parts.tokens.trie.insert(spec.vocab[id], id);
  parts.byte_fallback = spec.byte_fallback;
  parts.byte_ids = byte_token_ids(ids);
  piece_model = std::make_unique<Unigram>(std::move(parts));
  return {};
}

// A token that is searched in normalized text is also decoded to its normal form, as in Hugging Face. Special
// tokens come first: if two tokens have the same normal form, Hugging Face takes the special one.
Status Tokenizer::State::make_matchers() {
  std::vector<const AddedToken*> plain_tokens, normalized_tokens;
  for (const bool special : {true, false}) {
    for (const AddedToken& token : spec.added_tokens) {
      if (token.special != special) continue;
      if (!token.normalized || sentencepiece) {  // transformers searches in a .model's text as it is
        plain_tokens.push_back(&token);
        continue;
      }
      std::string buffers[2];
      AddedToken& normal = normal_forms.emplace_back(token);
      normal.content = normalizer.apply(token.content, buffers);
      if (normal.content.empty())
        return unsupported(
            fmt::format("added token {} is empty after normalization", shown_token(token.content)));
      if (spec.kind == ModelKind::kByteBpe) {
        bytes[token.id] = characters_to_bytes(normal.content).value_or(normal.content);
      } else {
        bytes[token.id] = normal.content;
      }
      normalized_tokens.push_back(&normal);
    }
  }
  plain.emplace(std::move(plain_tokens));
  normalized.emplace(std::move(normalized_tokens));
  return {};
}

}  // namespace ostro::tokenizer
