#include "ostro/tokenizer/model/tokenizer.h"

#include <fmt/core.h>

#include <algorithm>

#include "ostro/tokenizer/model/byte_alphabet.h"
#include "ostro/tokenizer/model/shown_token.h"
#include "ostro/tokenizer/model/tokenizer_state.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

// Usual names of the tokens that end and begin a document, the likeliest first.
constexpr std::string_view kEosNames[] = {"<|endoftext|>", "<|end_of_text|>", "</s>",
                                          "<eos>",         "<|eos|>",         "<EOS>"};
constexpr std::string_view kBosNames[] = {"<|begin_of_text|>", "<s>",   "<bos>",
                                          "<|bos|>",           "<BOS>", "<|startoftext|>"};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::from_spec(TokenizerSpec spec) {
  auto state = std::make_unique<State>();
  State& s = *state;
  s.spec = std::move(spec);
  if (s.spec.kind == ModelKind::kSentencePiece) RETURN_IF_ERROR(s.make_sentencepiece());
  const auto& vocab = s.spec.vocab;

  size_t size = vocab.size();
  for (const AddedToken& token : s.spec.added_tokens) size = std::max(size, size_t{token.id} + 1);
  s.bytes.resize(size);
  s.added.resize(size);
  const auto bytes_of = [&s](const std::string& token) {
    const auto bytes = s.spec.kind == ModelKind::kByteBpe ? characters_to_bytes(token) : std::nullopt;
    return bytes ? *bytes : token;
  };
  for (uint32_t id = 0; id < vocab.size(); ++id) {
    if (vocab[id].empty()) continue;
    if (!is_valid_utf8(vocab[id])) return corrupt(fmt::format("token {} is not UTF-8", id));
    if (!s.ids.emplace(vocab[id], id).second) {
      return corrupt(
          fmt::format("token {} has two ids: {} and {}", shown_token(vocab[id]), s.ids[vocab[id]], id));
    }
    s.bytes[id] = bytes_of(vocab[id]);
  }
  RETURN_IF_ERROR(s.make_parts());
  for (const AddedToken& token : s.spec.added_tokens) {
    if (token.content.empty() || !is_valid_utf8(token.content)) {
      return corrupt(fmt::format("added token {} is empty or not UTF-8", token.id));
    }
    const bool in_model = token.id < vocab.size() && !vocab[token.id].empty();
    const auto [it, is_new] = s.ids.emplace(token.content, token.id);
    if (it->second != token.id || s.added[token.id] != nullptr || (is_new && in_model)) {
      return corrupt(fmt::format("added token {} has id {}, but the name or the id is taken",
                                 shown_token(token.content), token.id));
    }
    s.added[token.id] = &token;
    s.bytes[token.id] = bytes_of(token.content);
  }
  RETURN_IF_ERROR(s.make_matchers());
  for (const auto* ids : {&s.spec.prefix, &s.spec.suffix}) {
    for (const uint32_t id : *ids) {
      if (id >= size || (s.bytes[id].empty()))
        return corrupt(fmt::format("post_processor: there is no token {}", id));
    }
  }

  const auto first_known = [&s](const auto& names) -> std::optional<uint32_t> {
    for (const std::string_view name : names) {
      const auto it = s.ids.find(std::string(name));
      if (it != s.ids.end() && s.added[it->second] != nullptr) return it->second;
    }
    return std::nullopt;
  };
  if (!s.sentencepiece) {
    s.eos = first_known(kEosNames);
    s.bos = first_known(kBosNames);
  }
  return Tokenizer(std::move(state));
}

Result<Tokenizer> Tokenizer::from_sentencepiece(std::string bytes, std::string_view name, bool add_bos,
                                                bool add_eos) {
  TokenizerSpec spec;
  spec.kind = ModelKind::kSentencePiece;
  spec.sentencepiece = std::move(bytes);
  spec.add_bos = add_bos;
  spec.add_eos = add_eos;
  auto tokenizer = from_spec(std::move(spec));
  if (!tokenizer.ok()) return tokenizer.error().with_context(name);
  return tokenizer;
}

std::vector<uint32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::vector<uint32_t> out;
  Encoder(*this).encode(text, options, out);
  return out;
}

