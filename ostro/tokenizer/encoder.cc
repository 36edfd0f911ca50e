// Encoder: added tokens, then the pieces of the text between them.
#include "ostro/tokenizer/piece_encoder.h"
#include "ostro/tokenizer/tokenizer.h"
#include "ostro/tokenizer/tokenizer_state.h"
#include "ostro/tokenizer/utf8.h"

namespace ostro::tokenizer {

Encoder::Encoder(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer), pieces_(std::make_unique<PieceEncoder>(tokenizer.state_->model)) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

void Encoder::encode(std::string_view text, const EncodeOptions& options, std::vector<uint32_t>& out) {
  const auto& s = *tokenizer_.state_;
  const bool valid = is_valid_utf8(text);
  const std::string repaired = valid ? std::string() : repair_utf8(text);
  if (!valid) text = repaired;
  // Memory of pieces is worth its making only to an encoder that lives on, or to a long text.
  if (!pieces_->remembers() && (text.size() > 4096 || !segments_.empty())) pieces_->remember_pieces();

  if (options.add_special_tokens) out.insert(out.end(), s.spec.prefix.begin(), s.spec.prefix.end());
  segments_.clear();
  s.plain->split(text, options.parse_special_tokens, segments_);
  for (const Segment& segment : segments_) {
    if (segment.token != nullptr) {
      out.push_back(segment.token->id);
      continue;
    }
    parts_.clear();
    s.normalized->split(segment.text, options.parse_special_tokens, parts_);
    for (const Segment& part : parts_) {
      if (part.token != nullptr) {
        out.push_back(part.token->id);
      } else {
        encode_segment(part.text, out);
      }
    }
  }
  if (options.add_special_tokens) out.insert(out.end(), s.spec.suffix.begin(), s.spec.suffix.end());
}

void Encoder::encode_segment(std::string_view text, std::vector<uint32_t>& out) {
  const TokenizerSpec& spec = tokenizer_.spec();
  std::string with_space;
  if (spec.prefix_text && text.front() != ' ') {
    with_space = ' ' + std::string(text);
    text = with_space;
  }
  if (!spec.prefix_pieces) return pieces_->encode(spec.splitter, text, out);
  for_each_piece(spec.splitter, text, [&](std::string_view piece) {
    if (piece.front() != ' ') {
      prefixed_.assign(1, ' ').append(piece);
      piece = prefixed_;
    }
    pieces_->encode_piece(piece, out);
  });
}

}  // namespace ostro::tokenizer
