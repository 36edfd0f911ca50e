// The classifier's bits, and that it learns.
#include "ostro/corpus_check/quality/classifier.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <span>

#include "ostro/base/sha256.h"
#include "ostro/corpus_check/quality/quality.h"

namespace ostro::corpus_check {
namespace {

TEST_CASE("quality: a share of rows is not one too many by rounding") {
  CHECK(rows_of_share(0.07, 100) == 7);
  CHECK(0.07 * 100 > 7);  // what rounding up would take for 8
  for (const size_t rows : {1, 3, 7, 10, 29, 100, 997})
    for (size_t taken = 0; taken <= rows; ++taken)
      CHECK(rows_of_share(static_cast<double>(taken) / static_cast<double>(rows), rows) == taken);
  CHECK(rows_of_share(0.5, 3) == 2);
  CHECK(rows_of_share(0.1, 30) == 3);
  CHECK(rows_of_share(1, 0) == 0);
}

// Texts of 20 words; the good ones have other words than the others, and some in common.
std::vector<Example> drawn_examples(int64_t buckets) {
  std::vector<Example> out;
  uint64_t state = 1;
  for (int i = 0; i < 80; ++i) {
    std::string text;
    for (int w = 0; w < 20; ++w) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += fmt::format("w{} ", (state >> 33) % 30 + (i % 2 == 0 ? 0 : 20));
    }
    out.push_back({text_features(text, buckets), i % 2 == 0});
  }
  return out;
}

std::string hash_of_scores(const ClassifierOptions& options) {
  const std::vector<Example> examples = drawn_examples(options.buckets);
  const TextClassifier classifier = TextClassifier::train(examples, options);
  std::vector<float> scores;
  for (const Example& example : examples) scores.push_back(classifier.score(example.features));
  return sha256_hex(
      std::string_view(reinterpret_cast<const char*>(scores.data()), scores.size() * sizeof(float)));
}

TEST_CASE("classifier: its scores have the recorded bits") {
  const ClassifierOptions options{.buckets = 1000, .dim = 10};
  CHECK(hash_of_scores(options) == "22337396f0ae984fdaf3c6d011682d7b2884e58b937fb098a7336cabe3906a15");
  CHECK(hash_of_scores(options) == hash_of_scores(options));
  CHECK(hash_of_scores({.buckets = 1000, .dim = 10, .seed = 1}) != hash_of_scores(options));
}

TEST_CASE("classifier: good texts have higher scores, and a text without words has none") {
  const ClassifierOptions options{.buckets = 1000, .dim = 10, .epochs = 20};
  const std::vector<Example> examples = drawn_examples(options.buckets);
  const TextClassifier classifier = TextClassifier::train(examples, options);
  for (const Example& example : examples)
    CHECK((classifier.score(example.features) > 0.5f) == example.is_good);
  CHECK(classifier.score({}) == 0.5f);
}

TEST_CASE("classifier: features are the words, then the pairs, without regard to case and punctuation") {
  const auto features = text_features("One, two; three", 1 << 20);
  CHECK(features.size() == 5);
  CHECK(features == text_features("ONE two (three)", 1 << 20));
  CHECK(features != text_features("two one three", 1 << 20));
  CHECK(text_features(" ... ", 1 << 20).empty());
}

}  // namespace
}  // namespace ostro::corpus_check
