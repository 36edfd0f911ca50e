#include "ostro/chat/chat_template.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>

#include "ostro/chat/value/from_json.h"
#include "ostro/chat/value/mapping.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::chat {
namespace {

using jinja::Mapping;
using jinja::Value;

constexpr int64_t kMaxTemplate = int64_t{16} << 20;
constexpr int64_t kMaxConfig = int64_t{1} << 30;  // what load_tokenizer allows
constexpr const char* kDefault = "default";
constexpr const char* kToolUse = "tool_use";
constexpr const char* kSpecialTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};
constexpr const char* kTemplateFile = "chat_template.jinja";

std::string tool_template_path(const std::string& directory) {
  return io::join_path(io::join_path(directory, "additional_chat_templates"),
                       std::string(kToolUse) + ".jinja");
}

// Keys for the reasoning of an assistant message. Templates should read the first one.
constexpr const char* kReasoning[] = {"reasoning_content", "thinking", "reasoning"};

// A message as transformers passes it to the template: keys with null removed, and reasoning under its usual
// names.
Value prepared(const Mapping& message) {
  auto kept = std::make_shared<Mapping>();
  for (const auto& [key, value] : message.items())
    if (!value.is_none()) kept->set(key, value);
  const Value* reasoning = nullptr;
  for (const char* name : kReasoning)
    if (reasoning == nullptr) reasoning = kept->find(name);
  if (reasoning == nullptr) return Value(std::shared_ptr<const Mapping>(std::move(kept)));
  auto out = std::make_shared<Mapping>();
  out->set("thinking", *reasoning);
  for (const auto& [key, value] : kept->items()) out->set(key, value);
  out->set(kReasoning[0], *reasoning);
  return Value(std::shared_ptr<const Mapping>(std::move(out)));
}

Result<std::vector<Value>> prepared_messages(const Conversation& conversation) {
  if (!conversation.messages.is_sequence())
    return invalid_argument(
        fmt::format("the messages are a {}, not a list", conversation.messages.type_name()));
  std::vector<Value> out;
  for (const Value& message : conversation.messages.as_sequence().items) {
    if (!message.is_mapping())
      return invalid_argument(
          fmt::format("message {} is a {}, not an object with a role", out.size() + 1, message.type_name()));
    out.push_back(prepared(message.as_mapping()));
  }
  if (out.empty()) return invalid_argument("a conversation without messages");
  return out;
}

bool is_assistant(const Value& message) {
  const Value* role = message.as_mapping().find("role");
  return role != nullptr && role->is_text() && (role->as_text() == "assistant" || role->as_text() == "model");
}

// A list of objects, as transformers asks for tools and documents. Datasets often hold them as JSON text.
Result<Value> list_of_objects(const Value& given, const char* name) {
  if (given.is_none()) return given;
  Value list = given;
  if (given.is_text()) {
    auto parsed = jinja::from_json(given.as_text());
    if (!parsed.ok()) return parsed.error().with_context(fmt::format("\"{}\" is a text, and that", name));
    list = std::move(*parsed);
    if (list.is_none()) return list;
  }
  if (!list.is_sequence())
    return invalid_argument(fmt::format("\"{}\" is a {}, not a list of objects", name, list.type_name()));
  for (const Value& item : list.as_sequence().items)
    if (!item.is_mapping())
      return invalid_argument(fmt::format("\"{}\" holds a {}, not an object", name, item.type_name()));
  return list;
}

std::string token_text(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string())
    return value["content"].get<std::string>();
  return {};
}

}  // namespace

Status ChatTemplate::add(std::string name, std::string source, const std::string& place) {
  auto parsed = jinja::Template::parse(source, place);
  if (!parsed.ok()) return parsed.error();
  Named named{std::move(name), std::move(source), std::move(*parsed)};
  const auto there = std::find_if(templates_.begin(), templates_.end(),
                                  [&](const Named& t) { return t.name == named.name; });
  if (there != templates_.end())
    *there = std::move(named);
  else
    templates_.insert(named.name == kDefault ? templates_.begin() : templates_.end(), std::move(named));
  return {};
}

