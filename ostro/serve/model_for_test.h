// FormulaRunner, test_model: a served model for tests whose logits follow from the tokens by a formula, so
// that no engine is needed. Not thread-safe.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/serve/served_model.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::serve {

// Computes logits by the formula. Each row of logits depends on all tokens up to its position, as with a
// model.
class FormulaRunner final : public infer::Runner {
 public:
  FormulaRunner(int64_t vocab, int64_t context) : vocab_(vocab), context_(context) {}

  int64_t max_length() const override { return context_; }
  std::function<void()> before_next = {};  // called by next(), so that a test can make it wait

  Status prepare() override { return {}; }
  Result<std::string> program_hash() override { return std::string("formula"); }
  Result<runtime::Buffer> start(std::span<const int32_t> prompt) override {
    if (prompt.empty() || static_cast<int64_t>(prompt.size()) > context_) return invalid_argument("no room");
    state_ = 12345;
    std::vector<float> rows;
    for (const int32_t token : prompt) append_row(token, rows);
    return as_buffer(rows);
  }
  Result<runtime::Buffer> next(int32_t token) override {
    if (before_next) before_next();
    std::vector<float> rows;
    append_row(token, rows);
    return as_buffer(rows);
  }

 private:
  void append_row(int32_t token, std::vector<float>& rows) {
    state_ = state_ * 6364136223846793005 + static_cast<uint64_t>(token) + 1442695040888963407;
    uint64_t draw = state_;
    for (int64_t i = 0; i < vocab_; ++i) {
      draw = draw * 6364136223846793005 + 1442695040888963407;
      rows.push_back(static_cast<float>(draw >> 40) / static_cast<float>(1 << 22));  // 0 to 4
    }
  }
  runtime::Buffer as_buffer(const std::vector<float>& rows) const {
    const ir::Shape shape{ir::DType::f32,
                          {{"pos", static_cast<int64_t>(rows.size()) / vocab_}, {"vocab", vocab_}}};
    return runtime::Buffer::copy_of(shape, rows.data());
  }

  int64_t vocab_, context_;
  uint64_t state_ = 0;
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

// A model of the formula with test_tokenizer() and no chat template, for `context` positions.
inline ServedModel test_model(int64_t context = 64) {
  ServedModel out;
  out.tokenizer = test_tokenizer();
  out.facts = {"test", std::string(64, 'a'), "formula", out.tokenizer->hash(), "", "", context};
  out.stops = {static_cast<int32_t>(out.tokenizer->eos_id().value())};
  out.runner = std::make_unique<FormulaRunner>(out.tokens(), context);
  return out;
}

}  // namespace ostro::serve
