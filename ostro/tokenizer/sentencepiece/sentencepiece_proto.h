// SentencePieceProto: the fields of a SentencePiece .model file (a ModelProto of sentencepiece_model.proto).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::tokenizer {

enum class PieceType : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct SentencePieceProto {
  struct Piece {
    std::string text;
    float score = 0;
    PieceType type = PieceType::kNormal;
  };
  std::vector<Piece> pieces;  // by id
  // trainer_spec
  enum class Kind { kUnigram = 1, kBpe = 2, kWord = 3, kChar = 4 } kind = Kind::kUnigram;
  bool byte_fallback = false;
  bool whitespace_as_suffix = false;
  std::string unknown_surface = " \xE2\x81\x87 ";
  std::string bos_piece = "<s>", eos_piece = "</s>";
  // normalizer_spec, denormalizer_spec
  std::string charsmap;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
  bool has_denormalizer = false;

  // Parses the bytes of a .model. Error: kCorrupt, with the byte offset where parsing failed.
  static Result<SentencePieceProto> parse(std::string_view bytes);
};

}  // namespace ostro::tokenizer
