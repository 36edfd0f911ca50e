#include "ostro/tokenizer/sentencepiece/unigram.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "ostro/tokenizer/sentencepiece/words.h"

namespace ostro::tokenizer {

// Joins runs of unknown characters and writes ids.
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
  size_t begin_ = 0, end_ = 0;  // the run of unknown characters so far
  bool met_unknown_ = false;
};

Unigram::Unigram(Parts parts) : parts_(std::move(parts)) {
  const UnigramTokens& tokens = parts_.tokens;
  largest_ = std::abs(tokens.unknown_score);
  for (const double score : tokens.scores) largest_ = std::max(largest_, std::abs(score));
}

// SentencePiece adds up scores over the whole text in single precision, so what comes before a word can
// decide near ties in it. How far its sum may be from 0 (`offset` at present) without doing so: where every
// choice on the best path was won by `margin`, and rounding moves sums by less than half of that. A sum of n
// terms, none above M, is off by at most n M / 2^24, on both sides of a choice, here and there; another 2 is
// to spare.
uint32_t Unigram::bound_of(std::string_view word, double offset, double margin) const {
  const auto n = static_cast<double>(word.size());
  const double bound = margin * 0x1p22 / n - std::abs(offset) - 2 * n * largest_;
  return static_cast<uint32_t>(std::clamp<double>(bound, 0, PieceMemory::kMostBound));
}

void Unigram::encode_words(std::string_view text, ModelScratch& scratch, std::vector<uint32_t>& out) const {
  const std::vector<double>& scores = parts_.tokens.scores;
  double offset = 0;  // what the path up to the word costs
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
