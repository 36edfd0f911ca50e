#include "ostro/serve/text_stream.h"

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

Result<TextStream> TextStream::create(const tokenizer::Tokenizer& tokenizer, std::span<const int32_t> prompt,
                                      std::vector<std::string> stops) {
  TextStream out(tokenizer, std::move(stops));
  out.ids_.assign(prompt.begin(), prompt.end());
  ASSIGN_OR_RETURN(const std::string before, tokenizer.decode_bytes(out.ids_, /*skip_special_tokens=*/true));
  out.prompt_bytes_ = before.size();
  return out;
}

Status TextStream::add(int32_t token) {
  ids_.push_back(static_cast<uint32_t>(token));
  ASSIGN_OR_RETURN(const std::string all, tokenizer_->decode_bytes(ids_, /*skip_special_tokens=*/true));
  bytes_ = all.substr(std::min(prompt_bytes_, all.size()));
  const std::string_view whole = std::string_view(bytes_).substr(0, bytes_.size() - unfinished_bytes(bytes_));
  set_text(tokenizer::repair_utf8(whole), false);
  return {};
}

void TextStream::finish() {
  if (!stopped_) set_text(tokenizer::repair_utf8(bytes_), true);
}

void TextStream::set_text(std::string text, bool is_all) {
  // Some decoders change the end of a text when more follows; what is certain stays.
  text.replace(0, std::min(certain_, text.size()), text_, 0, certain_);
  text_ = std::move(text);
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
