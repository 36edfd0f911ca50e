#include "ostro/infer/generate.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/infer/choose.h"
#include "ostro/infer/layer_rows.h"
#include "ostro/infer/step_rows.h"

namespace ostro::infer {
namespace {

// A prompt that is being continued.
struct Text {
  size_t prompt = 0;
  int64_t sequence = 0;
  std::vector<int32_t> tokens;  // the prompt's, then those made
  size_t fed = 0;
};

int32_t next_token(std::span<const float> logits, const SampleOptions& options, int64_t position) {
  const auto known = static_cast<size_t>(options.tokens);
  if (known > 0 && known < logits.size()) logits = logits.first(known);
  return choose(logits, {.temperature = options.temperature, .seed = options.seed}, {}, position);
}

// Closes the sequences of texts that an error leaves open.
struct Running {
  explicit Running(RowRunner& r) : runner(r) {}
  ~Running() {
    for (const Text& text : texts) runner.close(text.sequence);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  RowRunner& runner;
  std::vector<Text> texts;
};

}  // namespace

bool is_stop(const SampleOptions& options, int32_t token) {
  return std::find(options.stops.begin(), options.stops.end(), token) != options.stops.end();
}

Result<std::vector<std::vector<int32_t>>> generate(RowRunner& runner,
                                                   std::span<const std::vector<int32_t>> prompts,
                                                   const SampleOptions& options,
                                                   const std::function<bool(size_t, int32_t)>& on_token) {
  const RowLimits& limits = runner.limits();
  for (const auto& prompt : prompts) {
    if (prompt.empty()) return invalid_argument("the prompt is empty; give at least one token");
    if (static_cast<int64_t>(prompt.size()) >= limits.positions)
      return invalid_argument(
          fmt::format("the prompt has {} tokens, the model's context {}", prompt.size(), limits.positions));
  }
  std::vector<std::vector<int32_t>> made(prompts.size());
  if (options.max_new_tokens <= 0) return made;
  Running running(runner);
  std::vector<Text>& texts = running.texts;
  size_t begun = 0;
  while (begun < prompts.size() || !texts.empty()) {
    while (begun < prompts.size() && static_cast<int64_t>(texts.size()) < limits.sequences) {
      ASSIGN_OR_RETURN(const int64_t sequence, runner.open());
      texts.push_back({begun, sequence, prompts[begun]});
      ++begun;
    }
    std::vector<RowChunk> chunks;
    std::vector<size_t> of;  // the text of each chunk
    auto room = static_cast<size_t>(limits.rows);
    // First those with one token to feed: those that are being continued.
    for (const bool one : {true, false})
      for (size_t i = 0; i < texts.size(); ++i) {
        const std::span<const int32_t> left = std::span(texts[i].tokens).subspan(texts[i].fed);
        if ((left.size() == 1) != one || room == 0) continue;
        const size_t count = std::min(room, left.size());
        chunks.push_back({texts[i].sequence, left.first(count), count == left.size() ? 1 : 0});
        of.push_back(i);
        room -= count;
      }
    ASSIGN_OR_RETURN(const runtime::Buffer logits, runner.step(chunks));
    size_t row = 0;
    for (size_t k = 0; k < chunks.size(); ++k) {
      Text& text = texts[of[k]];
      text.fed += chunks[k].tokens.size();
      if (chunks[k].wanted == 0) continue;
      const auto vocab = static_cast<size_t>(logits.shape().axes.back().size);
      const int32_t token = next_token(logits.as<float>().subspan(row++ * vocab, vocab), options,
                                       static_cast<int64_t>(text.tokens.size()));
      std::vector<int32_t>& out = made[text.prompt];
      out.push_back(token);
      text.tokens.push_back(token);
      if (on_token && !on_token(text.prompt, token)) return made;
    }
    std::erase_if(texts, [&](const Text& text) {
      const auto& out = made[text.prompt];
      const bool over = !out.empty() && (is_stop(options, out.back()) ||
                                         static_cast<int64_t>(out.size()) >= options.max_new_tokens ||
                                         static_cast<int64_t>(text.tokens.size()) >= limits.positions);
      if (over) runner.close(text.sequence);
      return over;
    });
  }
  return made;
}

Result<std::unique_ptr<RowRunner>> make_runner(const models::ModelFunctions& model,
                                               const std::optional<models::LayerFunctions>& layers,
                                               std::vector<runtime::Buffer> params, runtime::Engine& engine,
                                               const RowLimits& limits, numerics::LeafTable leaves) {
  if (layers) {
    ASSIGN_OR_RETURN(
        auto out, LayerRows::create({model, *layers, std::move(leaves)}, std::move(params), engine, limits));
    return std::unique_ptr<RowRunner>(std::move(out));
  }
  ASSIGN_OR_RETURN(auto out, StepRows::create(model, std::move(params), engine, limits, std::move(leaves)));
  return std::unique_ptr<RowRunner>(std::move(out));
}

}  // namespace ostro::infer
