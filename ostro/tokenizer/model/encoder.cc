// The Encoder: finds added tokens, then normalizes, splits and encodes the text between them.
#include "ostro/tokenizer/model/tokenizer.h"
#include "ostro/tokenizer/model/tokenizer_state.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {

Encoder::Encoder(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer), work_(std::make_unique<Work>(tokenizer.state_->model)) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

// Two passes of added tokens: those of the text itself, then those of the normalized text between them.
// at_start holds for the part that begins the text.
void Encoder::encode(std::string_view text, const EncodeOptions& options, std::vector<uint32_t>& out) {
  const auto& s = *tokenizer_.state_;
  Work& work = *work_;
  const bool valid = is_valid_utf8(text);
  const std::string repaired = valid ? std::string() : repair_utf8(text);
  if (!valid) text = repaired;
  // The cache of pieces pays off only for an encoder that is used again, or for a long text.
  if (text.size() > 4096 || !work.segments.empty()) {
    if (s.pieces() != nullptr) {
      work.scratch.memory.enable();
    } else if (!work.bytes.remembers()) {
      work.bytes.remember_pieces();
    }
  }

  if (options.add_special_tokens) out.insert(out.end(), s.spec.prefix.begin(), s.spec.prefix.end());
  work.segments.clear();
  s.plain->split(text, options.parse_special_tokens, work.segments);
  for (const Segment& segment : work.segments) {
    if (segment.token != nullptr) {
      out.push_back(segment.token->id);
      continue;
    }
    const std::string_view normal =
        s.normal_form(segment.text, segment.text.data() == text.data(), work.normal);
    work.parts.clear();
    s.normalized->split(normal, options.parse_special_tokens, work.parts);
    for (const Segment& part : work.parts) {
      if (part.token != nullptr) {
        out.push_back(part.token->id);
      } else {
        encode_segment(part.text, segment.text.data() == text.data() && part.text.data() == normal.data(),
                       out);
      }
    }
  }
  if (options.add_special_tokens) out.insert(out.end(), s.spec.suffix.begin(), s.spec.suffix.end());
}

void Encoder::encode_segment(std::string_view text, bool at_start, std::vector<uint32_t>& out) {
  const auto& s = *tokenizer_.state_;
  if (!s.pre_tokenizer) return encode_bytes(text, out);
  const PieceModel* model = s.pieces();
  s.pre_tokenizer->run(text, at_start, work_->buffers, [&](std::string_view piece) {
    if (model != nullptr) {
      model->encode(piece, work_->scratch, out);
    } else {
      work_->bytes.encode_piece(piece, out);
    }
  });
}

// For plain byte-level tokenizers, the most common kind. Many pieces are looked up at a time.
void Encoder::encode_bytes(std::string_view text, std::vector<uint32_t>& out) {
  const TokenizerSpec& spec = tokenizer_.spec();
  std::string with_space;
  if (spec.prefix_text && text.front() != ' ') {
    with_space = ' ' + std::string(text);
    text = with_space;
  }
  if (!spec.prefix_pieces) return work_->bytes.encode(spec.splitter, text, out);
  for_each_piece(spec.splitter, text, [&](std::string_view piece) {
    if (piece.front() != ' ') {
      work_->prefixed.assign(1, ' ').append(piece);
      piece = work_->prefixed;
    }
    work_->bytes.encode_piece(piece, out);
  });
}

}  // namespace ostro::tokenizer
