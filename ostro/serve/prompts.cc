#include "ostro/serve/prompts.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

#include "ostro/tokenizer/model/text_ends.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

std::vector<int32_t> as_ids(const std::vector<uint32_t>& ids) { return {ids.begin(), ids.end()}; }

std::vector<int32_t> text_ids(Fields& fields, const std::string& name, const std::string& text,
                              const ServedModel& model) {
  if (text.empty()) {
    fields.fail(name, "is empty; to begin a new text, give the id of the token that begins one");
    return {};
  }
  const auto ids = tokenizer::prompt_ids(*model.tokenizer, text);
  if (!ids.ok()) fields.fail(name, ids.error().message());
  return ids.ok() ? *ids : std::vector<int32_t>();
}

}  // namespace

void check_model(Fields& fields, const ServedModel& model) {
  std::string asked;
  fields.text("model", asked);
  if (!asked.empty() && asked != model.facts.name)
    fields.fail_as(
        {404,
         fmt::format("the model \"{}\" is not served here; this server has \"{}\"", asked, model.facts.name),
         "model", "model_not_found"});
}

void read_prompts(Fields& fields, const std::string& name, const Json& prompt, const ServedModel& model,
                  size_t most, std::vector<std::vector<int32_t>>& ids, std::vector<std::string>& texts) {
  const bool is_list = prompt.is_array();
  if (is_list && prompt.empty()) return fields.fail(name, "is an empty list");
  const bool is_one = !is_list || prompt[0].is_number();
  const Json list = is_one ? Json::array({prompt}) : prompt;
  if (list.size() > most)
    return fields.fail(name, fmt::format("holds {} texts; at most {} are taken", list.size(), most));
  for (const Json& one : list) {
    texts.emplace_back();
    if (one.is_string()) {
      texts.back() = one.get<std::string>();
      ids.push_back(text_ids(fields, name, texts.back(), model));
    } else if (one.is_array() && !one.empty()) {
      ids.push_back(ids_of(fields, name, one, model.tokens()));
    } else {
      return fields.fail(name, fmt::format("holds {}; it is a text, a list of token ids, or a list of these",
                                           one.is_array() ? "an empty list" : shown(one)));
    }
  }
}

std::string chat_text(Fields& fields, const std::string& name, const Json& messages, const Json& tools,
                      const Json& variables, const ServedModel& model, bool add_generation_prompt) {
  for (const auto& [variable, value] : variables.items())
    if (model.chat.gives(variable))
      fields.fail(
          "chat_template_kwargs",
          fmt::format("has \"{}\", which is no further variable: the model's chat template gets special "
                      "tokens, functions and documents from the model alone; leave it out",
                      variable));
  if (fields.failed()) return "";
  const auto dumped = [](const Json& json) { return json.empty() ? "" : json.dump(); };
  auto text =
      model.chat.of_messages(messages.dump(), dumped(tools), add_generation_prompt, dumped(variables));
  if (!text.ok()) {
    fields.fail(name, "cannot become a prompt: " + text.error().message());
    return "";
  }
  for (const auto& [variable, value] : variables.items())
    if (!model.chat.mentions(variable))
      fields.fail("chat_template_kwargs",
                  fmt::format("has \"{}\", which the model's chat template does not read", variable));
  return std::move(*text);
}

std::vector<int32_t> chat_ids(Fields& fields, const std::string& name, const std::string& text,
                              const ServedModel& model) {
  if (fields.failed()) return {};
  std::vector<int32_t> ids = as_ids(model.tokenizer->encode(text));
  if (ids.empty()) fields.fail(name, "become an empty prompt by the model's chat template");
  return ids;
}

std::vector<std::pair<int32_t, double>> biases(Fields& fields, const Json& bias,
                                               const tokenizer::Tokenizer& tokenizer) {
  const int64_t tokens = tokenizer.vocab_size();
  constexpr double kMost = 100;
  std::map<int32_t, double> out;
  if (!bias.is_object()) fields.fail("logit_bias", "has to be an object: {\"id\": number}");
  for (const auto& [name, value] : bias.items()) {
    int32_t id = -1;
    const auto read = std::from_chars(name.data(), name.data() + name.size(), id);
    if (read.ec != std::errc() || read.ptr != name.data() + name.size() || id < 0 || id >= tokens) {
      fields.fail("logit_bias",
                  fmt::format("has {}; token ids of this model are 0 to {}", shown(name), tokens - 1));
      return {};
    }
    if (!tokenizer.id_to_token(static_cast<uint32_t>(id))) {
      fields.fail("logit_bias", fmt::format("has {}, which is the id of no token", id));
      return {};
    }
    const double number = value.is_number() ? value.get<double>() : 2 * kMost;
    if (!(number >= -kMost && number <= kMost)) {
      fields.fail("logit_bias",
                  fmt::format("has {} for id {}; use a number from -100 to 100", shown(value), id));
      return {};
    }
    out[id] = number + 0.0;
  }
  return {out.begin(), out.end()};
}

}  // namespace ostro::serve
