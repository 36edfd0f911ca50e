// typed_digits: the numbers in the text of a Typst document that its author typed, with their lines. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ostro::paper {

struct TypedNumber {
  int64_t line = 0;  // from 1
  std::string text;  // digits with points and commas between them
};

// In the order of the text. What Typst shows as text is read: paragraphs, headings, captions and other
// content in brackets, wherever it stands, formulas, and a number or a text alone behind "#". Left out are
// code with its texts, raw text, comments, labels, references, links, the numbers in front of headings and of
// list items, and indices of a formula.
std::vector<TypedNumber> typed_digits(const std::string& text);

}  // namespace ostro::paper
