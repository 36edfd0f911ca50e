// FormulaRunner, test_model: a served model for tests whose logits follow from the tokens by a formula, so
// that no engine is needed. Not thread-safe.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/serve/running_answer.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::serve {

// Computes logits by the formula. Each row of logits depends on all tokens of its sequence up to its
// position, as with a model.
class FormulaRunner : public infer::RowRunner {
 public:
  FormulaRunner(int64_t vocab, const infer::RowLimits& limits) : vocab_(vocab), limits_(limits) {}

  std::function<void()> before_step = {};  // called by step(), so that a test can make it wait
  int64_t steps = 0, rows = 0, most_together = 0;

  const infer::RowLimits& limits() const override { return limits_; }
  Status prepare() override { return {}; }
  Result<std::string> program_hash() override { return std::string("formula"); }
  Result<int64_t> open() override {
    int64_t free = 0;
    while (states_.contains(free)) ++free;
    if (free >= limits_.sequences) return invalid_argument("all sequences are open");
    states_[free] = {kFirst};
    return free;
  }
  void close(int64_t sequence) override { states_.erase(sequence); }
  int64_t length(int64_t sequence) const override {
    return static_cast<int64_t>(states_.at(sequence).size()) - 1;
  }
  Status copy(int64_t from, int64_t to, int64_t count) override {
    const auto& all = states_.at(from);
    states_.at(to).assign(all.begin(), all.begin() + count + 1);
    return {};
  }
  Result<runtime::Buffer> step(std::span<const infer::RowChunk> chunks) override {
    RETURN_IF_ERROR(infer::check_chunks(*this, chunks));
    if (before_step) before_step();
    ++steps;
    most_together = std::max(most_together, static_cast<int64_t>(chunks.size()));
    std::vector<float> out;
    for (const infer::RowChunk& chunk : chunks) {
      std::vector<uint64_t>& states = states_.at(chunk.sequence);
      const auto count = static_cast<int64_t>(chunk.tokens.size());
      rows += count;
      for (int64_t i = 0; i < count; ++i) {
        states.push_back(states.back() * 6364136223846793005 +
                         static_cast<uint64_t>(chunk.tokens[static_cast<size_t>(i)]) + 1442695040888963407);
        if (i >= count - chunk.wanted) append_row(states.back(), out);
      }
    }
    if (out.empty()) return runtime::Buffer();
    const ir::Shape shape{ir::DType::f32, {{"pos", std::ssize(out) / vocab_}, {"vocab", vocab_}}};
    return runtime::Buffer::copy_of(shape, out.data());
  }
  bool is_idle() const { return states_.empty(); }

 private:
  static constexpr uint64_t kFirst = 12345;

  void append_row(uint64_t draw, std::vector<float>& rows) const {
    for (int64_t i = 0; i < vocab_; ++i) {
      draw = draw * 6364136223846793005 + 1442695040888963407;
      rows.push_back(static_cast<float>(draw >> 40) / static_cast<float>(1 << 22));  // 0 to 4
    }
  }

  int64_t vocab_;
  infer::RowLimits limits_;
  std::map<int64_t, std::vector<uint64_t>> states_;  // before each token, and after the last
};

// A byte-level tokenizer with all bytes, some merges and <|endoftext|>.
inline std::shared_ptr<const tokenizer::Tokenizer> test_tokenizer() {
  bool done = false;
  tokenizer::TrainOptions options;
  options.vocab_size = 280;
  return std::make_shared<tokenizer::Tokenizer>(tokenizer::train(
                                                    [&](std::string& text) -> Result<bool> {
                                                      text = "the cat sat on the mat, naïve 東京; the cat ";
                                                      return !std::exchange(done, true);
                                                    },
                                                    options)
                                                    .value());
}

// A model of the formula with test_tokenizer() and no chat template, for `context` positions, `running`
// sequences and `rows` rows in a step.
inline ServedModel test_model(int64_t context = 64, int64_t running = 4, int64_t rows = 32) {
  ServedModel out;
  out.tokenizer = test_tokenizer();
  out.facts = {"test", std::string(64, 'a'), "formula", out.tokenizer->hash(), "", "", context};
  out.stops = {static_cast<int32_t>(out.tokenizer->eos_id().value())};
  out.runner = std::make_unique<FormulaRunner>(out.tokens(), infer::RowLimits{context, running, rows});
  return out;
}

// The whole answer, alone.
inline Result<RunningAnswer> make_answer(ServedModel& model, std::vector<int32_t> prompt,
                                         const AnswerOptions& options, const RatingOptions& rating) {
  ASSIGN_OR_RETURN(RunningAnswer out, RunningAnswer::create(model, std::move(prompt), options, rating));
  RETURN_IF_ERROR(out.open());
  while (out.unfed() > 0) {
    const infer::RowChunk chunk =
        out.chunk(std::min(out.unfed(), static_cast<size_t>(model.runner->limits().rows)));
    ASSIGN_OR_RETURN(const runtime::Buffer rows, model.runner->step({&chunk, 1}));
    if (chunk.wanted == 0) {
      RETURN_IF_ERROR(out.take(chunk, {}, 0));
      continue;
    }
    RETURN_IF_ERROR(out.take(chunk, rows.as<float>(), static_cast<size_t>(rows.shape().axes.back().size)));
  }
  return out;
}

}  // namespace ostro::serve
