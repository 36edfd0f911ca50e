#include "ostro/tokenizer/split/piece_regex.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "ostro/tokenizer/split/pre_tokenizer.h"
#include "ostro/tokenizer/split/splitter.h"

namespace ostro::tokenizer {
namespace {

using Json = nlohmann::json;

// The Split pre-tokenizers with these patterns, and the pieces of a text, joined by "|".
std::string pieces_of(const std::vector<std::string>& patterns, std::string_view text) {
  Json steps = Json::array();
  for (const std::string& regex : patterns)
    steps.push_back({{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}});
  const auto read = PreTokenizer::from_json({{"type", "Sequence"}, {"pretokenizers", steps}});
  if (!read.ok()) return read.error().message();
  PreTokenizer::Buffers buffers;
  std::string out;
  read->run(text, true, buffers, [&](std::string_view piece) {
    out += out.empty() ? "" : "|";
    out += piece;
  });
  return out;
}

const std::vector<std::string> kDeepSeekV3 = {R"(\p{N}{1,3})", "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+",
                                              R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^)"
                                              "\r\n"
                                              R"(\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[)"
                                              "\r\n"
                                              R"(]*|\s*[)"
                                              "\r\n"
                                              R"(]+|\s+(?!\S)|\s+)"};
// With fewer letters than the published file names.
const std::vector<std::string> kDeepSeekV2 = {"[\r\n]",
                                              R"(\s?[A-Za-z)"
                                              "\u00B5\u00C0-\u00D6\u00D8-\u00F6]+",
                                              R"(\s?[!-/:-~)"
                                              "\uFF01-\uFF0F\u3000-\u3002]+",
                                              R"(\s+$)", "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+"};

// Expected values: the pieces of Hugging Face tokenizers 0.23.3 (tests/interop/check_splitters.py compares
// many more).
TEST_CASE("DeepSeek's pieces") {
  CHECK(pieces_of(kDeepSeekV3, "don't 12345 \u4F60\u597D, x_y\n\n  z") ==
        "don|'t| |123|45| |\u4F60\u597D|,| x|_y|\n\n| | z");
  CHECK(pieces_of(kDeepSeekV3, "a  \n b\u0301!?\r\n\u3042(A)") == "a|  \n| b\u0301|!?\r\n|\u3042|(A|)");
  CHECK(pieces_of(kDeepSeekV2, "Hi there, \u4F60\u597D \u00C0b!!\n  x   ") ==
        "Hi| there|,| |\u4F60\u597D| \u00C0|b|!!|\n| | x|   ");
}

TEST_CASE("an expression with the meaning that Oniguruma gives it") {
  CHECK(pieces_of({"a+b|a"}, "aaab aa") == "aaab| |a|a");
  CHECK(pieces_of({"a++ab|b"}, "aaab") == "aaa|b");  // what was taken is not given back
  CHECK(pieces_of({"x{2,3}y?"}, "xxxxy xy") == "xxx|xy xy");
  CHECK(pieces_of({"[a-c-]+$"}, "ab-\nc-d\na") == "ab-|\nc-d\n|a");
  CHECK(pieces_of({R"([^\s\]x]+(?=x))"}, "abx ab]x") == "ab|x ab]x");
  CHECK(pieces_of({R"(\.\d)"}, "").find("is not known") != std::string::npos);
  CHECK(pieces_of({R"(\s+(?!\S))"}, "a  b  ") == "a| | b|  ");
  CHECK(pieces_of({R"([\p{M}]+)"}, "e\u0301\u0302x") == "e|\u0301\u0302|x");
  CHECK(pieces_of({R"([^\p{L}\p{P}])"}, "a+b.") == "a|+|b.");
}

TEST_CASE("an expression that is not known, or that matches nothing, is refused") {
  for (const char* regex :
       {"(ab)+",  "a*", "a?|b", "",        "|a",     "a|",     "a**",    "a+?",         "a{2}+",   "a{2}?",
        "a{3,2}", "[a", "[]a]", "[b-a]",   "[a[b]]", "[a&&b]", R"(\w+)", R"(\p{Han}+)", R"([\S])", R"(a\)",
        "^a",     ".",  "$",    "(?<!a)b", "(?i:a)", "(?!a)",  "a{0}",   "[a-\\s]"})
    CHECK_MESSAGE(!PieceRegex::parse(regex), std::string(regex));
  CHECK(PieceRegex::parse("[a-]|b{1000}").has_value());
}

TEST_CASE("pieces of GPT-2's expression are those of its state machine") {
  const auto regex = PieceRegex::parse(pattern_of(Splitter::kGpt2));
  REQUIRE(regex);
  constexpr std::string_view kParts[] = {"a", "B",  "7",  "!",      "'s",     "'ll",
                                         " ", "\n", "\t", "\u00E9", "\u4F60", "\u0301"};
  std::mt19937 rng(11);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += kParts[rng() % std::size(kParts)];
    size_t at = 0;
    for_each_piece(Splitter::kGpt2, text, [&](std::string_view piece) {
      REQUIRE(regex->match(text, at) == at + piece.size());
      at += piece.size();
    });
  }
}

TEST_CASE("a search takes time that grows with the text, also where a long run does not match") {
  const std::string text = std::string(400'000, ' ') + "x";
  CHECK(pieces_of({R"(\s+$)"}, text) == text);
  CHECK(pieces_of(kDeepSeekV2, text).size() == text.size() + 1);
  CHECK(pieces_of(kDeepSeekV3, text).size() == text.size() + 1);
}

}  // namespace
}  // namespace ostro::tokenizer
