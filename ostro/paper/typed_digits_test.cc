#include "ostro/paper/typed_digits.h"

#include <doctest/doctest.h>

namespace ostro::paper {
namespace {

std::string found(const std::string& text) {
  std::string out;
  for (const TypedNumber& n : typed_digits(text))
    out += (out.empty() ? "" : " ") + std::to_string(n.line) + ":" + n.text + (n.in_code ? "c" : "");
  return out;
}

TEST_CASE("numbers in what is shown are found, with their lines") {
  CHECK(found("We saw 3.5 of 1,000.\nAnd 7.") == "1:3.5 1:1,000 2:7");
  CHECK(found("= Results of 12 runs\n- an item with 4") == "1:12 2:4");
  CHECK(found("a #footnote[only 5 seeds] b") == "1:5");
  CHECK(found("#figure(image(\"a1.svg\", width: 80%),\n caption: [Loss 0.91 at #num(\"x\")])") == "2:0.91");
  CHECK(found("#let note(x) = [at #x of 30]\n$ y = 2 x_1 $ #0.93 #\"about 8\"") == "1:30 2:2 2:0.93 2:8");
  CHECK(found("#if x > 2 [few 3] else if y == 4 { [many 5] } else [none] and 6") == "1:3 1:5 1:6");
  CHECK(found("#table(columns: 2, [a], [0.5], ..row(3)[4])") == "1:0.5 1:3c 1:4");
  CHECK(found("#for i in range(3) [step #i of 9]") == "1:3c 1:9");
  CHECK(found("x [in 1 bracket] y #text(red)[2].field 3") == "1:1 1:2 1:3");
  CHECK(found("#set text(11pt)\n#show heading: it => [No. 4 #it]\n#context [page 5]") == "2:4 3:5");
}

TEST_CASE("numbers that code may show are found, and those that lay out are not") {
  CHECK(found("#let best = 0.93\nWe have #best.") == "1:0.93c");
  CHECK(found("#let x = 3 + calc.pow(2, 4)\n#set page(width: 21cm)") == "1:3c 1:2c 1:4c");
  CHECK(found("#note(7, runs: 12, title: \"of 5\")") == "1:7c 1:12c 1:5c");
  CHECK(found("#{ let a = 4; a + 5e-3 } #(1 + 2)") == "1:4c 1:5e-3c 1:1c 1:2c");
  CHECK(found("#str(0x1f) #x.at(3).y(4) #([a], 6).at(1)") == "1:0x1fc 1:3c 1:4c 1:6c 1:1c");
  CHECK(found("#let f = if n > 2 { 8 } else { \"9\" }") == "1:8c 1:9c");
  CHECK(found("#stack(dir: ltr, spacing: 3, 4)\n#v(2em) #h(1fr) #rotate(30deg)[5]") == "1:4c 2:5");
}

TEST_CASE("a number in front of a heading has a point, and is not a part of its words") {
  CHECK(found("= 12 runs") == "1:12");
  CHECK(found("= 2.5 times faster\n== 3.1 Data\n=== 4. Losses") == "1:2.5");
}

TEST_CASE("code, labels, references, raw text, comments and numbers of headings are left out") {
  for (const char* text :
       {"#num(\"best2\", digits: 4) and #tab(\"t1\").", "= 2.1 Data <sec:2>\nSee @fig:loss2 and @marin2025.",
        "`x = 3` and ```py\ny = 4\n``` and ``", "// 5 runs\n/* 6 /* 7 */ 8 */ end",
        "#set page(width: 21cm)\n#set text(11)", "https://example.org/2025/11 is", "1. first\n2. second",
        "#fig(\"f1\", width: 80%)", "\\u{1F600} \\5", "$x_1 + #num(\"b1\") + \\3$",
        "#import \"v2.typ\": a1\n", "#link(\"https://a.org/2\")[here]", "#raw(\"x = 3\")",
        "#show link: set text(fill: rgb(\"#112233\"))", "#let c = rgb(\"#112233\")", "", "#", "]"})
    CHECK_MESSAGE(found(text).empty(), text, " gave ", found(text));
}

TEST_CASE("every beginning of a document can be read") {
  const std::string text =
      "= 1 A\n#let f(x) = { [b 2 #x] }\n/* 3 */ `4` $5_6 \\7 #g(\"8\")$ <l9> @r10 \\u{11} #if a [12] else "
      "{13} #\"14\"";
  for (size_t n = 0; n <= text.size(); ++n) typed_digits(text.substr(0, n));
  CHECK(found(text) == "1:1 2:2 3:5 3:8c 3:12 3:13c 3:14");
}

}  // namespace
}  // namespace ostro::paper
