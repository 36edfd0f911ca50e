#include "ostro/tokenizer/sentencepiece/sentencepiece.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace ostro::tokenizer {
namespace {

std::vector<uint32_t> encoded(std::vector<SentencePieceProto::Piece> pieces, std::string_view text) {
  SentencePieceProto proto;
  proto.pieces = std::move(pieces);
  proto.pieces.insert(proto.pieces.begin(), {"<unk>", 0, PieceType::kUnknown});
  const auto model = SentencePiece::from_proto(std::move(proto));
  REQUIRE_MESSAGE(model.ok(), model.error().message());
  ModelScratch scratch;
  std::vector<uint32_t> ids;
  model->model().encode(text, scratch, ids);
  return ids;
}

// The expected ids are those of the sentencepiece library 0.2.3.
TEST_CASE("unigram: a user-defined piece scores 0.1 for every byte after the first, whatever the file says") {
  const auto with = [](float own, float rival) {
    return encoded({{"abc", own, PieceType::kUserDefined}, {"a", rival}, {"bc", 0}}, "abc");
  };
  for (const float own : {-5.0f, 0.0f, 7.0f}) {
    CHECK(with(own, 0.19f) == std::vector<uint32_t>{1});
    CHECK(with(own, 0.21f) == std::vector<uint32_t>{2, 3});
  }
  // The product is rounded to single precision once: 0.1f * 9 would be the next float above 0.9f.
  const auto ten_bytes = [](float rival) {
    return encoded({{"abbbbbbbbb", 0, PieceType::kUserDefined}, {"a", rival}, {"bbbbbbbbb", 0}},
                   "abbbbbbbbb");
  };
  CHECK(ten_bytes(0.9f) == std::vector<uint32_t>{1});
  CHECK(ten_bytes(std::nextafter(0.9f, 1.0f)) == std::vector<uint32_t>{2, 3});
}

}  // namespace
}  // namespace ostro::tokenizer
