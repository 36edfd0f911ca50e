// Encoder: added tokens, then the splitter, then BPE through a cache of pieces.
#include <cstring>

#include "ostro/tokenizer/tokenizer.h"
#include "ostro/tokenizer/tokenizer_state.h"
#include "ostro/tokenizer/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr size_t kSlots = size_t{1} << 15;
constexpr size_t kSlotBytes = 29;
constexpr size_t kSlotIds = 8;

uint64_t piece_hash(std::string_view piece) {
  uint64_t h = piece.size() * 0x9E3779B97F4A7C15u;
  size_t i = 0;
  const auto mix = [&h](uint64_t word) {
    h = (h ^ word) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  };
  for (; i + 8 <= piece.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, piece.data() + i, 8);
    mix(word);
  }
  uint64_t word = 0;
  std::memcpy(&word, piece.data() + i, piece.size() - i);
  mix(word);
  return h;
}

}  // namespace

// A piece and its ids in one cache line; longer pieces, or ones with more ids, are computed each time. Direct
// mapped: a newer piece replaces the one in its slot, so the memory is fixed, and the key is compared, so a
// collision costs time and never an id.
struct alignas(64) Encoder::Slot {
  uint8_t length = 0;  // 0: empty
  uint8_t count = 0;
  char piece[kSlotBytes];
  uint32_t ids[kSlotIds];
};

Encoder::Encoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder::~Encoder() = default;

void Encoder::encode(std::string_view text, const EncodeOptions& options, std::vector<uint32_t>& out) {
  const auto& s = *tokenizer_.state_;
  const bool valid = is_valid_utf8(text);
  const std::string repaired = valid ? std::string() : repair_utf8(text);
  if (!valid) text = repaired;
  // A cache is worth its memory only to an encoder that lives on, or to a long text.
  if (cache_.empty() && (text.size() > 4096 || !segments_.empty())) cache_.resize(kSlots);

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
  for_each_piece(spec.splitter, text, [&](std::string_view piece) {
    if (spec.prefix_pieces && piece.front() != ' ') {
      prefixed_.assign(1, ' ').append(piece);
      piece = prefixed_;
    }
    encode_piece(piece, out);
  });
}

void Encoder::encode_piece(std::string_view piece, std::vector<uint32_t>& out) {
  const BpeModel& model = tokenizer_.state_->model;
  if (cache_.empty() || piece.size() > kSlotBytes) return model.encode(piece, out);
  Slot& slot = cache_[piece_hash(piece) & (kSlots - 1)];
  if (slot.length == piece.size() && std::memcmp(slot.piece, piece.data(), piece.size()) == 0) {
    out.insert(out.end(), slot.ids, slot.ids + slot.count);
    return;
  }
  const size_t before = out.size();
  model.encode(piece, out);
  const size_t count = out.size() - before;
  if (count > kSlotIds) return;
  slot.length = static_cast<uint8_t>(piece.size());
  slot.count = static_cast<uint8_t>(count);
  std::memcpy(slot.piece, piece.data(), piece.size());
  std::memcpy(slot.ids, out.data() + before, count * sizeof(uint32_t));
}

}  // namespace ostro::tokenizer
