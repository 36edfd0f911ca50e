#include "ostro/page/terminal/text_plot.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <sstream>

namespace ostro::page {
namespace {

const Terminal kPlain{.columns = 40, .ascii = true, .colour = false};
const Terminal kBraille{.columns = 40, .ascii = false, .colour = false};

Bins falling(int64_t steps, size_t limit) {
  Bins bins(limit);
  for (int64_t step = 1; step <= steps; ++step) bins.add(step, 2 + 4 / static_cast<double>(step));
  return bins;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

size_t characters(const std::string& line) {
  return static_cast<size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_CASE("two curves in ASCII") {
  const Bins train = falling(9, 100);
  Bins held_out(100);
  held_out.add(5, 4);
  held_out.add(9, 3);
  const std::string text =
      text_plot({{"train/loss", &train, false}, {"eval/loss", &held_out, true}}, 1, 9, kPlain);
  CHECK(text == R"(     |
   6 +*
     | *
     | *
   5 +  *
     |  *
     |   *
     |   *
   4 +    *            o
     |     *
     |      **
     |        **
   3 +          *****                  o
     |               ****
     |                   ***************
     |
     +----+-------+--------+-------+----
step      2       4        6       8
* train/loss  6 at step 1
o eval/loss  4 at step 5, 3 at step 9
)");
}

TEST_CASE("no line is wider than the terminal, whatever is drawn") {
  const Bins train = falling(5000, 80);
  for (const int columns : {1, 24, 33, 80, 200})
    for (const bool ascii : {false, true}) {
      const std::string text =
          text_plot({{"train/loss", &train, false}}, 1, 5000, {.columns = columns, .ascii = ascii});
      for (const std::string& line : lines_of(text))
        CHECK_MESSAGE(characters(line) <= static_cast<size_t>(std::max(columns, 24)), line);
      if (ascii) CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c > 0; }));
    }
}

TEST_CASE("numbers of any size leave room for the curves") {
  for (const double other : {1e300, 1 + 1e-9, 123456789.0 + 1e-7, -1e308, 1e-300}) {
    Bins values(10);
    values.add(1, 1);
    values.add(2, other);
    for (const int64_t last : {int64_t{2}, std::numeric_limits<int64_t>::max()}) {
      const std::string text =
          text_plot({{"train/loss", &values, false}}, 1, last, {.columns = 24, .ascii = true});
      for (const std::string& line : lines_of(text)) CHECK_MESSAGE(characters(line) <= 24, line);
    }
  }
}

TEST_CASE("a long run is drawn by its means, and says so") {
  const Bins train = falling(5000, 80);
  const std::string text = text_plot({{"train/loss", &train, false}}, 1, 5000, kBraille);
  CHECK(text.find("mean of up to 64 steps") != std::string::npos);
}

TEST_CASE("many signs do not cover the line") {
  const Bins train = falling(5000, 80), held_out = falling(5000, 80);
  const std::string text =
      text_plot({{"train/loss", &train, false}, {"eval/loss", &held_out, true}}, 1, 5000, kPlain);
  CHECK(count_of(text, "o") > 8);
  CHECK(count_of(text, "*") > 20);
}

TEST_CASE("curves are told apart without colours") {
  const Bins train = falling(9, 100), norm = falling(9, 100);
  const std::string text =
      text_plot({{"train/loss", &train, false}, {"train/grad_norm", &norm, false}}, 1, 9, kPlain);
  CHECK(count_of(text, "o") >= 9);
  CHECK(text.find("\no train/grad_norm") != std::string::npos);
  CHECK(text.find('\x1b') == std::string::npos);
  const Terminal colours{.columns = 40, .ascii = true, .colour = true};
  CHECK(text_plot({{"train/loss", &train, false}}, 1, 9, colours).find("\x1b[34m*\x1b[0m") !=
        std::string::npos);
}

TEST_CASE("runs without values, with one, and with values that are not finite") {
  Bins none(10), one(10), broken(10);
  CHECK(text_plot({}, 1, 0, kPlain) == "no values yet\n");
  CHECK(text_plot({{"train/loss", &none, false}}, 1, 0, kPlain) == "no values yet\n");
  one.add(1, 3.5);
  const std::string single = text_plot({{"train/loss", &one, false}}, 1, 1, kPlain);
  CHECK(count_of(single, "#") == 2);  // the mark, and the legend
  CHECK(single.find("3.5 at step 1") != std::string::npos);
  broken.add(1, std::numeric_limits<double>::quiet_NaN());
  CHECK(text_plot({{"train/loss", &broken, false}}, 1, 1, kPlain) ==
        "no values yet\n1 values are not finite and not shown\n");
  broken.add(2, 3);
  CHECK(text_plot({{"train/loss", &broken, false}}, 1, 2, kPlain).find("1 values are not finite") !=
        std::string::npos);
}

TEST_CASE("a name cannot give orders to the terminal") {
  Bins one(10);
  one.add(1, 1);
  CHECK(text_plot({{"eval/\x1b[2J/loss", &one, true}}, 1, 1, kPlain).find('\x1b') == std::string::npos);
}

}  // namespace
}  // namespace ostro::page
