#include "ostro/paper/typed_digits.h"

#include <doctest/doctest.h>

namespace ostro::paper {
namespace {

std::string found(const std::string& text) {
  std::string out;
  for (const TypedNumber& n : typed_digits(text))
    out += (out.empty() ? "" : " ") + std::to_string(n.line) + ":" + n.text;
  return out;
}

TEST_CASE("numbers in what is shown are found, with their lines") {
  CHECK(found("We saw 3.5 of 1,000.\nAnd 7.") == "1:3.5 1:1,000 2:7");
  CHECK(found("= Results of 12 runs\n- an item with 4") == "1:12 2:4");
  CHECK(found("a #footnote[only 5 seeds] b") == "1:5");
  CHECK(found("#figure(image(\"a1.svg\", width: 80%),\n caption: [Loss 0.91 at #num(\"x\")])") == "2:0.91");
  CHECK(found("#let note(x) = [at #x of 30]\n$ y = 2 x_1 $ #0.93 #\"about 8\"") == "1:30 2:2 2:0.93 2:8");
  CHECK(found("#if x > 2 [few 3] else if y == 4 { [many 5] } else [none] and 6") == "1:3 1:5 1:6");
  CHECK(found("#table(columns: 2, [a], [0.5], ..row(3)[4])") == "1:0.5 1:4");
  CHECK(found("#for i in range(3) [step #i of 9]") == "1:9");
  CHECK(found("x [in 1 bracket] y #text(red)[2].field 3") == "1:1 1:2 1:3");
  CHECK(found("#set text(11pt)\n#show heading: it => [No. 4 #it]\n#context [page 5]") == "2:4 3:5");
}

TEST_CASE("code, labels, references, raw text, comments and numbers of headings are left out") {
  for (const char* text :
       {"#num(\"best2\", digits: 4) and #tab(\"t1\").", "= 2.1 Data <sec:2>\nSee @fig:loss2 and @marin2025.",
        "`x = 3` and ```py\ny = 4\n``` and ``", "// 5 runs\n/* 6 /* 7 */ 8 */ end",
        "#let x = 3 + calc.pow(2, 4)\n#set page(width: 21cm)", "https://example.org/2025/11 is",
        "1. first\n2. second", "#{ let a = 4; a + 5 }", "\\u{1F600} \\5", "$x_1 + #num(\"b1\") + \\3$",
        "#import \"v2.typ\": a1\n", "#(1 + 2)", "#context counter(page).at(2)",
        "#show link: set text(fill: rgb(\"#112233\"))", "a #x.at(3).y(4) b", "", "#", "]"})
    CHECK_MESSAGE(found(text).empty(), text, " gave ", found(text));
}

TEST_CASE("every beginning of a document can be read") {
  const std::string text =
      "= 1 A\n#let f(x) = { [b 2 #x] }\n/* 3 */ `4` $5_6 \\7 #g(\"8\")$ <l9> @r10 \\u{11} #if a [12] else "
      "{13} #\"14\"";
  for (size_t n = 0; n <= text.size(); ++n) typed_digits(text.substr(0, n));
  CHECK(found(text) == "2:2 3:5 3:12 3:14");
}

}  // namespace
}  // namespace ostro::paper
