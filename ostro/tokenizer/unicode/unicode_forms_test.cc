#include "ostro/tokenizer/unicode/unicode_forms.h"

#include <doctest/doctest.h>

namespace ostro::tokenizer {
namespace {

std::string form(Form form, std::string_view text) {
  std::string out;
  append_form(form, text, out);
  return out;
}

// Pairs of the Unicode standard (Annex 15) and Hangul's arithmetic.
TEST_CASE("normal forms") {
  CHECK(form(Form::kNfc, "plain, \u00E9, \u4F60") == "plain, \u00E9, \u4F60");
  CHECK(form(Form::kNfc, "e\u0301") == "\u00E9");
  CHECK(form(Form::kNfd, "\u00E9") == "e\u0301");
  CHECK(form(Form::kNfc, "\u212B \u2126") == "\u00C5 \u03A9");
  CHECK(form(Form::kNfd, "\u1E9B\u0323") == "\u017F\u0323\u0307");
  CHECK(form(Form::kNfc, "\u1E9B\u0323") == "\u1E9B\u0323");
  CHECK(form(Form::kNfkc, "\u1E9B\u0323") == "\u1E69");
  CHECK(form(Form::kNfkd, "\uFB01") == "fi");
  CHECK(form(Form::kNfkc, "\u00BD") == "1\u20442");
  CHECK(form(Form::kNfd, "\uD55C") == "\u1112\u1161\u11AB");
  CHECK(form(Form::kNfc, "x\u1112\u1161\u11ABy") == "x\uD55Cy");
  CHECK(form(Form::kNfd, "q\u0307\u0323") == "q\u0323\u0307");  // marks in the order of their classes
  CHECK(form(Form::kNfc, "a\u0334\u0301") == "\u00E1\u0334");   // composes past a mark of another class
  CHECK(form(Form::kNfc, "\u0301a") == "\u0301a");
  CHECK(form(Form::kNfc, "\u0958") == "\u0915\u093C");  // excluded from composition
}

TEST_CASE("lower case and marks") {
  std::string out;
  append_lower("ABC \u00C4\u03A3\u0130 \u1E9E\uFF21 z", out);
  CHECK(out == "abc \u00E4\u03C3i\u0307 \u00DF\uFF41 z");
  out.clear();
  append_without_marks("e\u0301a\u0334\u20DDb", out);
  CHECK(out == "eab");
}

TEST_CASE("grapheme clusters") {
  const auto length = [](std::string_view text) { return grapheme_end(text, 0); };
  CHECK(length("ab") == 1);
  CHECK(length("\r\n") == 2);
  CHECK(length("\n\u0301") == 1);
  CHECK(length("e\u0301\u0302x") == 5);
  CHECK(length("\u1112\u1161\u11AB\u1112") == 9);
  CHECK(length("\U0001F1E9\U0001F1EA\U0001F1E9") == 8);
  CHECK(length("\U0001F469\u200D\U0001F4BBx") == 11);
  CHECK(length("a\u200D\U0001F4BB") == 4);
  CHECK(length("\u0915\u094D\u0937x") == 9);
}

}  // namespace
}  // namespace ostro::tokenizer
