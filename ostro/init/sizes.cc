#include "ostro/init/sizes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace ostro::init {
namespace {

struct Level {
  int64_t layers, hidden;
  double learning_rate;
  double utilisation;  // of the peak, as seen on machines with two cores
};
constexpr Level kLevels[] = {
    {2, 64, 5e-3, 0.15},    {2, 128, 3e-3, 0.30},   {4, 128, 3e-3, 0.30},   {4, 192, 2e-3, 0.35},
    {4, 256, 1.5e-3, 0.40}, {6, 384, 1e-3, 0.45},   {8, 512, 8e-4, 0.50},   {12, 768, 6e-4, 0.50},
    {16, 1024, 4e-4, 0.50}, {24, 1536, 3e-4, 0.50}, {24, 2048, 2e-4, 0.50},
};
// Training tokens for every weight of the layers, below which a smaller model is better in the same time.
constexpr double kTokensPerWeight = 5;
constexpr double kEvaluation = 1.1;  // time with evaluations, checkpoints and the rest

// The largest useful number of epochs: the less text, the more; beyond it the held-out loss rises again.
double most_epochs(double tokens) {
  return tokens < 1e4 ? 7 : tokens < 1e5 ? 10 : tokens < 1e6 ? 8 : tokens < 1e7 ? 6 : 4;
}

int64_t choose_seq_len(double tokens, double document_tokens) {
  const int64_t by_amount = tokens < 2e3   ? 32
                            : tokens < 1e4 ? 64
                            : tokens < 1e6 ? 128
                            : tokens < 3e7 ? 256
                            : tokens < 3e8 ? 512
                                           : 1024;
  int64_t by_documents = 64;
  while (static_cast<double>(by_documents) < 2 * document_tokens && by_documents < 1024) by_documents *= 2;
  return std::min(by_amount, by_documents);
}

// The largest power of two of at most `value`, in [low, high].
int64_t power_of_two(double value, int64_t low, int64_t high) {
  int64_t out = low;
  while (out * 2 <= high && static_cast<double>(out * 2) <= value) out *= 2;
  return out;
}

// With two digits, so that the numbers of a configuration are ones that a person would write.
int64_t two_digits(double value) {
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(std::max(1.0, value))) - 1));
  return std::max<int64_t>(1, std::llround(std::round(value / unit) * unit));
}

struct Shape {
  const Level& level;
  int64_t vocab_size, seq_len;

  int64_t heads() const { return level.hidden / (level.hidden < 256 ? 32 : 64); }
  int64_t kv_heads() const { return level.hidden < 512 ? heads() : heads() / 2; }
  int64_t intermediate() const { return (level.hidden * 8 / 3 + 15) / 16 * 16; }
  double layer_weights() const {
    const auto d = static_cast<double>(level.hidden);
    const double kv = d * static_cast<double>(kv_heads()) / static_cast<double>(heads());
    return static_cast<double>(level.layers) *
           (2 * d * d + 2 * d * kv + 3 * d * static_cast<double>(intermediate()));
  }
  double embedding() const { return static_cast<double>(vocab_size * level.hidden); }
  double parameters() const { return layer_weights() + 2 * embedding(); }
  // Forward and backward: six for every weight that multiplies, and the scores of attention, of which a token
  // meets half.
  double flops_per_token() const {
    const auto scores = static_cast<double>(level.layers * level.hidden * seq_len);
    return 6 * (layer_weights() + embedding()) + 6 * scores;
  }
  // Weights, two moments and up to three gradients in f32; what a leaf of so many tokens keeps for its
  // backward pass; the program itself.
  double memory_bytes(double leaf_tokens) const {
    const double activations =
        static_cast<double>(level.layers) * static_cast<double>(10 * level.hidden + 3 * intermediate()) +
        3 * static_cast<double>(vocab_size);
    return 4 * (6 * parameters() + leaf_tokens * activations) + 1.5e8;
  }
};

constexpr double kMostLeafTokens = 4096;  // as numerics.leaf_examples has it

std::string mega(double value, const char* unit) {
  return value < 1e5   ? fmt::format("{:.1f} thousand {}", value * 1e-3, unit)
         : value < 1e9 ? fmt::format("{:.2g} million {}", value * 1e-6, unit)
                       : fmt::format("{:.2g} billion {}", value * 1e-9, unit);
}

std::string bytes_text(double bytes) {
  return bytes < 1e6   ? fmt::format("{:.1f} KB", bytes * 1e-3)
         : bytes < 1e9 ? fmt::format("{:.1f} MB", bytes * 1e-6)
                       : fmt::format("{:.1f} GB", bytes * 1e-9);
}

}  // namespace

