// Generator: text generation with a cache of attention keys and values. A loop on the host runs two kinds of
// programs: one for the prompt, padded to a few fixed lengths (buckets), and one for a single token. Every
// row has the same bits as in the training forward pass (numerics.md N16).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ostro/infer/runner.h"
#include "ostro/models/model_functions.h"
#include "ostro/numerics/leaves.h"
#include "ostro/runtime/engine.h"

namespace ostro::infer {

struct SampleOptions {
  int64_t max_new_tokens = 64;
  double temperature = 0;  // this and the seed: ChoiceOptions (choose.h)
  uint64_t seed = 0;
  std::vector<int32_t> stops = {};  // generation stops after any of these tokens
  int64_t tokens =
      0;  // only the first so many ids are chosen, those of the tokenizer; 0: all that have logits
};

// One sequence at a time. Not thread-safe. The engine must outlive it.
class Generator : public Runner {
 public:
  // `max_length` is the largest number of positions, prompt included; `leaves` is the leaf table of the
  // model's programs, without a cut of positions. Errors: the model has no cached step; max_length is
  // below 2.
  static Result<std::unique_ptr<Generator>> create(const models::ModelFunctions& model,
                                                   std::vector<runtime::Buffer> params,
                                                   runtime::Engine& engine, int64_t max_length,
                                                   numerics::LeafTable leaves = {});

  int64_t max_length() const override { return max_length_; }
  Status prepare() override;
  Result<std::string> program_hash() override;
  Result<runtime::Buffer> start(std::span<const int32_t> prompt) override;
  Result<runtime::Buffer> next(int32_t token) override;

  // Returns the new tokens, with the stop token if one was generated. `on_token` is called with each token as
  // it is made; it returns false to stop.
  Result<std::vector<int32_t>> generate(const std::vector<int32_t>& prompt, const SampleOptions& options,
                                        const std::function<bool(int32_t)>& on_token = {});

  // The loss (negative log-probability) of every token but the first, given the tokens before it. It uses the
  // cached step: the first `prefill` tokens in one call, the others one by one.
  Result<std::vector<float>> score(const std::vector<int32_t>& tokens, int64_t prefill);

 private:
  Generator(const models::ModelFunctions& model, std::vector<runtime::Buffer> params, runtime::Engine& engine,
            int64_t max_length, numerics::LeafTable leaves);

  // Runs the tokens [begin, end) in one call, padded to a bucket. Returns their logits [count, vocab].
  Result<runtime::Buffer> feed(const std::vector<int32_t>& tokens, size_t begin, size_t end);
  Result<ir::Program> traced(int64_t bucket) const;
  Result<runtime::Executable*> program(int64_t bucket);
  void reset();

  models::ModelFunctions model_;
  std::vector<runtime::Buffer> params_;
  runtime::Engine& engine_;
  int64_t max_length_;
  numerics::LeafTable leaves_;
  std::vector<runtime::Buffer> cache_;
  std::vector<int32_t> tokens_;  // of the sequence of start() and next()
  std::vector<std::pair<int64_t, std::unique_ptr<runtime::Executable>>> programs_;  // by bucket
};

// True if generation stops after this token.
bool is_stop(const SampleOptions& options, int32_t token);
// The token that follows `position` tokens, of a row with the logits of all rows of the vocabulary: one of
// those that options.tokens allows. Every generator chooses with it.
int32_t next_token(std::span<const float> logits, const SampleOptions& options, int64_t position);

}  // namespace ostro::infer
