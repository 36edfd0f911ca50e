// typed_digits: the numbers in the text of a Typst document that its author typed, with their lines. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ostro::paper {

struct TypedNumber {
  int64_t line = 0;  // from 1
  std::string text;  // digits with points and commas between them
  // It stands in code, which may show it, compute with it, or lay something out by it.
  bool in_code = false;
};

// In the order of the text. What Typst shows as text is read: paragraphs, headings, captions and other
// content in brackets, wherever it stands, formulas, and a number or a text alone behind "#". Of code the
// numbers and the numbers in its texts are listed, wherever they may come to be shown: in "#let", arguments,
// arrays and loops. Left out are numbers with units, arguments of known names that lay out ("width",
// "columns"), conditions, the statements set, show, import and include, names of files, queries, colours and
// patterns, raw text, comments, labels, references, links, the numbers in front of headings (with a point,
// and a word that does not begin small) and of list items, and indices of a formula.
std::vector<TypedNumber> typed_digits(const std::string& text);

}  // namespace ostro::paper