// First the templates, then the special tokens: those of tokenizer_config.json, or without that file the
// tokenizer's own begin and end tokens.
Result<ChatTemplate> ChatTemplate::load(io::FileSystem& fs, const std::string& tokenizer_path,
                                        const tokenizer::Tokenizer& tokenizer,
                                        const std::optional<std::string>& given) {
  ChatTemplate out;
  ASSIGN_OR_RETURN(const io::FileInfo info, fs.stat(tokenizer_path));
  const std::string directory = info.is_directory ? tokenizer_path : io::parent_path(tokenizer_path);

  const std::string config_path = io::join_path(directory, "tokenizer_config.json");
  nlohmann::json config = nlohmann::json::object();
  ASSIGN_OR_RETURN(const bool has_config, fs.exists(config_path));
  if (has_config) {
    ASSIGN_OR_RETURN(const std::string text, fs.read_file(config_path, kMaxConfig));
    config = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!config.is_object()) return corrupt(fmt::format("{}: not a JSON object", config_path));
  }

  if (given && given->find('{') != std::string::npos) {
    RETURN_IF_ERROR(out.add(kDefault, *given, "chat_template"));
  } else if (given) {
    auto text = fs.read_file(*given, kMaxTemplate);
    if (!text.ok())
      return text.error().with_context("chat_template holds no { and so is read as the path of a template");
    RETURN_IF_ERROR(out.add(kDefault, std::move(*text), *given));
  } else {
    if (const auto found = config.find("chat_template"); found != config.end() && found->is_string()) {
      RETURN_IF_ERROR(out.add(kDefault, found->get<std::string>(), config_path + ": chat_template"));
    } else if (found != config.end() && found->is_array()) {
      for (const nlohmann::json& entry : *found) {
        if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
            !entry.contains("template") || !entry["template"].is_string())
          return corrupt(fmt::format(
              "{}: chat_template is a list whose entries lack \"name\" or \"template\"", config_path));
        const auto name = entry["name"].get<std::string>();
        RETURN_IF_ERROR(out.add(name, entry["template"].get<std::string>(),
                                fmt::format("{}: chat_template \"{}\"", config_path, name)));
      }
    }
    // Template files beside the tokenizer have priority over tokenizer_config.json.
    std::vector<std::pair<std::string, std::string>> files;
    const std::string jinja_path = io::join_path(directory, kTemplateFile);
    ASSIGN_OR_RETURN(const bool has_jinja, fs.exists(jinja_path));
    if (has_jinja) files.emplace_back(kDefault, jinja_path);
    const std::string tool_path = tool_template_path(directory);
    ASSIGN_OR_RETURN(const bool has_tool, fs.exists(tool_path));
    if (has_tool) files.emplace_back(kToolUse, tool_path);
    if (!files.empty()) out.templates_.clear();
    for (const auto& [name, path] : files) {
      ASSIGN_OR_RETURN(std::string text, fs.read_file(path, kMaxTemplate));
      RETURN_IF_ERROR(out.add(name, std::move(text), path));
    }
    if (out.templates_.empty() || out.templates_.front().name != kDefault)
      return not_found(
          fmt::format("{}: no {}chat template: neither chat_template.jinja nor \"chat_template\" in "
                      "tokenizer_config.json; write one there or in the option chat_template",
                      directory, out.templates_.empty() ? "" : "default "));
  }

  for (const char* name : kSpecialTokens)
    if (config.contains(name))
      if (std::string token = token_text(config[name]); !token.empty())
        out.special_tokens_.emplace_back(name, std::move(token));
  if (!has_config) {  // default: as in the tokenizer itself
    if (const auto id = tokenizer.bos_id())
      out.special_tokens_.emplace_back("bos_token", *tokenizer.id_to_token(*id));
    if (const auto id = tokenizer.eos_id())
      out.special_tokens_.emplace_back("eos_token", *tokenizer.id_to_token(*id));
  }
  if (config.contains("extra_special_tokens") && config["extra_special_tokens"].is_object())
    for (const auto& [name, value] : config["extra_special_tokens"].items())
      if (std::string token = token_text(value); !token.empty())
        out.special_tokens_.emplace_back(name, std::move(token));
  return out;
}

Status ChatTemplate::save(io::FileSystem& fs, const std::string& directory) const {
  for (const Named& t : templates_) {
    if (t.name == kDefault) {
      RETURN_IF_ERROR(io::write_file_atomically(fs, io::join_path(directory, kTemplateFile), t.source));
    } else if (t.name == kToolUse) {
      const std::string path = tool_template_path(directory);
      RETURN_IF_ERROR(fs.make_dirs(io::parent_path(path)));
      RETURN_IF_ERROR(io::write_file_atomically(fs, path, t.source));
    }
  }
  return {};
}

bool ChatTemplate::mentions(std::string_view name) const {
  const auto in_word = [](std::string_view text, size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  return std::any_of(templates_.begin(), templates_.end(), [&](const Named& t) {
    const std::string_view text = t.source;
    for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1))
      if ((at == 0 || !in_word(text, at - 1)) && !in_word(text, at + name.size())) return true;
    return false;
  });
}

