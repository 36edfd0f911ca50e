// TextEnds: the one rule for the special tokens at the beginning and the end of a text. Whatever makes tokens
// of a text asks it: token stores, samples, scores, tasks and exports. docs/guide/data.md says the rule for
// users.
//
// Every text, prompt and pair begins with what the tokenizer's own post-processor puts there. Every document
// ends with the end-of-text token, a prompt never. What a chat template writes has its special tokens
// already. A token that the text itself has at that place is not put there again. Values; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::tokenizer {

class Tokenizer;

struct TextEnds {
  std::vector<uint32_t> before;  // ids in front of a text; usually one or none
  std::optional<uint32_t> eos;   // id behind a document
  // Stands for an empty prompt, and before a text without a context. A tokenizer may have no such token.
  std::optional<uint32_t> alone;
  std::vector<uint32_t> stops;  // generation ends after any of these ids, of which eos is one

  // Puts `before` in front of the ids of a text. Returns how many ids were put there: none if the text begins
  // with them.
  size_t begin(std::vector<uint32_t>& ids) const;
};

// Returns the rule of a tokenizer. `enforce_bos` (data.enforce_bos): nothing: as the tokenizer does; true:
// every text begins with the beginning token; false: none does. Error: kInvalidArgument for true, when the
// tokenizer names no beginning token.
Result<TextEnds> text_ends(const Tokenizer& tokenizer, std::optional<bool> enforce_bos = {});

// Returns the ids of a prompt, at least one. Error: kInvalidArgument for an empty prompt, when the tokenizer
// has no token that can stand for it; those of text_ends().
Result<std::vector<int32_t>> prompt_ids(const Tokenizer& tokenizer, std::string_view prompt);

}  // namespace ostro::tokenizer
