// append_form and others: Unicode normal forms, lower case and grapheme clusters. They follow Hugging Face
// `tokenizers` and its Unicode version. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ostro::tokenizer {

enum class Form { kNfc, kNfd, kNfkc, kNfkd };

// Appends the normal form of valid UTF-8 text. Text that is already in this form is copied at scanning speed.
void append_form(Form form, std::string_view text, std::string& out);

// Appends valid UTF-8 text in lower case, each code point on its own (no final sigma).
void append_lower(std::string_view text, std::string& out);

// Appends valid UTF-8 text without its combining marks (category M).
void append_without_marks(std::string_view text, std::string& out);

// The end of the extended grapheme cluster that begins at `begin` (< text.size()).
size_t grapheme_end(std::string_view text, size_t begin);

}  // namespace ostro::tokenizer
