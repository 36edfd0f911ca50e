#include "ostro/page/numbers/axis.h"

#include <doctest/doctest.h>

namespace ostro::page {
namespace {

using Texts = std::vector<std::string>;

TEST_CASE("ticks are round and as many as asked for at most") {
  CHECK(tick_texts(ticks({3.9, 6.3}, 5)) == Texts{"4.0", "4.5", "5.0", "5.5", "6.0"});
  CHECK(tick_texts(ticks({0, 0.003}, 5)) == Texts{"0", "0.001", "0.002", "0.003"});
  CHECK(tick_texts(ticks({-1, 1}, 4)) == Texts{"-1.0", "-0.5", "0", "0.5", "1.0"});
  CHECK(tick_texts(ticks({0, 27'000}, 5)) == Texts{"0", "10k", "20k"});
  CHECK(tick_texts(whole_ticks({0.5, 3.5}, 10)) == Texts{"1", "2", "3"});
  CHECK(tick_texts(whole_ticks({0, 1'000'000}, 5)) == Texts{"0", "0.2M", "0.4M", "0.6M", "0.8M", "1.0M"});
  CHECK(tick_texts(ticks({0, 4e-5}, 4)) == Texts{"0", "1e-05", "2e-05", "3e-05", "4e-05"});
  CHECK(tick_texts(ticks({0, 1e300}, 4)) == Texts{"0", "5e+299", "1e+300"});
  const Texts close = tick_texts(ticks({3, 3.000002}, 4));
  CHECK(close == Texts{"3.0000000", "3.0000005", "3.0000010", "3.0000015", "3.0000020"});
  for (const double high : {1e-300, 1e-9, 0.3, 1.0, 7.0, 12345.0, 1e300})
    for (const int most : {1, 3, 6}) {
      const size_t count = ticks({0, high}, most).size();
      CHECK_MESSAGE((count >= 1 && count <= static_cast<size_t>(most) + 1),
                    high << " " << most << " " << count);
    }
}

TEST_CASE("a range holds its values and is never empty") {
  for (const std::vector<double>& values :
       {std::vector<double>{}, {0}, {3}, {-2}, {1, 1}, {1, 1 + 1e-16}, {2, 7}, {1e-300}}) {
    const Range range = range_of(values);
    CHECK(range.low < range.high);
    for (const double value : values) CHECK((range.place(value) >= 0 && range.place(value) <= 1));
  }
  CHECK(range_of({0.01, 5}).low == 0);  // a loss is not drawn as if it could be negative
}

TEST_CASE("numbers are short") {
  CHECK(short_number(3.93192) == "3.932");
  CHECK(short_number(0.0006) == "0.0006");
  CHECK(short_number(13'412) == "13.41k");
  CHECK(short_number(-2.5e6) == "-2.5M");
  CHECK(grouped(0) == "0");
  CHECK(grouped(-1234) == "-1,234");
  CHECK(grouped(1234567) == "1,234,567");
  CHECK(grouped(123456) == "123,456");
}

}  // namespace
}  // namespace ostro::page
