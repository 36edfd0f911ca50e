#include "ostro/tokenizer/unicode/byte_set.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>

namespace ostro::tokenizer {
namespace {

TEST_CASE("finds the first byte of the set, wherever it stands") {
  std::mt19937 rng(1);
  for (int round = 0; round < 2000; ++round) {
    ByteSet set;
    std::string members;
    for (size_t n = rng() % 4; n > 0; --n) {
      members += static_cast<char>(rng() % 256);
      set.add(static_cast<uint8_t>(members.back()));
    }
    std::string text(rng() % 150, '\0');
    for (char& c : text) c = static_cast<char>(rng() % 256);
    const size_t begin = rng() % (text.size() + 1);
    REQUIRE(set.find(text, begin) == std::min(text.find_first_of(members, begin), text.size()));
  }
}

}  // namespace
}  // namespace ostro::tokenizer
