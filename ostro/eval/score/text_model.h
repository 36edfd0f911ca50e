// TextModel: a model that scores and continues texts: the probability of a continuation or of a whole text,
// and generation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/eval/score/chat_prompts.h"
#include "ostro/eval/score/text_generator.h"
#include "ostro/eval/score/token_scorer.h"

namespace ostro::eval {

struct ContinuationRequest {
  std::string context, continuation;
  std::string place;  // begins errors about it: "tasks.arc: arc.jsonl:12: choice 2"; may be empty
};
struct ContinuationScore {
  double log_prob = 0;
  int64_t tokens = 0;          // of the continuation
  std::optional<bool> greedy;  // true if greedy generation gives this continuation
};

struct TextScore {
  double log_prob = 0;
  int64_t tokens = 0, bytes = 0;  // of the text
};

struct TextModelOptions {
  int64_t context = 0;
  int64_t batch_tokens = 4096;
  numerics::LeafTable leaves = {};
  ChatPrompts chat = {};
  std::string other_mp = {};                          // trained::LoadedModel::other_mp
  std::optional<models::LayerFunctions> layers = {};  // of a decoder, in the order of its parameters
};

// Not thread-safe; the engine must outlive it.
class TextModel {
 public:
  TextModel(models::ModelFunctions model, std::vector<runtime::Buffer> params, runtime::Engine& engine,
            std::shared_ptr<const tokenizer::Tokenizer> tokenizer, TextModelOptions options);

  const tokenizer::Tokenizer& tokenizer() const { return *tokenizer_; }
  int64_t context() const { return options_.context; }
  const ChatPrompts& chat() const { return options_.chat; }
  const std::string& other_mp() const { return options_.other_mp; }
  bool knows_greedy() const { return scorer_.knows_greedy(); }

  // Called with the number of windows of tokens that are done, and of all that the call makes.
  using Progress = std::function<void(size_t done, size_t total)>;

  // The log-probabilities of the continuations, encoded as by continuation_window. `greedy`: also find out
  // whether greedy generation gives them (needs knows_greedy()).
  Result<std::vector<ContinuationScore>> continuations(std::span<const ContinuationRequest> requests,
                                                       bool greedy, const Progress& progress = {});
  // The log-probabilities of whole documents after prefix_token, in windows of rolling_windows. `stride` 0:
  // the context.
  Result<std::vector<TextScore>> texts(std::span<const std::string> texts, int64_t stride,
                                       const Progress& progress = {});
  // The continuation of a prompt, as generate_text gives it.
  Result<GeneratedText> generate(const GenerationRequest& request);

 private:
  models::ModelFunctions model_;
  std::vector<runtime::Buffer> params_;
  runtime::Engine& engine_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
  TextModelOptions options_;
  TokenScorer scorer_;
  std::unique_ptr<infer::RowRunner> runner_;  // made when it is first needed
};

}  // namespace ostro::eval
