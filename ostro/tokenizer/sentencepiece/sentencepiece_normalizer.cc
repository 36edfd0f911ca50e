// SentencePiece's normalization: rules, white space, and the space before the text.
#include "ostro/tokenizer/sentencepiece/sentencepiece.h"

#include <algorithm>

#include "ostro/tokenizer/sentencepiece/words.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
Result<SentencePieceNormalizer> SentencePieceNormalizer::from_proto(const SentencePieceProto& proto) {
  SentencePieceNormalizer out;
  if (!proto.charsmap.empty()) {
    ASSIGN_OR_RETURN(out.charsmap_, Charsmap::parse(proto.charsmap));
  }
  for (const auto& piece : proto.pieces) {
    if (piece.type == PieceType::kUserDefined) out.user_defined_.insert(piece.text, 0);
  }
  out.dummy_prefix_ = proto.add_dummy_prefix;
  out.remove_extra_ = proto.remove_extra_whitespaces;
  out.suffix_ = proto.whitespace_as_suffix;
  out.space_ = proto.escape_whitespaces ? kSpaceSymbol : std::string_view(" ");
  const auto rule_about = [&out](char byte) {
    if (!out.user_defined_.empty() && out.user_defined_.step(ByteTrie::kRoot, byte) != ByteTrie::kNone)
      return true;
    if (!out.charsmap_) return false;
    bool found = out.charsmap_->longest({&byte, 1}).length != 0;
    for (int next = 0; next < 0x80 && !found; ++next) {
      const char both[] = {byte, static_cast<char>(next)};
      found = out.charsmap_->begins_key({both, 2});
    }
    return found;
  };
  for (int byte = 0; byte < 256; ++byte)
    if (byte >= 0x80 || rule_about(static_cast<char>(byte))) out.special_.add(static_cast<uint8_t>(byte));
  return out;
}

// Appends text that has no special bytes and no special byte right after it.
void SentencePieceNormalizer::append_plain(std::string_view text, bool& after_space, std::string& out) const {
  for (size_t i = 0; i < text.size();) {
    if (text[i] == ' ') {
      if (!after_space) out += space_;
      after_space = remove_extra_;
      ++i;
      continue;
    }
    const size_t end = std::min(text.find(' ', i), text.size());
    out.append(text.substr(i, end - i));
    after_space = false;
    i = end;
  }
}

// The replacement for the begin of the text: a user-defined piece itself, the longest rule's replacement, or
// the first character.
SentencePieceNormalizer::Prefix SentencePieceNormalizer::first_of(std::string_view text) const {
  if (!user_defined_.empty()) {
    const size_t end = user_defined_.longest(text, 0).end;
    if (end > 0) return {text.substr(0, end), end};
  }
  if (charsmap_) {
    const Charsmap::Rule rule = charsmap_->longest(text);
    if (rule.length > 0) return {rule.replacement, rule.length};
  }
  const size_t length = read_code_point(text.data()).length;
  return {text.substr(0, length), length};
}

// Drops leading spaces, then alternates between runs without special bytes, which are copied, and single
// prefixes, which are replaced by rules. With remove_extra_ a space after a space is dropped, also where a
// rule makes one, and so are spaces at the end.
void SentencePieceNormalizer::append(std::string_view text, bool at_start, std::string& out) const {
  while (remove_extra_ && !text.empty()) {
    const Prefix first = first_of(text);
    if (first.normal != " ") break;
    text.remove_prefix(first.length);
  }
  if (text.empty()) return;
  const size_t begin = out.size();
  if (dummy_prefix_ && !suffix_ && at_start) out += space_;
  bool after_space = remove_extra_;
  while (!text.empty()) {
    // A rule's key may begin with the last byte of the run.
    const size_t look = special_.find(text, 0), plain = look < text.size() && look > 0 ? look - 1 : look;
    append_plain(text.substr(0, plain), after_space, out);
    text.remove_prefix(plain);
    if (text.empty()) break;
    Prefix first = first_of(text);
    text.remove_prefix(first.length);
    while (after_space && first.normal.starts_with(' ')) first.normal.remove_prefix(1);
    if (first.normal.empty()) continue;
    for (const char c : first.normal) {
      if (c == ' ') {
        out += space_;
      } else {
        out += c;
      }
    }
    after_space = remove_extra_ && first.normal.ends_with(' ');
  }
  while (remove_extra_ && out.size() > begin && std::string_view(out).substr(begin).ends_with(space_))
    out.resize(out.size() - space_.size());
  if (dummy_prefix_ && suffix_) out += space_;
}

}  // namespace ostro::tokenizer
