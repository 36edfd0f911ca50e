#include "ostro/tokenizer/sentencepiece/sentencepiece.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include "ostro/tokenizer/sentencepiece/byte_token.h"
#include "ostro/tokenizer/sentencepiece/char_bpe.h"
#include "ostro/tokenizer/sentencepiece/unigram.h"
#include "ostro/tokenizer/sentencepiece/words.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr float kUnknownPenalty = 10;
constexpr double kUserDefinedBonus = 0.1;  // for every byte after the first

bool is_ordinary(PieceType type) { return type == PieceType::kNormal || type == PieceType::kUserDefined; }

void replace_space_symbols(std::string_view piece, std::string& out) {
  for (size_t i = 0; i < piece.size();) {
    const size_t next = std::min(piece.find(kSpaceSymbol, i), piece.size());
    out.append(piece.substr(i, next - i));
    if (next < piece.size()) out += ' ';
    i = next + kSpaceSymbol.size();
  }
}

}  // namespace

Status SentencePiece::check_pieces(std::array<uint32_t, 256>& byte_ids) {
  byte_ids.fill(kNoToken);
  bool has_unknown = false;
  for (uint32_t id = 0; id < proto_.pieces.size(); ++id) {
    const auto& piece = proto_.pieces[id];
    if (piece.text.empty() || !is_valid_utf8(piece.text) || piece.text.find('\0') != std::string::npos)
      return corrupt(fmt::format("piece {} is empty, not UTF-8 or has a zero byte", id));
    if (piece.type == PieceType::kUnknown) {
      if (has_unknown)
        return corrupt(fmt::format("pieces {} and {} are both the unknown piece", unknown_, id));
      has_unknown = true;
      unknown_ = id;
    }
    if (piece.type == PieceType::kByte) {
      const auto byte = byte_of_token(piece.text);
      if (!byte || !proto_.byte_fallback)
        return corrupt(fmt::format("piece {} (\"{}\") is of type byte, but {}", id, piece.text,
                                   byte ? "byte_fallback is off" : "its text names no byte"));
      byte_ids[*byte] = id;
    }
  }
  if (!has_unknown) return corrupt("no piece is of type unknown");
  if (proto_.byte_fallback && std::count(byte_ids.begin(), byte_ids.end(), kNoToken) > 0)
    return corrupt("byte_fallback is on, but not every byte has a piece");
  return {};
}

// SentencePiece merges two neighbours if their joined text is a piece, highest score first. So every way to
// cut a piece into two symbols is a merge, and its rank follows from the piece's score.
Status SentencePiece::make_bpe() {
  CharBpe::Parts parts;
  RETURN_IF_ERROR(check_pieces(parts.byte_ids));
  parts.byte_fallback = proto_.byte_fallback;
  parts.unknown = unknown_;
  std::unordered_map<std::string_view, uint32_t> symbols;
  std::map<float, uint32_t, std::greater<>> ranks;  // by score
  for (uint32_t id = 0; id < proto_.pieces.size(); ++id) {
    const auto& piece = proto_.pieces[id];
    if (piece.type == PieceType::kUnused)
      return unsupported(
          fmt::format("piece {} (\"{}\") of a BPE model is unused, which is not supported", id, piece.text));
    if (piece.type == PieceType::kUserDefined) parts.cut_out.insert(piece.text, id);
    if (!is_ordinary(piece.type)) continue;
    if (!symbols.emplace(piece.text, id).second)
      return corrupt(fmt::format("piece \"{}\" occurs twice", piece.text));
    ranks.emplace(piece.score, 0);
  }
  uint32_t next_rank = 0;
  for (auto& [score, rank] : ranks) rank = next_rank++;

  // Every character of a piece is a symbol. A character that is not a piece itself gets a number above all
  // ids.
  parts.first_virtual = static_cast<uint32_t>(proto_.pieces.size());
  for (const auto& piece : proto_.pieces) {
    if (!is_ordinary(piece.type)) continue;
    for (size_t i = 0; i < piece.text.size();) {
      const CodePoint c = read_code_point(piece.text.data() + i);
      const std::string_view text = std::string_view(piece.text).substr(i, c.length);
      const auto next = static_cast<uint32_t>(parts.first_virtual + parts.virtual_text.size());
      const auto [it, is_new] = symbols.emplace(text, next);
      if (is_new) parts.virtual_text.emplace_back(text);
      parts.characters.insert(c.value, it->second);
      i += c.length;
    }
  }
  for (uint32_t id = 0; id < proto_.pieces.size(); ++id) {
    const auto& piece = proto_.pieces[id];
    if (!is_ordinary(piece.type)) continue;
    const std::string_view text = piece.text;
    for (size_t i = read_code_point(text.data()).length; i < text.size();
         i += read_code_point(text.data() + i).length) {
      const auto left = symbols.find(text.substr(0, i)), right = symbols.find(text.substr(i));
      if (left != symbols.end() && right != symbols.end())
        parts.merges.push_back({left->second, right->second, ranks[piece.score], id});
    }
  }
  model_ = std::make_unique<CharBpe>(std::move(parts));
  return {};
}

