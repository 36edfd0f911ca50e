#include "ostro/tokenizer/split/splitter.h"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "ostro/tokenizer/unicode/unicode.h"

namespace ostro::tokenizer {
namespace {

// Bytes before `end` that belong to a character cut by it.
size_t utf8_tail(std::string_view text, size_t end) {
  size_t n = 0;
  while (end < text.size() && (static_cast<uint8_t>(text[end - n]) & 0xC0) == 0x80) ++n;
  return n;
}

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
  CHECK(code_point_class(0x105C0) == (kLetter | kWord | kUpper | kLower));  // new in Unicode 16
  CHECK(code_point_class(0x10940) == 0);                                    // new in Unicode 17
  CHECK(code_point_class(0x180E) == 0);                                     // a space until Unicode 6.3
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

TEST_CASE("the other patterns, where they differ") {
  CHECK(split(Splitter::kQwen2, "x 1234 y") == "x| |1|2|3|4| y");
  CHECK(split(Splitter::kQwen35, "e\u0301x !\u0301") == "e\u0301x| !|\u0301");
  CHECK(split(Splitter::kLlama3, "e\u0301x !\u0301") == "e|\u0301x| !\u0301");
  CHECK(split(Splitter::kCl100k, "x12345 \n ") == "x|12345| \n ");
  CHECK(split(Splitter::kLlama3, "x12345 \n ") == "x|123|45| \n| ");
  CHECK(split(Splitter::kTekken, "HTTPServer fooBarBAZ don't 42 a/b//\n/") ==
        "HTTPServer| foo|Bar|BAZ| don|'t| |4|2| a|/b|//\n/");
  CHECK(split(Splitter::kO200k, "HTTPServer fooBar don'T I'LL 1234") ==
        "HTTPServer| foo|Bar| don'T| I'LL| |123|4");
  // A letter without case ends what capitals after it do not continue.
  CHECK(split(Splitter::kO200k, "\u00AAAAA \u4F60\u597DA\u4F60") == "\u00AA|AAA| \u4F60\u597DA\u4F60");
}

TEST_CASE("patterns are known by their exact text") {
  for (const KnownPattern& p : known_patterns()) {
    CHECK(splitter_of_pattern(p.regex) == p.splitter);
    CHECK(pattern_of(p.splitter) == p.regex);
  }
  CHECK_FALSE(splitter_of_pattern(R"(\p{L}+)").has_value());
  CHECK(pattern_of(Splitter::kNone).empty());
}

// Long texts take the fast form; a piece and a little of what follows, too short for it, must end at the same
// place. 40 bytes hide nothing from runs of at most 12.
TEST_CASE("the fast form finds the pieces that one finds alone") {
  constexpr std::string_view kParts[] = {"a",  "B",      "7",      "!",      "/",      "'",
                                         "'s", "'LL",    " ",      "\n",     "\t",     "\r",
                                         "_",  "\u00E9", "\u4F60", "\u0301", "\u2028", "\u0663"};
  std::mt19937 rng(5);
  for (const KnownPattern& p : known_patterns()) {
    for (int round = 0; round < 200; ++round) {
      std::string text;
      size_t last = 0;
      while (text.size() < 500) {
        const size_t part = rng() % (rng() % 3 == 0 ? std::size(kParts) : 13);
        if (part == last) continue;  // runs come from different parts of one class only
        for (size_t n = 1 + rng() % 2; n > 0; --n) text += kParts[last = part];
      }
      size_t begin = 0;
      for_each_piece(p.splitter, text, [&](std::string_view piece) {
        const std::string alone(
            text.substr(begin, 60 - (text.size() - begin < 60 ? 0 : utf8_tail(text, begin + 60))));
        size_t end = 0;
        if (piece.size() < 40) {
          REQUIRE(split(p.splitter, alone, 0, {&end, 1}) == 1);
          REQUIRE(end == piece.size());
        }
        begin += piece.size();
      });
      REQUIRE(begin == text.size());
    }
  }
}

TEST_CASE("text cut where last_cut says has the pieces of the whole") {
  CHECK(last_cut("x\ny") == 2);
  CHECK(last_cut("x\n\ny") == 0);
  CHECK(last_cut("x \ny") == 0);
  CHECK(last_cut("x\n1") == 0);
  CHECK(last_cut("") == 0);
  constexpr std::string_view kParts[] = {"a", "x\n", "\n", " ",        "!\n", "'s",
                                         "/", "1\n", "Z",  "\u00E9\n", "\t"};
  std::mt19937 rng(6);
  int cuts = 0;
  for (const KnownPattern& p : known_patterns()) {
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (int i = 0; i < 12; ++i) text += kParts[rng() % std::size(kParts)];
      const size_t cut = last_cut(text);
      if (cut == 0) continue;
      ++cuts;
      const std::string_view whole(text);
      REQUIRE(split(p.splitter, whole) ==
              split(p.splitter, whole.substr(0, cut)) + "|" + split(p.splitter, whole.substr(cut)));
    }
  }
  CHECK(cuts > 500);
}

TEST_CASE("no splitter: one piece") { CHECK(split(Splitter::kNone, "a b\n") == "a b\n"); }

}  // namespace
}  // namespace ostro::tokenizer
