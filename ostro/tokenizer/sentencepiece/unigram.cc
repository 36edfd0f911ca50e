#include "ostro/tokenizer/sentencepiece/unigram.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "ostro/tokenizer/sentencepiece/words.h"

namespace ostro::tokenizer {

// Writes ids and fuses runs of unknown characters.
class Unigram::Writer final : public UnigramSink {
 public:
  Writer(const Parts& parts, std::string_view text, std::vector<uint32_t>& out)
      : parts_(parts), text_(text), out_(out) {}

  void take(size_t begin, size_t end, uint32_t id) override {
    if (id == parts_.tokens.unknown) {
      met_unknown_ = true;
      if (begin_ == end_) begin_ = begin;
      end_ = end;
    } else {
      finish();
      out_.push_back(id);
    }
  }

  bool met_unknown() const { return met_unknown_; }

  void finish() {
    if (begin_ == end_) return;
    const std::string_view run = text_.substr(begin_, end_ - begin_);
    begin_ = end_ = 0;
    if (parts_.hugging_face) {
      const uint32_t id = parts_.tokens.trie.find(run);
      if (id != ByteTrie::kNone) return out_.push_back(id);
    }
    const auto id_of = [this](char byte) { return parts_.byte_ids[static_cast<uint8_t>(byte)]; };
    const bool as_bytes = parts_.byte_fallback &&
                          std::none_of(run.begin(), run.end(), [&](char b) { return id_of(b) == kNoToken; });
    if (!as_bytes) return out_.push_back(parts_.tokens.unknown);
    for (const char byte : run) out_.push_back(id_of(byte));
  }

 private:
  const Parts& parts_;
  std::string_view text_;
  std::vector<uint32_t>& out_;
  size_t begin_ = 0, end_ = 0;  // the current run of unknown characters
  bool met_unknown_ = false;
};

Unigram::Unigram(Parts parts) : parts_(std::move(parts)) {
  const UnigramTokens& tokens = parts_.tokens;
  largest_ = std::abs(tokens.unknown_score);
  for (const double score : tokens.scores) largest_ = std::max(largest_, std::abs(score));
}

// SentencePiece adds up scores over the whole text in single precision. So rounding depends on the sum before
// a word (`offset`), and can change the result in a word with nearly equal paths. This function gives a
// limit: while |offset| is below it, the cached ids of the word are right.
//
// The ids are safe if every choice on the best path was won by `margin`, and rounding changes sums by less
// than half of that. A sum of n terms, none with an absolute value above M, has an error of at most n M /
// 2^24. The error counts on both sides of a choice, in both computations. Another factor of 2 is a reserve.
uint32_t Unigram::bound_of(std::string_view word, double offset, double margin) const {
  const auto n = static_cast<double>(word.size());
  const double bound = margin * 0x1p22 / n - std::abs(offset) - 2 * n * largest_;
  return static_cast<uint32_t>(std::clamp<double>(bound, 0, PieceMemory::kMostBound));
}

// Encodes word by word, since all paths meet at word borders. A cached word is used while the score before it
// is within the bound that was stored with it; the score is carried on in single precision as SentencePiece
// does.
void Unigram::encode_words(std::string_view text, ModelScratch& scratch, std::vector<uint32_t>& out) const {
  const std::vector<double>& scores = parts_.tokens.scores;
  double offset = 0;  // score of the path up to this word
  const auto end_of = [&](size_t begin) { return word_end(text, begin); };
  for_each_word(text, scratch.memory, end_of, [&](std::string_view word, const PieceMemory::Place& place) {
    if (place.known() && std::abs(offset) < place.bound()) {
      for (const uint32_t id : place.ids()) {
        out.push_back(id);
        offset = static_cast<float>(offset + scores[id]);
      }
      return;
    }
    const size_t before = out.size();
    Writer writer(parts_, word, out);
    const UnigramPath::End end = scratch.path.run(parts_.tokens, word, writer, offset);
    writer.finish();
    if (!writer.met_unknown()) place.keep(std::span(out).subspan(before), bound_of(word, offset, end.margin));
    offset = end.score;
  });
}

void Unigram::encode(std::string_view piece, ModelScratch& scratch, std::vector<uint32_t>& out) const {
  if (parts_.words) return encode_words(piece, scratch, out);
  const auto compute = [&](std::vector<uint32_t>& ids) {
    Writer writer(parts_, piece, ids);
    scratch.path.run(parts_.tokens, piece, writer);
    writer.finish();
  };
  if (parts_.hugging_face) {
    scratch.memory.encode(piece, out, compute);
  } else {
    compute(out);
  }
}

}  // namespace ostro::tokenizer
