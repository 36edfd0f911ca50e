#include "ostro/tokenizer/model/added_tokens.h"

#include <algorithm>

#include "ostro/tokenizer/unicode/unicode.h"
#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

uint8_t class_at(std::string_view text, size_t i) {
  return code_point_class(read_code_point(text.data() + i).value);
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const bool joined_left = begin > 0 && (class_at(text, code_point_before(text, begin)) & kWord);
  const bool joined_right = end < text.size() && (class_at(text, end) & kWord);
  return !joined_left && !joined_right;
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<const AddedToken*> tokens) : tokens_(std::move(tokens)) {
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken* a, const AddedToken* b) {
    const auto x = static_cast<uint8_t>(a->content[0]), y = static_cast<uint8_t>(b->content[0]);
    return x != y ? x < y : a->content.size() > b->content.size();  // of equal tokens the first in the file
  });
  for (const AddedToken* token : tokens_) {
    ++first_[static_cast<uint8_t>(token->content[0]) + 1u];
    beginnings_.add(static_cast<uint8_t>(token->content[0]));
  }
  for (size_t b = 1; b < first_.size(); ++b) first_[b] += first_[b - 1];
}

const AddedToken* AddedTokenMatcher::match_at(std::string_view text, size_t begin) const {
  const auto byte = static_cast<uint8_t>(text[begin]);
  for (uint32_t i = first_[byte]; i < first_[byte + 1u]; ++i) {
    if (text.substr(begin).starts_with(tokens_[i]->content)) return tokens_[i];
  }
  return nullptr;
}

// Tries the tokens of each position's first byte, the longest first. A match that is refused (a special
// token, or part of a word) is passed over whole. lstrip and rstrip widen a match over white space, never
// over an earlier token.
void AddedTokenMatcher::split(std::string_view text, bool match_special, std::vector<Segment>& out) const {
  size_t done = 0;  // text before this is in `out`
  for (size_t i = beginnings_.find(text, 0); i < text.size(); i = beginnings_.find(text, i)) {
    const AddedToken* token = match_at(text, i);
    if (token == nullptr) {
      ++i;
      continue;
    }
    size_t begin = i, end = i + token->content.size();
    i = end;  // even if the match was refused: Hugging Face does not search inside it again
    if (token->special && !match_special) continue;
    if (token->single_word && !stands_alone(text, begin, end)) continue;
    if (token->lstrip) {
      while (begin > done) {
        const size_t before = code_point_before(text, begin);
        if (before < done || !(class_at(text, before) & kSpace)) break;
        begin = before;
      }
    }
    if (token->rstrip) {
      while (end < text.size() && (class_at(text, end) & kSpace))
        end += read_code_point(text.data() + end).length;
    }
    if (done < begin) out.push_back({nullptr, text.substr(done, begin - done)});
    out.push_back({token, text.substr(begin, end - begin)});
    done = end;
  }
  if (done < text.size()) out.push_back({nullptr, text.substr(done)});
}

}  // namespace ostro::tokenizer
