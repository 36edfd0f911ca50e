// no_end_text: finds out whether the answers of a store have an end that the model can learn.
#pragma once

#include <string>

#include "ostro/data/store/token_store.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::data {

// Looks at the first rows of the training split, if they are conversations in which the assistant's text
// counts. If the last token that counts is in none of them an added token of the tokenizer (such as
// <|im_end|>), nor the same token in all of them, the model never learns to end an answer. Returns a sentence
// about that, for people; "" in all other cases. Errors: those of reading the store.
Result<std::string> no_end_text(const TokenStore& store, const tokenizer::Tokenizer& tokenizer);

}  // namespace ostro::data
