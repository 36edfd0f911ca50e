#include "ostro/prepare/store/encode_again.h"

#include <doctest/doctest.h>

#include "ostro/prepare/store/test_corpus.h"

using namespace ostro;
using namespace ostro::data;
using namespace ostro::prepare;

TEST_CASE("documents of a store are encoded again, and another text is found") {
  io::MemoryFileSystem fs;
  write_corpus(fs, "corpus");
  const DataOptions options = corpus_options("corpus");
  REQUIRE(build_store(fs, options, test_tokenizer(), small_settings()).ok());
  const auto store = open_store(fs, options);
  REQUIRE(store.ok());
  std::vector<int64_t> rows;
  int64_t of_file = -1;
  for (const Split split : kSplits)
    for (int64_t row = 0; row < (*store)->split(split).rows(); ++row) {
      if ((*store)->split(split).source(row)->file == "corpus/text/07.txt")
        of_file = static_cast<int64_t>(rows.size());
      rows.push_back(static_cast<int64_t>(rows.size()));
    }
  REQUIRE(rows.size() == 84);
  REQUIRE(of_file >= 0);
  const auto again = [&](const std::vector<int64_t>& some) {
    return encode_again(fs, options, **store, test_tokenizer(), some);
  };
  const auto places = again(rows);
  REQUIRE_MESSAGE(places.ok(), places.error().message());
  CHECK(places->size() == 84);
  CHECK(again({of_file})->at(0) == "corpus/text/07.txt");
  write(fs, "corpus/text/07.txt", words(7, 5 + 7 * 7) + "s");
  const auto other = again({0, of_file});
  REQUIRE_FALSE(other.ok());
  CHECK_MESSAGE(other.error().message().find("corpus/text/07.txt: its ") != std::string::npos,
                other.error().message());
}
