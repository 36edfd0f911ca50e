#include "ostro/base/text_parts.h"

#include <doctest/doctest.h>

namespace ostro {
namespace {

TEST_CASE("parts between commas may be empty") {
  using Parts = std::vector<std::string>;
  CHECK(comma_parts("a,b") == Parts{"a", "b"});
  CHECK(comma_parts("") == Parts{""});
  CHECK(comma_parts("a,,") == Parts{"a", "", ""});
}

TEST_CASE("a word of a shell is quoted where it has to be") {
  CHECK(shell_word("runs/nano-1.b") == "runs/nano-1.b");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("it's $HOME") == "'it'\\''s $HOME'");
}

}  // namespace
}  // namespace ostro