int64_t choose_vocab_size(int64_t bytes) {
  constexpr std::pair<int64_t, int64_t> kSizes[] = {
      {64'000, 320},      {256'000, 512},      {1'000'000, 1024},      {8'000'000, 2048},
      {64'000'000, 4096}, {512'000'000, 8192}, {4'000'000'000, 16384},
  };
  for (const auto& [below, size] : kSizes)
    if (bytes < below) return size;
  return 32768;
}

Sizes choose_sizes(const TextAmount& text, int64_t vocab_size, const Machine& machine, double minutes) {
  Sizes out;
  const double tokens = std::max(1.0, static_cast<double>(text.bytes) / text.bytes_per_token);
  const double document_tokens = tokens / static_cast<double>(std::max<int64_t>(1, text.documents));
  out.vocab_size = vocab_size;
  out.seq_len = choose_seq_len(tokens, document_tokens);

  // The largest level for which there are tokens enough, and time, and memory.
  const double enough = most_epochs(tokens) * tokens;
  const auto shape_of = [&](const Level& level) { return Shape{level, vocab_size, out.seq_len}; };
  const auto affordable = [&](const Shape& shape) {
    if (machine.peak_flops <= 0) return enough;
    return minutes * 60 / kEvaluation * machine.peak_flops * shape.level.utilisation /
           shape.flops_per_token();
  };
  const auto fits = [&](const Shape& shape) {
    return machine.memory.bytes == 0 ||
           shape.memory_bytes(kMostLeafTokens) < 0.6 * static_cast<double>(machine.memory.bytes);
  };
  size_t chosen = tokens < 5e3 ? 0 : 1;
  std::string bound = "the text";
  for (size_t i = chosen + 1; i < std::size(kLevels); ++i) {
    const Shape shape = shape_of(kLevels[i]);
    const double wanted = kTokensPerWeight * shape.layer_weights();
    if (enough < wanted || affordable(shape) < wanted || !fits(shape)) {
      bound = enough < wanted ? "the text" : affordable(shape) < wanted ? "the time" : "the memory";
      break;
    }
    chosen = i;
  }
  const Shape shape = shape_of(kLevels[chosen]);
  const Level& level = shape.level;
  const double wanted_tokens = std::min(enough, affordable(shape));

  // A batch: about a thousand steps of them, and no more sequences than the text has.
  const double sequences = std::max(1.0, std::floor((tokens - 1) / static_cast<double>(out.seq_len)));
  const int64_t batch_tokens = power_of_two(wanted_tokens / 500, 256, 65536);
  out.batch = power_of_two(std::min(static_cast<double>(batch_tokens / out.seq_len), sequences), 1, 2048);
  const auto step_tokens = static_cast<double>(out.batch * out.seq_len);
  out.steps = two_digits(std::max(20.0, wanted_tokens / step_tokens));
  out.steps_per_eval = std::max<int64_t>(1, two_digits(static_cast<double>(out.steps) / 10));
  out.keep_every = std::max<int64_t>(1, two_digits(static_cast<double>(out.steps) / 4));

  out.hidden_dim = level.hidden;
  out.intermediate_dim = shape.intermediate();
  out.num_layers = level.layers;
  out.num_heads = shape.heads();
  out.num_kv_heads = shape.kv_heads();
  out.learning_rate = level.learning_rate;
  const double trained = static_cast<double>(out.steps) * step_tokens;
  out.epochs = trained / tokens;
  out.weight_decay = out.epochs > 2 ? 1.0 : 0.1;
  out.parameters = shape.parameters();
  out.flops = trained * shape.flops_per_token();
  if (machine.peak_flops > 0)
    out.seconds = kEvaluation * out.flops / (machine.peak_flops * level.utilisation);
  out.memory_bytes = shape.memory_bytes(std::min(kMostLeafTokens, step_tokens));
  const double room = machine.memory.bytes == 0 ? 4e9 : 0.3 * static_cast<double>(machine.memory.bytes);
  out.chunk_cache_mib = std::clamp<int64_t>(static_cast<int64_t>(room / 1048576), 16, 1024);

  out.why["vocab_size"] = fmt::format("for {} of training text, {:.2f} bytes a token",
                                      bytes_text(static_cast<double>(text.bytes)), text.bytes_per_token);
  out.why["seq_len"] =
      fmt::format("{} in documents of {:.0f} on average", mega(tokens, "tokens"), document_tokens);
  out.why["model"] = fmt::format("{} in {} layers of width {}; {} allows no larger one",
                                 mega(out.parameters, "parameters"), level.layers, level.hidden, bound);
  if (chosen + 1 == std::size(kLevels))
    out.why["model"] = fmt::format("{}, the largest of init's", mega(out.parameters, "parameters"));
  out.why["train_batch_size"] = fmt::format("{:.0f} tokens a step", step_tokens);
  out.why["num_train_steps"] =
      out.epochs >= 1.5
          ? fmt::format("{} of training, each text seen {:.0f} times; with more the model would memorize it",
                        mega(trained, "tokens"), out.epochs)
          : fmt::format("{} of training, {:.2g} of the text: what {:.3g} minutes allow",
                        mega(trained, "tokens"), out.epochs, minutes);
  if (out.epochs >= 1.5 && enough > 1.2 * wanted_tokens)
    out.why["num_train_steps"] =
        fmt::format("{} of training, each text seen {:.0f} times: what {:.3g} minutes allow",
                    mega(trained, "tokens"), out.epochs, minutes);
  out.why["learning_rate"] = fmt::format("for a width of {}", level.hidden);
  out.why["weight_decay"] = out.epochs > 2 ? "high, since texts are seen several times" : "the usual one";
  out.why["steps_per_eval"] = "ten evaluations";
  out.why["keep"] = "four checkpoints stay";
  out.why["chunk_cache_mib"] = machine.memory.bytes == 0
                                   ? "the usual one; the memory of this machine is not known"
                                   : fmt::format("{} of memory are free ({}); training itself takes about {}",
                                                 bytes_text(static_cast<double>(machine.memory.bytes)),
                                                 machine.memory.source, bytes_text(out.memory_bytes));
  return out;
}

std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", std::max(1.0, seconds));
  if (seconds < 5400)
    return fmt::format("{} min {:02} s", static_cast<int64_t>(seconds) / 60,
                       static_cast<int64_t>(seconds) % 60);
  if (seconds < 48 * 3600) return fmt::format("{:.1f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

}  // namespace ostro::init
