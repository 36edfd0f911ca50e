#include "ostro/tokenizer/splitter.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ostro/tokenizer/unicode.h"

namespace ostro::tokenizer {
namespace {

// The pieces, joined by "|".
std::string split(Splitter splitter, std::string_view text) {
  std::string out;
  for_each_piece(splitter, text, [&](std::string_view piece) {
    if (!out.empty()) out += "|";
    out += piece;
  });
  return out;
}

TEST_CASE("the Unicode tables are those of Hugging Face tokenizers 0.23.3 (Unicode 16)") {
  int letters = 0, numbers = 0, spaces = 0, words = 0;
  for (uint32_t c = 0; c < 0x110000; ++c) {
    const uint8_t classes = code_point_class(c);
    letters += (classes & kLetter) != 0;
    numbers += (classes & kNumber) != 0;
    spaces += (classes & kSpace) != 0;
    words += (classes & kWord) != 0;
    REQUIRE((classes & (kLetter | kNumber)) != (kLetter | kNumber));
  }
  CHECK(letters == 141028);
  CHECK(numbers == 1911);
  CHECK(spaces == 25);
  CHECK(words == 144667);
  CHECK(code_point_class(0x105C0) == (kLetter | kWord));  // new in Unicode 16
  CHECK(code_point_class(0x10940) == 0);                  // new in Unicode 17
  CHECK(code_point_class(0x180E) == 0);                   // a space until Unicode 6.3
  for (const uint32_t c : {0x20u, 0x85u, 0xA0u, 0x1680u, 0x2028u, 0x3000u})
    CHECK(code_point_class(c) == kSpace);
}

// Expected values: the pieces Hugging Face tokenizers 0.23.3 gives (tests/interop/check_tokenizer.py compares
// many more).
TEST_CASE("GPT-2 pieces") {
  CHECK(split(Splitter::kGpt2, "Hello world's  123abc!?") == "Hello| world|'s| | 123|abc|!?");
  CHECK(split(Splitter::kGpt2, "a'S 'll I'll're") == "a|'|S| '|ll| I|'ll|'re");
  CHECK(split(Splitter::kGpt2, "a \n\n b  ") == "a| \n\n| b|  ");
  CHECK(split(Splitter::kGpt2, "\ta\t\tb") == "\t|a|\t|\t|b");
  CHECK(split(Splitter::kGpt2, " ") == " ");
  CHECK(split(Splitter::kGpt2, "1234567") == "1234567");
  CHECK(split(Splitter::kGpt2, "x\u00A0y") == "x|\u00A0|y");
}

TEST_CASE("Llama-3 pieces") {
  CHECK(split(Splitter::kLlama3, "Hello world's  1234abc!?") == "Hello| world|'s| | |123|4|abc|!?");
  CHECK(split(Splitter::kLlama3, "a'S 'LL I'Ll're'\u017Fx") == "a|'S| '|LL| I|'Ll|'re|'\u017F|x");
  CHECK(split(Splitter::kLlama3, "a \n\n b  ") == "a| \n\n| b|  ");
  CHECK(split(Splitter::kLlama3, "x);\n\n  y") == "x|);\n\n| | y");
  CHECK(split(Splitter::kLlama3, "\ta\t\tb (c)") == "\ta|\t|\tb| (|c|)");
  CHECK(split(Splitter::kLlama3, "  \n \r\n  z") == "  \n \r\n| | z");
  CHECK(split(Splitter::kLlama3, "x\u00A0y\u00A0 \u20281") == "x|\u00A0y|\u00A0 |\u2028|1");
  CHECK(split(Splitter::kLlama3, "\nx") == "\n|x");
}

TEST_CASE("no splitter: one piece") { CHECK(split(Splitter::kNone, "a b\n") == "a b\n"); }

}  // namespace
}  // namespace ostro::tokenizer