bool ChatTemplate::gives(std::string_view name) const {
  const auto is_name = [&](const char* one) { return name == one; };
  constexpr const char* kOfConversation[] = {"messages", "tools", "documents", "add_generation_prompt"};
  return std::any_of(std::begin(kOfConversation), std::end(kOfConversation), is_name) ||
         std::any_of(std::begin(kSpecialTokens), std::end(kSpecialTokens), is_name) ||
         std::any_of(special_tokens_.begin(), special_tokens_.end(),
                     [&](const auto& one) { return one.first == name; }) ||
         jinja::is_function_name(name);
}

const jinja::Template& ChatTemplate::choose(const Conversation& conversation) const {
  if (!conversation.tools.is_none())
    for (const Named& t : templates_)
      if (t.name == kToolUse) return t.parsed;
  return templates_.front().parsed;
}

Result<RenderedChat> ChatTemplate::render(const Conversation& given, bool add_generation_prompt,
                                          const jinja::RenderOptions& options) const {
  Conversation conversation = given;
  ASSIGN_OR_RETURN(conversation.tools, list_of_objects(given.tools, "tools"));
  ASSIGN_OR_RETURN(conversation.documents, list_of_objects(given.documents, "documents"));
  Mapping context;
  for (const auto& [name, token] : special_tokens_) context.set(name, Value(token));
  ASSIGN_OR_RETURN(std::vector<Value> messages, prepared_messages(conversation));
  context.set("messages", Value::list(std::move(messages)));
  context.set("tools", conversation.tools);
  context.set("documents", conversation.documents);
  context.set("add_generation_prompt", Value(add_generation_prompt));
  if (!conversation.more.is_none()) {
    if (!conversation.more.is_mapping())
      return invalid_argument(
          fmt::format("chat_template_kwargs is a {}, not an object", conversation.more.type_name()));
    for (const auto& [key, value] : conversation.more.as_mapping().items()) context.set(key, value);
  }
  ASSIGN_OR_RETURN(jinja::Rendered rendered, choose(conversation).render(context, options));
  return RenderedChat{std::move(rendered.text), std::move(rendered.generations)};
}

Result<RenderedChat> ChatTemplate::render_with_spans(const Conversation& conversation) const {
  return choose(conversation).has_generation() ? render(conversation) : spans_by_prefixes(conversation);
}

// Let A be the text of messages 1..i-1 with the generation prompt, and B the text of messages 1..i. If A is a
// prefix of B, the rest of B is what assistant message i wrote. This is exact when every such text is a
// prefix of the next one.
Result<RenderedChat> ChatTemplate::spans_by_prefixes(const Conversation& conversation) const {
  ASSIGN_OR_RETURN(RenderedChat whole, render(conversation));
  const std::vector<Value>& messages = conversation.messages.as_sequence().items;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!is_assistant(messages[i])) continue;
    const auto ends_at = [&](size_t count, bool prompt) -> Result<size_t> {
      Conversation part = conversation;
      part.messages = Value::list({messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(count)});
      ASSIGN_OR_RETURN(const RenderedChat text, render(part, prompt));
      if (whole.text.starts_with(text.text)) return text.text.size();
      const size_t same = static_cast<size_t>(
          std::mismatch(text.text.begin(), text.text.end(), whole.text.begin(), whole.text.end()).first -
          text.text.begin());
      return unsupported(
          fmt::format("the chat template has no {{% generation %}} blocks, and the assistant's text in "
                      "message {} cannot be "
                      "found without them: the text of the first {} messages{} is not the beginning of the "
                      "whole text (they differ at byte {}); put {{% generation %}} ... {{% endgeneration %}} "
                      "around the assistant's text, or set mask_user_turns: false",
                      i + 1, count, prompt ? " and the generation prompt" : "", same));
    };
    size_t begin = 0;
    if (i > 0) {
      ASSIGN_OR_RETURN(begin, ends_at(i, true));
    }
    ASSIGN_OR_RETURN(const size_t end, ends_at(i + 1, false));
    if (begin > end)
      return unsupported(
          fmt::format("the chat template has no {{% generation %}} blocks, and its generation prompt is "
                      "longer than the text of message {}; put {{% generation %}} ... "
                      "{{% endgeneration %}} around the assistant's text",
                      i + 1));
    whole.assistant.emplace_back(begin, end);
  }
  return whole;
}

std::string ChatTemplate::identity() const {
  nlohmann::json out;
  for (const Named& t : templates_) out["templates"][t.name] = t.source;
  out["special_tokens"] = nlohmann::json::object();
  for (const auto& [name, token] : special_tokens_) out["special_tokens"][name] = token;
  return out.dump();
}

}  // namespace ostro::chat
