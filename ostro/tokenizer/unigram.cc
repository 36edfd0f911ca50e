#include "ostro/tokenizer/unigram.h"

#include <algorithm>

namespace ostro::tokenizer {

// Joins runs of unknown characters and writes ids.
class Unigram::Writer final : public UnigramSink {
 public:
  Writer(const Parts& parts, std::string_view text, std::vector<uint32_t>& out)
      : parts_(parts), text_(text), out_(out) {}

  void take(size_t begin, size_t end, uint32_t id) override {
    if (id == parts_.tokens.unknown) {
      if (begin_ == end_) begin_ = begin;
      end_ = end;
    } else {
      finish();
      out_.push_back(id);
    }
  }

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
};

void Unigram::encode(std::string_view piece, ModelScratch& scratch, std::vector<uint32_t>& out) const {
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
