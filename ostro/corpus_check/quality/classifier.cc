#include "ostro/corpus_check/quality/classifier.h"

#include "ostro/corpus_check/words.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/permutation.h"

namespace ostro::corpus_check {
namespace {

constexpr uint64_t kPair = 0x9E3779B97F4A7C15ull;  // odd

numerics::Key key_of(int64_t seed, std::string_view purpose) {
  return numerics::fold_in(numerics::key_from_seed(static_cast<uint64_t>(seed)), numerics::fnv1a32(purpose));
}

}  // namespace

std::vector<uint32_t> text_features(std::string_view text, int64_t buckets) {
  const std::vector<uint64_t> words = word_hashes(text);
  const auto n = static_cast<uint64_t>(buckets);
  std::vector<uint32_t> out;
  out.reserve(2 * words.size());
  for (const uint64_t word : words) out.push_back(static_cast<uint32_t>(word % n));
  for (size_t i = 1; i < words.size(); ++i)
    out.push_back(static_cast<uint32_t>(mix64(words[i - 1] * kPair + words[i]) % n));
  return out;
}

TextClassifier::TextClassifier(const ClassifierOptions& options)
    : dim_(static_cast<size_t>(options.dim)), output_(dim_, 0.0f) {
  vectors_.resize(static_cast<size_t>(options.buckets) * dim_);
  const numerics::Key key = key_of(options.seed, "vectors");
  const float scale = 1.0f / static_cast<float>(options.dim);
  for (size_t i = 0; i < vectors_.size(); ++i) {
    const uint64_t at = i / 2;
    const numerics::Key block =
        numerics::threefry2x32(key, static_cast<uint32_t>(at >> 32), static_cast<uint32_t>(at));
    const uint32_t word = i % 2 == 0 ? block.word0 : block.word1;
    // 24 bits: exact in f32. From -1 to below 1, times the scale.
    const float unit = static_cast<float>(word >> 8) * 0x1p-23f - 1.0f;
    vectors_[i] = unit * scale;
  }
}

void TextClassifier::mean(const std::vector<uint32_t>& features, std::vector<float>& out) const {
  out.assign(dim_, 0.0f);
  for (const uint32_t feature : features) {
    const float* vector = vectors_.data() + size_t{feature} * dim_;
    for (size_t d = 0; d < dim_; ++d) out[d] += vector[d];
  }
  const auto count = static_cast<float>(features.size());
  for (float& x : out) x /= count;
}

float TextClassifier::probability(const std::vector<float>& hidden) const {
  float sum = 0;
  for (size_t d = 0; d < dim_; ++d) sum += output_[d] * hidden[d];
  return numerics::sigmoid_f32(sum);
}

// One step of gradient descent on the cross entropy. The output vector here is the difference of fastText's
// two, so its step is twice as long.
void TextClassifier::learn(const Example& example, float rate, std::vector<float>& hidden) {
  if (example.features.empty()) return;
  mean(example.features, hidden);
  const float error = rate * ((example.is_good ? 1.0f : 0.0f) - probability(hidden));
  const float share = error / static_cast<float>(example.features.size());
  std::vector<float> step(dim_);
  for (size_t d = 0; d < dim_; ++d) step[d] = share * output_[d];
  for (size_t d = 0; d < dim_; ++d) output_[d] += 2.0f * error * hidden[d];
  for (const uint32_t feature : example.features) {
    float* vector = vectors_.data() + size_t{feature} * dim_;
    for (size_t d = 0; d < dim_; ++d) vector[d] += step[d];
  }
}

TextClassifier TextClassifier::train(const std::vector<Example>& examples, const ClassifierOptions& options) {
  const numerics::HostArithmetic arithmetic;
  TextClassifier out(options);
  const auto count = static_cast<int64_t>(examples.size());
  const int64_t all = count * options.epochs;
  const auto first = static_cast<float>(options.learning_rate);
  std::vector<float> hidden;
  for (int64_t epoch = 0; epoch < options.epochs; ++epoch) {
    const numerics::Permutation order(
        numerics::fold_in(key_of(options.seed, "order"), static_cast<uint32_t>(epoch)), count);
    for (int64_t i = 0; i < count; ++i) {
      const float left = 1.0f - static_cast<float>(epoch * count + i) / static_cast<float>(all);
      out.learn(examples[static_cast<size_t>(order(i))], first * left, hidden);
    }
  }
  return out;
}

float TextClassifier::score(const std::vector<uint32_t>& features) const {
  if (features.empty()) return 0.5f;
  const numerics::HostArithmetic arithmetic;
  std::vector<float> hidden;
  mean(features, hidden);
  return probability(hidden);
}

}  // namespace ostro::corpus_check
