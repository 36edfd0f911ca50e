// no_end_text: finds out whether the answers of a store have an end that the model can learn.
#pragma once

#include <string>

#include "ostro/data/store/token_store.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// Looks at the first rows of the training split of conversations, of which the assistant's text counts. If in
// none of them the last token that counts is an added token of the tokenizer (such as <|im_end|>), and if
// they do not all end in one same token either, the model never learns to end an answer: a sentence about it,
// for people. Otherwise, and for rows of other kinds, "". Errors are those of reading the store.
Result<std::string> no_end_text(const TokenStore& store, const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::data
