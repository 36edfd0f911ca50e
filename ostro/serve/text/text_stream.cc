#include "ostro/serve/text/text_stream.h"

#include <algorithm>

#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::serve {

// At most three bytes can begin a character without ending it. They do if some bytes behind them make one of
// them; the first byte says how many follow, and the least and the greatest continuation are tried.
size_t unfinished_bytes(std::string_view bytes) {
  for (size_t count = std::min<size_t>(3, bytes.size()); count > 0; --count) {
    const std::string_view end = bytes.substr(bytes.size() - count);
    const auto first = static_cast<unsigned char>(end[0]);
    const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
    if (length <= count) continue;
    for (const char next : {'\x80', '\x90', '\xA0', '\xBF'}) {
      const std::string whole = std::string(end) + std::string(length - count, next);
      if (tokenizer::valid_length_at(whole, 0) == length) return count;
    }
  }
  return 0;
}

namespace {

// Decoders look at neighbours for a few tokens at most (a space in front of a word, the bytes of a
// character), and at whether a text begins.
constexpr size_t kNeighbours = 8;

int64_t characters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

Result<TextStream> TextStream::create(const tokenizer::Tokenizer& tokenizer, std::span<const int32_t> prompt,
                                      std::vector<std::string> stops) {
  TextStream out(tokenizer, std::move(stops));
  for (const int32_t id : prompt) {
    RETURN_IF_ERROR(tokenizer.decode_bytes(std::vector<uint32_t>{static_cast<uint32_t>(id)}));
    out.recent_.push_back(static_cast<uint32_t>(id));
  }
  RETURN_IF_ERROR(out.forget());
  return out;
}

// Tokens without a text leave the next one at the beginning of the text, so some with a text stay.
Status TextStream::forget() {
  size_t keep = kNeighbours;
  while (keep < recent_.size()) {
    ASSIGN_OR_RETURN(const std::string text,
                     tokenizer_->decode_bytes(std::span(recent_).last(keep), /*skip_special_tokens=*/true));
    if (!text.empty()) break;
    keep *= 2;
  }
  if (keep < recent_.size()) recent_.erase(recent_.begin(), recent_.end() - static_cast<int64_t>(keep));
  return {};
}

Result<std::string> TextStream::bytes_of(int32_t token) {
  ASSIGN_OR_RETURN(const std::string before, tokenizer_->decode_bytes(recent_, /*skip_special_tokens=*/true));
  recent_.push_back(static_cast<uint32_t>(token));
  ASSIGN_OR_RETURN(std::string all, tokenizer_->decode_bytes(recent_, /*skip_special_tokens=*/true));
  all.erase(0, before.size());
  if (recent_.size() > 4 * kNeighbours) RETURN_IF_ERROR(forget());
  return all;
}

Status TextStream::add(int32_t token) {
  ASSIGN_OR_RETURN(const std::string bytes, bytes_of(token));
  unfinished_ += bytes;
  const size_t whole = unfinished_.size() - unfinished_bytes(unfinished_);
  append(std::string_view(unfinished_).substr(0, whole), false);
  unfinished_.erase(0, whole);
  return {};
}

void TextStream::finish() {
  if (!stopped_) append(unfinished_, true);
  unfinished_.clear();
}

void TextStream::append(std::string_view bytes, bool is_all) {
  const std::string text = tokenizer::repair_utf8(bytes);
  text_ += text;
  characters_ += characters_of(text);
  size_t at = std::string::npos, end = std::string::npos, held = 0;
  for (const std::string& stop : stops_) {
    // What is certain holds no beginning of a stop string.
    const size_t found = text_.find(stop, certain_);
    if (found != std::string::npos &&
        (end == std::string::npos || found + stop.size() < end || (found + stop.size() == end && found < at)))
      at = found, end = found + stop.size();
    for (size_t count = std::min(stop.size() - 1, text_.size() - certain_); count > held; --count)
      if (text_.ends_with(std::string_view(stop).substr(0, count))) held = count;
  }
  if (at != std::string::npos) {
    characters_ -= characters_of(std::string_view(text_).substr(at));
    text_.resize(at);
    stopped_ = true;
    held = 0;
  }
  certain_ = text_.size() - (is_all ? 0 : held);
}

std::string TextStream::take() {
  std::string out = text_.substr(taken_, certain_ - taken_);
  taken_ = certain_;
  return out;
}

}  // namespace ostro::serve
