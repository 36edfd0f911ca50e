// FormulaRunner, test_model: a served model for tests whose logits follow from the tokens by a formula, so
// that no engine is needed. Not thread-safe.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/infer/paged_cache.h"
#include "ostro/serve/running_answer.h"
#include "ostro/tokenizer/files/trainer.h"

namespace ostro::serve {

// Computes logits by the formula. Each row of logits depends on all tokens of its sequence up to its
// position, as with a model: each position has a number, which follows from the one before it and lies in the
// place of keys in a page.
class FormulaRunner : public infer::RowRunner {
 public:
  FormulaRunner(int64_t vocab, const infer::RowLimits& limits)
      : vocab_(vocab),
        limits_(limits),
        cache_(infer::PagedCache::create(
                   {ir::DType::f32, {{"batch", 1}, {"key_pos", 1}, {"kv_heads", 1}, {"head_dim", 2}}}, 1,
                   limits, false, runtime::host_memory())
                   .value()) {}

  std::function<void()> before_step = {};  // called by step(), so that a test can make it wait
  int64_t steps = 0, rows = 0, most_together = 0;

  const infer::RowLimits& limits() const override { return limits_; }
  int64_t width() const override { return kWidth; }
  Status prepare() override { return {}; }
  Result<std::string> program_hash() override { return std::string("formula"); }
  Result<int64_t> open() override { return cache_.open(); }
  void close(int64_t sequence) override { cache_.close(sequence); }
  int64_t length(int64_t sequence) const override { return cache_.length(sequence); }
  bool has_room(std::span<const infer::RowChunk> chunks, int64_t tokens) const override {
    return cache_.has_room(chunks, tokens);
  }
  infer::CacheFacts cache_facts() const override { return cache_.facts(); }
  int64_t reuse(int64_t sequence, std::span<const int32_t> tokens, std::string_view owner) override {
    return cache_.reuse(sequence, tokens, owner);
  }
  Status copy(int64_t from, int64_t to, int64_t count) override { return cache_.copy(from, to, count); }
  Result<runtime::Buffer> step(std::span<const infer::RowChunk> chunks) override {
    RETURN_IF_ERROR(infer::check_chunks(*this, chunks));
    RETURN_IF_ERROR(cache_.begin(chunks));
    if (before_step) before_step();
    ++steps;
    most_together = std::max(most_together, static_cast<int64_t>(chunks.size()));
    std::vector<float> out;
    for (const infer::RowChunk& chunk : chunks) {
      const auto count = static_cast<int64_t>(chunk.tokens.size());
      rows += count;
      const int64_t start = cache_.length(chunk.sequence);
      uint64_t state = start == 0 ? kFirst : state_at(chunk.sequence, start - 1);
      for (int64_t i = 0; i < count; ++i) {
        state = state * 6364136223846793005 + static_cast<uint64_t>(chunk.tokens[static_cast<size_t>(i)]) +
                1442695040888963407;
        const auto bytes = std::as_bytes(std::span(&state, 1));
        RETURN_IF_ERROR(cache_.write(0, chunk.sequence, start + i, bytes, bytes));
        if (i < count - chunk.wanted) continue;
        if (chunk.normed == nullptr)
          append_row(vocab_, state, out);
        else
          append_row(kWidth, state, *chunk.normed);
      }
    }
    cache_.end(chunks);
    if (out.empty()) return runtime::Buffer();
    const ir::Shape shape{ir::DType::f32, {{"pos", std::ssize(out) / vocab_}, {"vocab", vocab_}}};
    return runtime::Buffer::copy_of(shape, out.data());
  }
  bool is_idle() const { return cache_.facts().held == 0; }

  static constexpr int64_t kWidth = 5;

 private:
  static constexpr uint64_t kFirst = 12345;

  uint64_t state_at(int64_t sequence, int64_t position) {
    const int64_t page = cache_.pages(sequence)[static_cast<size_t>(position / 128)];
    uint64_t out = 0;
    std::memcpy(&out, cache_.pool().keys(0).bytes().data() + (page * 128 + position % 128) * sizeof out,
                sizeof out);
    return out;
  }
  static void append_row(int64_t size, uint64_t draw, std::vector<float>& rows) {
    for (int64_t i = 0; i < size; ++i) {
      draw = draw * 6364136223846793005 + 1442695040888963407;
      rows.push_back(static_cast<float>(draw >> 40) / static_cast<float>(1 << 22));  // 0 to 4
    }
  }

  int64_t vocab_;
  infer::RowLimits limits_;
  infer::PagedCache cache_;
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
// sequences, `rows` rows in a step and `pages` pages of keys (RowLimits).
inline ServedModel test_model(int64_t context = 64, int64_t running = 4, int64_t rows = 32,
                              int64_t pages = 0) {
  ServedModel out;
  out.tokenizer = test_tokenizer();
  out.facts = {"test",  std::string(64, 'a'), "formula", out.tokenizer->hash(), "", "",
               context, FormulaRunner::kWidth};
  out.stops = {static_cast<int32_t>(out.tokenizer->eos_id().value())};
  out.runner = std::make_unique<FormulaRunner>(out.tokens(), infer::RowLimits{context, running, rows, pages});
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
      RETURN_IF_ERROR(out.take(chunk, {}));
      continue;
    }
    const auto vocab = static_cast<size_t>(rows.shape().axes.back().size);
    RETURN_IF_ERROR(out.take(chunk, out.read(chunk, rows.as<float>(), vocab)));
  }
  return out;
}

}  // namespace ostro::serve
