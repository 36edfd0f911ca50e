#include "ostro/tokenizer/model/added_tokens.h"

#include <doctest/doctest.h>

namespace ostro::tokenizer {
namespace {

// Segments in brackets, tokens with their id in front.
std::string segments(const std::vector<AddedToken>& tokens, std::string_view text,
                     bool match_special = true) {
  std::vector<const AddedToken*> pointers;
  for (const AddedToken& token : tokens) pointers.push_back(&token);
  std::vector<Segment> found;
  AddedTokenMatcher(std::move(pointers)).split(text, match_special, found);
  std::string out;
  for (const Segment& s : found) {
    out += (s.token ? std::to_string(s.token->id) : "") + "[" + std::string(s.text) + "]";
  }
  return out;
}

TEST_CASE("leftmost, then longest") {
  const std::vector<AddedToken> tokens = {
      {.id = 1, .content = "<a>"}, {.id = 2, .content = "<a>b"}, {.id = 3, .content = "a"}};
  CHECK(segments(tokens, "x<a>bc<a>a") == "[x]2[<a>b][c]1[<a>]3[a]");
  CHECK(segments(tokens, "<<a") == "[<<]3[a]");
  CHECK(segments(tokens, "") == "");
  CHECK(segments({}, "<a>") == "[<a>]");
}

TEST_CASE("lstrip and rstrip take spaces, never those of the token before") {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "<L>", .lstrip = true},
                                          {.id = 2, .content = "<R>", .rstrip = true}};
  CHECK(segments(tokens, "a \u00A0<L> b") == "[a]1[ \u00A0<L>][ b]");
  CHECK(segments(tokens, "a <R> \u2028b") == "[a ]2[<R> \u2028][b]");
  CHECK(segments(tokens, "<R>  <L>") == "2[<R>  ]1[<L>]");
}

TEST_CASE("single_word tokens stand alone") {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "no", .single_word = true}};
  CHECK(segments(tokens, "no, nob (no)") == "1[no][, nob (]1[no][)]");
  CHECK(segments(tokens, "_no \u00E9no no\u0301 no-") == "[_no \u00E9no no\u0301 ]1[no][-]");
}

TEST_CASE("special tokens can be left as text") {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "<s>", .special = true},
                                          {.id = 2, .content = "t"}};
  CHECK(segments(tokens, "<s>t", false) == "[<s>]2[t]");
}

}  // namespace
}  // namespace ostro::tokenizer