Result<std::string> Tokenizer::decode_to(std::span<const uint32_t> ids, bool skip_special_tokens,
                                         bool raw) const {
  const State& s = *state_;
  std::vector<uint32_t> kept;
  kept.reserve(ids.size());
  for (const uint32_t id : ids) {
    if (id >= s.bytes.size() || s.bytes[id].empty()) {
      return invalid_argument(fmt::format("there is no token {} in a vocabulary of {}", id, vocab_size()));
    }
    if (skip_special_tokens && s.added[id] != nullptr && s.added[id]->special) continue;
    kept.push_back(id);
  }
  std::string out;
  if (s.sentencepiece) {  // the model's pieces, and between them the added tokens as they are
    const std::span<const uint32_t> all(kept);
    for (size_t begin = 0; begin < all.size();) {
      size_t end = begin;
      while (end < all.size() && s.added[all[end]] == nullptr) ++end;
      out += s.sentencepiece->decode(all.subspan(begin, end - begin), begin == 0, raw);
      if (end < all.size()) out += s.bytes[all[end]];
      begin = end + 1;
    }
    return out;
  }
  if (!s.decoder) {
    for (const uint32_t id : kept) out += s.bytes[id];
    return out;
  }
  std::vector<std::string> tokens;
  tokens.reserve(kept.size());
  const bool in_bytes =
      s.spec.kind == ModelKind::kByteBpe;  // then decoders want the alphabet of the vocabulary
  for (const uint32_t id : kept)
    tokens.emplace_back(in_bytes ? *id_to_token(id) : std::string_view(s.bytes[id]));
  return s.decoder->decode(std::move(tokens), raw);
}

Result<std::string> Tokenizer::decode_bytes(std::span<const uint32_t> ids, bool skip_special_tokens) const {
  return decode_to(ids, skip_special_tokens, /*raw=*/true);
}

Result<std::string> Tokenizer::decode(std::span<const uint32_t> ids, bool skip_special_tokens) const {
  ASSIGN_OR_RETURN(std::string bytes, decode_to(ids, skip_special_tokens, /*raw=*/false));
  return is_valid_utf8(bytes) ? bytes : repair_utf8(bytes);
}

uint32_t Tokenizer::vocab_size() const { return static_cast<uint32_t>(state_->bytes.size()); }

std::optional<uint32_t> Tokenizer::token_to_id(std::string_view token) const {
  const auto it = state_->ids.find(std::string(token));
  return it == state_->ids.end() ? std::nullopt : std::optional(it->second);
}

std::optional<std::string_view> Tokenizer::id_to_token(uint32_t id) const {
  const State& s = *state_;
  if (id < s.added.size() && s.added[id] != nullptr) return s.added[id]->content;
  if (id < s.spec.vocab.size() && !s.spec.vocab[id].empty()) return s.spec.vocab[id];
  return std::nullopt;
}

std::optional<uint32_t> Tokenizer::eos_id() const { return state_->eos; }
std::optional<uint32_t> Tokenizer::bos_id() const { return state_->bos; }

Status Tokenizer::set_eos_token(std::string_view token) {
  const auto id = token_to_id(token);
  if (!id) return not_found(fmt::format("eos token {} is not in the vocabulary", shown_token(token)));
  state_->eos = id;
  return {};
}

Status Tokenizer::set_bos_token(std::string_view token) {
  const auto id = token_to_id(token);
  if (!id) return not_found(fmt::format("bos token {} is not in the vocabulary", shown_token(token)));
  state_->bos = id;
  return {};
}

std::optional<bool> Tokenizer::begins_texts() const { return state_->begins_texts; }
void Tokenizer::set_begins_texts(bool begins) { state_->begins_texts = begins; }
const std::vector<uint32_t>& Tokenizer::more_stops() const { return state_->more_stops; }
void Tokenizer::set_more_stops(std::vector<uint32_t> ids) { state_->more_stops = std::move(ids); }
const std::string& Tokenizer::class_name() const { return state_->class_name; }
void Tokenizer::set_class_name(std::string name) { state_->class_name = std::move(name); }

int Tokenizer::missing_bytes() const {
  if (state_->spec.kind != ModelKind::kByteBpe) return 0;
  const auto& ids = state_->model.byte_ids;
  return static_cast<int>(std::count(ids.begin(), ids.end(), kNoToken));
}

const TokenizerSpec& Tokenizer::spec() const { return state_->spec; }

}  // namespace ostro::tokenizer
