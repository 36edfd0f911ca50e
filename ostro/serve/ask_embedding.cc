// parse_embedding: the body of /v1/embeddings.
#include <fmt/format.h>

#include <algorithm>

#include "ostro/serve/ask.h"
#include "ostro/serve/json/fields.h"
#include "ostro/serve/prompts.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

// The place of the field's word in `words`; the first is the default.
size_t word_of(Fields& fields, const std::string& name, const std::vector<std::string>& words) {
  std::string word = words[0];
  fields.text(name, word);
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end())
    fields.fail(name, fmt::format("is {}; use {}", shown(word), fmt::join(words, " or ")));
  return static_cast<size_t>(found - words.begin());
}

}  // namespace

ParsedAsk parse_embedding(const ServedModel& model, const Body& body, const AskLimits& limits) {
  if (body.error()) return *body.error();
  Fields fields(body.json());
  Ask ask;
  ask.form = Form::kEmbedding;
  ask.options.max_tokens = 0;
  check_model(fields, model);
  if (model.facts.width == 0)
    return ApiError{kBadRequest, "this model's struct has no parts by layer, so it gives no embeddings",
                    "model"};
  ask.base64 = word_of(fields, "encoding_format", {"float", "base64"}) == 1;
  ask.rating.pooling = word_of(fields, "pooling", {"last", "mean"}) == 0 ? Pooling::kLast : Pooling::kMean;
  int64_t dimensions = model.facts.width;
  fields.integer("dimensions", dimensions, 1, INT64_MAX);
  if (dimensions != model.facts.width)
    fields.fail("dimensions", fmt::format("is {}; embeddings of this model have {}, and are never cut",
                                          dimensions, model.facts.width));
  const Json* input = fields.find("input");
  if (input == nullptr)
    fields.fail("input",
                "is missing; it is a text, a list of texts, a list of token ids, or a list of these");
  else
    read_prompts(fields, "input", *input, model, limits.inputs, ask.prompts, ask.prompt_texts);
  for (size_t i = 0; i < ask.prompts.size() && !fields.failed(); ++i)
    if (std::ssize(ask.prompts[i]) > model.facts.context)
      fields.fail("input", fmt::format("has {} tokens at place {}; the model's context is {}",
                                       ask.prompts[i].size(), i, model.facts.context));
  int64_t tokens = 0;
  for (const auto& prompt : ask.prompts) tokens += std::ssize(prompt);
  if (tokens > limits.input_tokens)
    fields.fail("input",
                fmt::format("has {} tokens in all; a request may have {}", tokens, limits.input_tokens));
  if (const int64_t most = limits.numbers / model.facts.width; std::ssize(ask.prompts) > most)
    fields.fail("input",
                fmt::format("has {} texts; a request may have {} of a model with {} numbers for each",
                            ask.prompts.size(), most, model.facts.width));
  if (auto error = fields.finish()) return *error;
  return ask;
}

}  // namespace ostro::serve
