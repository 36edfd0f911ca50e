#include "ostro/eval/score/text_model.h"

#include <fmt/format.h>

#include "ostro/eval/score/encoding.h"

namespace ostro::eval {

TextModel::TextModel(models::ModelFunctions model, std::vector<runtime::Buffer> params,
                     runtime::Engine& engine, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                     TextModelOptions options)
    : model_(std::move(model)),
      params_(std::move(params)),
      engine_(engine),
      tokenizer_(std::move(tokenizer)),
      options_(std::move(options)),
      scorer_(model_, params_, engine_, {options_.context, options_.batch_tokens, options_.leaves}) {}

Result<std::vector<ContinuationScore>> TextModel::continuations(std::span<const ContinuationRequest> requests,
                                                                bool greedy, const Progress& progress) {
  std::vector<Window> windows;
  std::vector<ContinuationScore> out;
  for (const ContinuationRequest& request : requests) {
    auto window = continuation_window(*tokenizer_, request.context, request.continuation, options_.context);
    if (!window.ok())
      return request.place.empty() ? window.error() : window.error().with_context(request.place);
    out.push_back({0, static_cast<int64_t>(window->tokens.size() - window->first), {}});
    windows.push_back(std::move(*window));
  }
  ASSIGN_OR_RETURN(const std::vector<WindowScore> scores, scorer_.score(windows, greedy, [&](size_t done) {
    if (progress) progress(done, windows.size());
  }));
  for (size_t i = 0; i < out.size(); ++i)
    out[i].log_prob = scores[i].log_prob, out[i].greedy = scores[i].greedy;
  return out;
}

Result<std::vector<TextScore>> TextModel::texts(std::span<const std::string> texts, int64_t stride,
                                                const Progress& progress) {
  if (stride < 0 || stride > options_.context)
    return invalid_argument(
        fmt::format("stride {}: use 1 to {}, the model's context", stride, options_.context));
  ASSIGN_OR_RETURN(const int32_t prefix, prefix_token(*tokenizer_));
  std::vector<Window> windows;
  std::vector<size_t> text_of;
  std::vector<TextScore> out;
  tokenizer::Encoder encoder(*tokenizer_);
  std::vector<uint32_t> ids;
  for (const std::string& text : texts) {
    ids.clear();
    encoder.encode(text, {}, ids);
    if (!ids.empty() && static_cast<int32_t>(ids[0]) == prefix) ids.erase(ids.begin());
    for (Window& window :
         rolling_windows(ids, prefix, options_.context, stride == 0 ? options_.context : stride)) {
      windows.push_back(std::move(window));
      text_of.push_back(out.size());
    }
    out.push_back({0, static_cast<int64_t>(ids.size()), static_cast<int64_t>(text.size())});
  }
  ASSIGN_OR_RETURN(const std::vector<WindowScore> scores, scorer_.score(windows, false, [&](size_t done) {
    if (progress) progress(done, windows.size());
  }));
  for (size_t i = 0; i < scores.size(); ++i) out[text_of[i]].log_prob += scores[i].log_prob;
  return out;
}

Result<GeneratedText> TextModel::generate(const GenerationRequest& request) {
  if (runner_ == nullptr) {
    ASSIGN_OR_RETURN(runner_, infer::make_runner(model_, options_.layers, params_, engine_,
                                                 {options_.context}, options_.leaves));
  }
  return generate_text(*runner_, *tokenizer_, options_.context, request);
}

}  // namespace ostro::eval
