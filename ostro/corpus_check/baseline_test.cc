#include "ostro/corpus_check/baseline.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "ostro/prepare/store/test_corpus.h"

namespace ostro::corpus_check {
namespace {

TEST_CASE("held-out text comes back as it was, and costs what counting says") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("/train"));
  check_ok(fs.make_dirs("/held_out"));
  prepare::write(fs, "/train/a.txt", "the cat sat on the mat");
  prepare::write(fs, "/held_out/a.txt", "the dog sat on ");
  prepare::write(fs, "/held_out/b.txt", "the caf\xc3\xa9");
  data::DataOptions options;
  options.cache_dir = "/cache";
  options.train_urls = {"/train"};
  options.validation_urls = {"/held_out"};
  options.validation_fraction = 0;
  REQUIRE(prepare::build_store(fs, options, prepare::test_tokenizer()).ok());
  const auto store = prepare::open_store(fs, options);
  REQUIRE(store.ok());

  const auto text = held_out_text(**store, prepare::test_tokenizer());
  REQUIRE(text.ok());
  CHECK(*text == "the dog sat on the caf\xc3\xa9");

  // Worked out by hand: the share of a token is (its count in training + 1) / sum of these.
  std::map<uint32_t, double> train;
  const auto eos = *prepare::test_tokenizer().eos_id();
  for (const uint32_t t : prepare::test_tokenizer().encode("the cat sat on the mat")) train[t] += 1;
  train[eos] += 1;
  double total = 0;
  for (const auto& [token, count] : train) total += count;
  total += prepare::test_tokenizer().vocab_size();
  double bits = 2 * std::log2(total / (train[eos] + 1));
  int64_t tokens = 2;
  for (const char* document : {"the dog sat on ", "the caf\xc3\xa9"})
    for (const uint32_t t : prepare::test_tokenizer().encode(document)) {
      bits += std::log2(total / (train[t] + 1));
      ++tokens;
    }
  const auto b = unigram_baseline(**store);
  REQUIRE(b.ok());
  CHECK(b->tokens == tokens);
  CHECK(b->bytes == static_cast<int64_t>(text->size()));
  CHECK(b->bits_per_token * static_cast<double>(tokens) == doctest::Approx(bits));
  CHECK(b->bits_per_byte * static_cast<double>(b->bytes) == doctest::Approx(bits));
  CHECK(b->bits_per_byte < b->uniform_bits_per_byte);
}

TEST_CASE("a store without held-out text has no baseline") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("/train"));
  prepare::write(fs, "/train/a.txt", "the cat sat on the mat");
  data::DataOptions options;
  options.cache_dir = "/cache";
  options.train_urls = {"/train"};
  options.validation_fraction = 0;
  REQUIRE(prepare::build_store(fs, options, prepare::test_tokenizer()).ok());
  const auto store = prepare::open_store(fs, options);
  REQUIRE(store.ok());
  const auto b = unigram_baseline(**store);
  REQUIRE(!b.ok());
  CHECK(b.error().message().find("validation_fraction") != std::string::npos);
}

}  // namespace
}  // namespace ostro::corpus_check
