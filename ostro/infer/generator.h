// Generation with a cache of keys and values: a host loop over two programs, one for the prompt (in padded
// buckets) and one for a single token. Every row gets the bits of the training forward (numerics.md N16).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ostro/models/model_functions.h"
#include "ostro/runtime/engine.h"

namespace ostro::infer {

struct SampleOptions {
  int64_t max_new_tokens = 64;
  double temperature = 0;  // 0: the most likely token, ties to the lower id
  uint64_t seed = 0;
  int64_t eos = -1;  // generation ends behind this token; -1: never
};

// One sequence at a time. Not thread-safe. The engine must outlive it.
class Generator {
 public:
  // `max_length` positions at most, prompt included. Errors: a model without a cached step, fewer than 2.
  static Result<std::unique_ptr<Generator>> create(const models::ModelFunctions& model,
                                                   std::vector<runtime::Buffer> params,
                                                   runtime::Engine& engine, int64_t max_length);

  // The new tokens, the eos (if it came) included. `on_token` sees each as it is made; false stops.
  Result<std::vector<int32_t>> generate(const std::vector<int32_t>& prompt, const SampleOptions& options,
                                        const std::function<bool(int32_t)>& on_token = {});

  // Loss (minus log-probability) of each token behind the first, given those before it, by the cached step:
  // the first `prefill` tokens at once, the rest one by one.
  Result<std::vector<float>> score(const std::vector<int32_t>& tokens, int64_t prefill);

 private:
  Generator(const models::ModelFunctions& model, std::vector<runtime::Buffer> params, runtime::Engine& engine,
            int64_t max_length);

  // Runs tokens [begin, end) as one call padded to a bucket; returns their logits [count, vocab].
  Result<runtime::Buffer> feed(const std::vector<int32_t>& tokens, size_t begin, size_t end);
  Result<runtime::Executable*> program(int64_t bucket);
  void reset();

  models::ModelFunctions model_;
  std::vector<runtime::Buffer> params_;
  runtime::Engine& engine_;
  int64_t max_length_;
  std::vector<runtime::Buffer> cache_;
  std::vector<std::pair<int64_t, std::unique_ptr<runtime::Executable>>> programs_;  // by bucket
};

// The token for one row of logits: argmax, or at temperature t the argmax of logit / t + Gumbel noise, drawn
// from threefry keyed by (seed, "sample", position). f64 on the host.
int32_t choose_token(std::span<const float> logits, double temperature, uint64_t seed, int64_t position);

}  // namespace ostro::infer
