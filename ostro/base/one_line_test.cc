#include "ostro/base/one_line.h"

#include <doctest/doctest.h>

namespace ostro {
namespace {

TEST_CASE("a text from outside makes no lines of its own, and gives a terminal no orders") {
  CHECK(one_line("a b é 语 😀 – “x”") == "a b é 语 😀 – “x”");
  CHECK(one_line("x\nequal: all\r\t\x1b[2J\x7f") == "x equal: all   [2J ");
  CHECK(one_line("a\xC2\x9B"
                 "2J\xC2\x85"
                 "b\xC2\xA0") == "a 2J b\xC2\xA0");
  CHECK(one_line("\xE2\x80\xA8"
                 "a\xE2\x80\xAE"
                 "b\xE2\x81\xA6"
                 "c\xE2\x80\xA7") == " a b c\xE2\x80\xA7");
  CHECK(one_line("cut \xE2\x80") == "cut \xE2\x80");
  CHECK(one_line("\xFF\xC2") == "\xFF\xC2");
}

}  // namespace
}  // namespace ostro
