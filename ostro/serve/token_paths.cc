#include "ostro/serve/token_paths.h"

#include "ostro/serve/json/conversation.h"
#include "ostro/serve/json/reply_parts.h"
#include "ostro/serve/prompts.h"
#include "ostro/tokenizer/model/text_ends.h"

namespace ostro::serve {

using Json = nlohmann::ordered_json;

http::Response tokenize(const ServedModel& model, const Body& body) {
  if (body.error()) return error_response(*body.error());
  Fields fields(body.json());
  check_model(fields, model);
  std::string prompt;
  bool add_special_tokens = true, add_generation_prompt = true, strings = false;
  const bool has_prompt = fields.find("prompt") != nullptr;
  fields.text("prompt", prompt);
  const Json* messages = fields.find("messages");
  const Functions functions = read_tools(fields, false);
  const Json variables = read_variables(fields);
  fields.flag("add_special_tokens", add_special_tokens);
  fields.flag("add_generation_prompt", add_generation_prompt);
  fields.flag("return_token_strs", strings);
  if (has_prompt == (messages != nullptr)) fields.fail("prompt", "or \"messages\": give one of them");
  if (has_prompt && !functions.list.empty()) fields.fail("tools", "belong to \"messages\"");
  if (has_prompt && !variables.empty()) fields.fail("chat_template_kwargs", "belong to \"messages\"");
  std::vector<int32_t> ids;
  if (messages != nullptr && !fields.failed())
    ids = chat_ids(fields, "messages",
                   chat_text(fields, "messages", read_messages(fields, *messages), functions.list, variables,
                             model, add_generation_prompt),
                   model);
  if (const auto error = fields.finish()) return error_response(*error);
  if (has_prompt) {
    std::vector<uint32_t> found = model.tokenizer->encode(prompt);
    const auto ends = tokenizer::text_ends(*model.tokenizer);
    if (add_special_tokens && ends.ok()) ends->begin(found);
    ids.assign(found.begin(), found.end());
  }
  Json out = {
      {"count", ids.size()}, {"max_model_len", model.facts.context}, {"tokens", ids}, {"token_strs", {}}};
  if (strings)
    for (const int32_t id : ids)
      out["token_strs"].push_back(
          std::string(model.tokenizer->id_to_token(static_cast<uint32_t>(id)).value_or("")));
  return json_response(out);
}

http::Response detokenize(const ServedModel& model, const Body& body) {
  if (body.error()) return error_response(*body.error());
  Fields fields(body.json());
  check_model(fields, model);
  std::vector<int32_t> ids;
  const Json* tokens = fields.find("tokens");
  if (tokens == nullptr || !tokens->is_array())
    fields.fail("tokens", "has to be a list of token ids");
  else
    ids = ids_of(fields, "tokens", *tokens, model.tokens());
  if (const auto error = fields.finish()) return error_response(*error);
  const auto text = model.tokenizer->decode(std::vector<uint32_t>(ids.begin(), ids.end()));
  if (!text.ok()) return error_response({kBadRequest, text.error().message(), "tokens"});
  return json_response({{"prompt", *text}});
}

http::Response apply_template(const ServedModel& model, const Body& body) {
  if (body.error()) return error_response(*body.error());
  Fields fields(body.json());
  check_model(fields, model);
  bool add_generation_prompt = true;
  fields.flag("add_generation_prompt", add_generation_prompt);
  const Functions functions = read_tools(fields, false);
  const Json variables = read_variables(fields);
  const Json* messages = fields.find("messages");
  if (messages == nullptr)
    fields.fail("messages", "is missing; it is a list of {\"role\": ..., \"content\": ...}");
  std::string text;
  if (!fields.failed())
    text = chat_text(fields, "messages", read_messages(fields, *messages), functions.list, variables, model,
                     add_generation_prompt);
  if (const auto error = fields.finish()) return error_response(*error);
  return json_response({{"prompt", text}});
}

http::Response tokenizer_info(const ServedModel& model) {
  Json out = Json::parse(model.tokenizer->tokenizer_config_json(model.facts.context));
  if (const std::string identity = model.chat.identity(); !identity.empty()) {
    const Json chat = Json::parse(identity);
    if (chat["templates"].contains("default")) out["chat_template"] = chat["templates"]["default"];
    for (const auto& [name, token] : chat["special_tokens"].items())
      if (!out.contains(name)) out[name] = token;
  }
  out["hash"] = model.facts.tokenizer;
  out["vocab_size"] = model.tokens();
  return json_response(out);
}

}  // namespace ostro::serve
