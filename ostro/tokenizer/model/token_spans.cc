#include "ostro/tokenizer/model/token_spans.h"

#include <fmt/core.h>

#include <string>
#include <unordered_map>

#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

// Length in bytes of the white space at the begin of `text`. `text` is a part of valid UTF-8 and may begin
// inside a character.
size_t leading_space(std::string_view text) {
  size_t n = 0;
  if (!text.empty() && (static_cast<unsigned char>(text[0]) & 0xC0) == 0x80) return 0;
  while (n < text.size()) {
    const CodePoint c = read_code_point(text.data() + n);
    if ((code_point_class(c.value) & kSpace) == 0) break;
    n += c.length;
  }
  return n;
}

}  // namespace

// The token is decoded behind itself, and what it writes at the beginning is taken away.
Result<std::string> token_bytes(const Tokenizer& tokenizer, uint32_t id) {
  ASSIGN_OR_RETURN(std::string first, tokenizer.decode_bytes(std::span(&id, 1), false));
  const uint32_t twice[] = {id, id};
  ASSIGN_OR_RETURN(std::string both, tokenizer.decode_bytes(twice, false));
  if (!both.starts_with(first)) return first;
  return both.substr(first.size());
}

// Spells the tokens along the text. A token may lack the space that the tokenizer put before the text, and an
// added token may have white space around it; any other difference is an error.
Result<std::vector<size_t>> token_ends(const Tokenizer& tokenizer, std::string_view text,
                                       std::span<const uint32_t> ids) {
  std::unordered_map<uint32_t, const AddedToken*> added;
  for (const AddedToken& token : tokenizer.spec().added_tokens) added.emplace(token.id, &token);

  std::vector<size_t> ends;
  ends.reserve(ids.size());
  size_t at = 0;
  for (const uint32_t id : ids) {
    const auto found = added.find(id);
    std::string spelled;
    if (found != added.end()) {
      spelled = found->second->content;
    } else {
      ASSIGN_OR_RETURN(spelled, token_bytes(tokenizer, id));
    }
    const std::string_view rest = text.substr(at);
    if (rest.starts_with(spelled)) {
      at += spelled.size();
    } else if (spelled.starts_with(' ') && rest.starts_with(std::string_view(spelled).substr(1))) {
      at += spelled.size() - 1;  // a space put before the text
    } else if (const size_t space = leading_space(rest);
               space > 0 && rest.substr(space).starts_with(spelled)) {
      at += space + spelled.size();
    } else {
      return unsupported(fmt::format(
          "token {} (\"{}\") is not what the text has at byte {}: the tokenizer changes the text before "
          "it splits it, so that loss weights cannot be placed; use a tokenizer without such a "
          "normalizer, or data of the format prebuilt",
          id, spelled, at));
    }
    if (found != added.end() && found->second->rstrip) at += leading_space(text.substr(at));
    ends.push_back(at);
  }
  if (at != text.size())
    return unsupported(
        fmt::format("the tokens end at byte {} of a text of {} bytes: the tokenizer leaves out text, "
                    "so that loss weights cannot be placed",
                    at, text.size()));
  return ends;
}

}  // namespace ostro::tokenizer
