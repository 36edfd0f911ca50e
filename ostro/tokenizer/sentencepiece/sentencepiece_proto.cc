#include "ostro/tokenizer/sentencepiece/sentencepiece_proto.h"

#include <fmt/core.h>

#include <cstring>

namespace ostro::tokenizer {
namespace {

// One field of a protobuf message: a number for the varint kind, bytes for the others.
struct Field {
  uint64_t number = 0;
  int wire = 0;
  uint64_t value = 0;
  std::string_view bytes;
};

constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

bool take_varint(std::string_view& rest, uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(rest[0]);
    rest.remove_prefix(1);
    value |= uint64_t{byte & 127u} << shift;
    if (byte < 128) return true;
  }
  return false;
}

bool take_field(std::string_view& rest, Field& field) {
  uint64_t tag = 0, size = 0;
  if (!take_varint(rest, tag)) return false;
  field = {.number = tag >> 3, .wire = static_cast<int>(tag & 7)};
  switch (field.wire) {
    case kVarint: return take_varint(rest, field.value);
    case kFixed64: size = 8; break;
    case kFixed32: size = 4; break;
    case kBytes:
      if (!take_varint(rest, size)) return false;
      break;
    default: return false;
  }
  if (size > rest.size()) return false;
  field.bytes = rest.substr(0, size);
  rest.remove_prefix(size);
  return true;
}

// Calls f(field) for every field of a message.
template <typename F>
Status for_each_field(std::string_view message, const char* what, F&& f) {
  std::string_view rest = message;
  while (!rest.empty()) {
    const size_t at = message.size() - rest.size();
    Field field;
    if (!take_field(rest, field))
      return corrupt(fmt::format(
          "not a SentencePiece model: byte {} of {} is not a field of a protobuf message", at, what));
    RETURN_IF_ERROR(f(field));
  }
  return {};
}

Status read_piece(std::string_view message, SentencePieceProto& proto) {
  SentencePieceProto::Piece piece;
  RETURN_IF_ERROR(for_each_field(message, "a piece", [&](const Field& f) -> Status {
    if (f.number == 1 && f.wire == kBytes) piece.text = f.bytes;
    if (f.number == 2 && f.wire == kFixed32) std::memcpy(&piece.score, f.bytes.data(), 4);
    if (f.number == 3 && f.wire == kVarint) {
      if (f.value < 1 || f.value > 6)
        return corrupt(fmt::format("piece {} has type {}, expected 1 to 6", proto.pieces.size(), f.value));
      piece.type = static_cast<PieceType>(f.value);
    }
    return {};
  }));
  proto.pieces.push_back(std::move(piece));
  return {};
}

Status read_trainer(std::string_view message, SentencePieceProto& proto) {
  return for_each_field(message, "trainer_spec", [&](const Field& f) -> Status {
    if (f.number == 3 && f.wire == kVarint) {
      if (f.value < 1 || f.value > 4)
        return corrupt(fmt::format("model_type is {}, expected 1 to 4", f.value));
      proto.kind = static_cast<SentencePieceProto::Kind>(f.value);
    }
    if (f.number == 24) proto.whitespace_as_suffix = f.value != 0;
    if (f.number == 35) proto.byte_fallback = f.value != 0;
    if (f.number == 44 && f.wire == kBytes) proto.unknown_surface = f.bytes;
    if (f.number == 46 && f.wire == kBytes && !f.bytes.empty()) proto.bos_piece = f.bytes;
    if (f.number == 47 && f.wire == kBytes && !f.bytes.empty()) proto.eos_piece = f.bytes;
    return {};
  });
}

Status read_normalizer(std::string_view message, SentencePieceProto& proto) {
  return for_each_field(message, "normalizer_spec", [&](const Field& f) -> Status {
    if (f.number == 2 && f.wire == kBytes) proto.charsmap = f.bytes;
    if (f.number == 3) proto.add_dummy_prefix = f.value != 0;
    if (f.number == 4) proto.remove_extra_whitespaces = f.value != 0;
    if (f.number == 5) proto.escape_whitespaces = f.value != 0;
    return {};
  });
}

}  // namespace

Result<SentencePieceProto> SentencePieceProto::parse(std::string_view bytes) {
  SentencePieceProto proto;
  RETURN_IF_ERROR(for_each_field(bytes, "the model", [&](const Field& f) -> Status {
    if (f.wire != kBytes) return {};
    if (f.number == 1) return read_piece(f.bytes, proto);
    if (f.number == 2) return read_trainer(f.bytes, proto);
    if (f.number == 3) return read_normalizer(f.bytes, proto);
    if (f.number == 5) {
      return for_each_field(f.bytes, "denormalizer_spec", [&](const Field& inner) -> Status {
        if (inner.number == 2 && !inner.bytes.empty()) proto.has_denormalizer = true;
        return {};
      });
    }
    return {};
  }));
  if (proto.pieces.empty()) return corrupt("not a SentencePiece model: it has no pieces");
  return proto;
}

}  // namespace ostro::tokenizer
