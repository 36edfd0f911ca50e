#include "ostro/base/html.h"

#include <doctest/doctest.h>

namespace ostro {
namespace {

TEST_CASE("text in a page is text") {
  CHECK(html_escaped("a\n\tb é 语 😀") == "a\n\tb é 语 😀");
  CHECK(html_escaped("</script><b x=\"1\" y='2'>&amp;") ==
        "&lt;/script&gt;&lt;b x=&quot;1&quot; y=&#39;2&#39;&gt;&amp;amp;");
}

TEST_CASE("what is no text of a page becomes U+FFFD, byte by byte") {
  const std::string mark = "\uFFFD";
  CHECK(html_escaped(std::string("a\0b\x1b\x7f", 5)) == "a" + mark + "b" + mark + mark);
  for (const char* wrong : {"\x80", "\xC2", "\xFF"}) CHECK(html_escaped(wrong) == mark);
  CHECK(html_escaped("\xC0\x80") == mark + mark);             // overlong
  CHECK(html_escaped("\xED\xA0\x80") == mark + mark + mark);  // a surrogate
  CHECK(html_escaped("\xE8\xAF<") == mark + mark + "&lt;");   // cut off: what follows is still escaped
  CHECK(html_escaped("\xC2\x85") == mark + mark);             // a control character of two bytes
}

}  // namespace
}  // namespace ostro