Status SentencePiece::make_unigram() {
  Unigram::Parts parts;
  RETURN_IF_ERROR(check_pieces(parts.byte_ids));
  parts.byte_fallback = proto_.byte_fallback;
  parts.hugging_face = false;
  parts.tokens.single_precision = true;
  parts.tokens.unknown = unknown_;
  parts.words = true;
  float least = std::numeric_limits<float>::max();
  for (const auto& piece : proto_.pieces) {
    if (piece.type == PieceType::kNormal) least = std::min(least, piece.score);
  }
  parts.tokens.unknown_score = least - kUnknownPenalty;
  for (uint32_t id = 0; id < proto_.pieces.size(); ++id) {
    const auto& piece = proto_.pieces[id];
    // SentencePiece ignores the score that the file gives to a user-defined piece. The score counts even if
    // the piece has no rival: sums after it are rounded differently, and that can decide between equal paths.
    const bool user_defined = piece.type == PieceType::kUserDefined;
    const double bonus = kUserDefinedBonus * static_cast<double>(piece.text.size() - 1);
    parts.tokens.scores.push_back(user_defined ? static_cast<float>(bonus) : piece.score);
    if (!is_ordinary(piece.type)) continue;
    if (parts.tokens.trie.find(piece.text) != ByteTrie::kNone)
      return corrupt(fmt::format("piece \"{}\" occurs twice", piece.text));
    parts.tokens.trie.insert(piece.text, id);
    parts.words &= word_end(piece.text, 0) == piece.text.size();
  }
  parts.words &= parts.tokens.trie.find(kSpaceSymbol) != ByteTrie::kNone;
  model_ = std::make_unique<Unigram>(std::move(parts));
  return {};
}

Result<SentencePiece> SentencePiece::from_proto(SentencePieceProto proto) {
  SentencePiece out;
  out.proto_ = std::move(proto);
  ASSIGN_OR_RETURN(out.normalizer_, SentencePieceNormalizer::from_proto(out.proto_));
  if (out.proto_.has_denormalizer) return unsupported("denormalizer_spec with rules is not supported");
  switch (out.proto_.kind) {
    case SentencePieceProto::Kind::kBpe: RETURN_IF_ERROR(out.make_bpe()); return out;
    case SentencePieceProto::Kind::kUnigram: RETURN_IF_ERROR(out.make_unigram()); return out;
    case SentencePieceProto::Kind::kWord:
      return unsupported("model_type WORD is not supported (BPE and UNIGRAM are)");
    case SentencePieceProto::Kind::kChar: break;
  }
  return unsupported("model_type CHAR is not supported (BPE and UNIGRAM are)");
}

std::optional<uint32_t> SentencePiece::control_id(std::string_view piece) const {
  for (uint32_t id = 0; id < proto_.pieces.size(); ++id) {
    if (proto_.pieces[id].type == PieceType::kControl && proto_.pieces[id].text == piece) return id;
  }
  return std::nullopt;
}

std::string SentencePiece::decode(std::span<const uint32_t> ids, bool at_start, bool raw) const {
  std::string out, bytes;
  const auto finish_bytes = [&] {
    for (size_t i = 0; i < bytes.size();) {
      const size_t length = raw ? bytes.size() : valid_length_at(bytes, i);
      out += length > 0 ? std::string_view(bytes).substr(i, length) : kReplacementCharacter;
      i += std::max<size_t>(length, 1);
    }
    bytes.clear();
  };
  const bool strips = proto_.add_dummy_prefix || proto_.remove_extra_whitespaces;
  bool stripped = false;
  for (const uint32_t id : ids) {
    const auto& piece = proto_.pieces[id];
    if (piece.type == PieceType::kByte) {
      bytes.push_back(static_cast<char>(*byte_of_token(piece.text)));
      continue;
    }
    finish_bytes();
    if (stripped || !out.empty()) at_start = false;
    stripped = false;
    if (piece.type == PieceType::kUnknown) {
      out += proto_.unknown_surface;
    } else if (piece.type != PieceType::kControl) {
      std::string_view text = piece.text;
      if (at_start && strips && text.starts_with(kSpaceSymbol)) {
        text.remove_prefix(kSpaceSymbol.size());
        // With remove_extra_whitespaces all leading spaces are removed, not only the first.
        stripped = !proto_.remove_extra_whitespaces;
      }
      replace_space_symbols(text, out);
    }
  }
  finish_bytes();
  return out;
}

}  // namespace ostro::tokenizer
