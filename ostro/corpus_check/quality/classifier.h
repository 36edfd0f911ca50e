// TextClassifier: tells good texts from others, in the shape of fastText: hashed words and pairs of words,
// the mean of their vectors, one linear layer.
//
// It is trained serially in f32, in the arithmetic of docs/spec/numerics.md with its own exp, so it has the
// same bits on every machine (docs/reference/formats/rows.md says each operation).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ostro::corpus_check {

struct ClassifierOptions {
  int64_t buckets = 1 << 20;  // vectors; words and pairs of words share them by hash
  int64_t dim = 16;           // of a vector
  int64_t epochs = 5;
  double learning_rate = 0.1;  // of the first example; it falls to 0 linearly
  int64_t seed = 0;            // of the first vectors and of the order of the examples
};

// The buckets of a text's words and of its pairs of neighbouring words.
std::vector<uint32_t> text_features(std::string_view text, int64_t buckets);

struct Example {
  std::vector<uint32_t> features;
  bool is_good = false;
};

// Immutable after training; const use is thread-safe.
class TextClassifier {
 public:
  // `examples` are of both kinds.
  static TextClassifier train(const std::vector<Example>& examples, const ClassifierOptions& options);

  // From 0 to 1: how much a text with these features is like the good ones. 0.5 without features.
  float score(const std::vector<uint32_t>& features) const;

 private:
  explicit TextClassifier(const ClassifierOptions& options);
  // The mean of the features' vectors.
  void mean(const std::vector<uint32_t>& features, std::vector<float>& out) const;
  float probability(const std::vector<float>& hidden) const;
  void learn(const Example& example, float rate, std::vector<float>& hidden);

  size_t dim_;
  std::vector<float> vectors_;  // [bucket, dim]
  std::vector<float> output_;   // [dim]
};

}  // namespace ostro::corpus_check
