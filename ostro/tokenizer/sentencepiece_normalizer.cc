// SentencePiece's normalization: rules, spaces and the space before the text.
#include "ostro/tokenizer/sentencepiece.h"
#include "ostro/tokenizer/utf8.h"

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
  return out;
}

// What the text's first characters become: a user-defined piece itself, the longest rule's replacement, or
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

void SentencePieceNormalizer::append(std::string_view text, std::string& out) const {
  while (remove_extra_ && !text.empty()) {
    const Prefix first = first_of(text);
    if (first.normal != " ") break;
    text.remove_prefix(first.length);
  }
  if (text.empty()) return;
  const size_t begin = out.size();
  if (dummy_prefix_ && !suffix_) out += space_;
  bool after_space = remove_extra_;
  while (!text.empty()) {
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
