#include "ostro/serve/json/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "ostro/io/json/json_fields.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

// A content as one text: a string, or a list of parts with a text. False: `fields` has the error.
bool text_of(Fields& fields, const char* field, const Json& content, std::string& out) {
  if (content.is_string()) {
    out = content.get<std::string>();
    return true;
  }
  if (!content.is_array()) {
    fields.fail(field,
                fmt::format("holds a content that is {}; it is a text or a list of texts", shown(content)));
    return false;
  }
  for (const Json& part : content) {
    const std::string type = part.is_object() && part.contains("type") && part["type"].is_string()
                                 ? part["type"].get<std::string>()
                                 : "";
    const bool known = type == "text" || type == "input_text" || type == "output_text";
    if (!known || !part.contains("text") || !part["text"].is_string()) {
      fields.fail(field,
                  fmt::format("holds a part of a content of type \"{}\"; this model reads text alone", type));
      return false;
    }
    out += part["text"].get<std::string>();
  }
  return true;
}

// OpenAI's newer name of the role; templates know the older one.
Json role_of(const Json& role) { return role == "developer" ? Json("system") : role; }

bool is_name(const std::string& name) {
  constexpr size_t kMost = 64;
  return !name.empty() && name.size() <= kMost && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
}

// {"type": "function", "function": {"name", "arguments"}} for a template; null: `fields` has the error.
Json call_json(Fields& fields, const char* field, const Json& id, const Json& name, const Json& arguments) {
  Json object = arguments;
  if (arguments.is_string()) {
    const auto text = arguments.get<std::string>();
    if (auto parsed = parse_ordered(text, "arguments"); parsed.ok()) object = std::move(*parsed);
  }
  if (!name.is_string() || !object.is_object()) {
    fields.fail(field, "holds a call without a \"name\", or whose \"arguments\" are no JSON object");
    return {};
  }
  Json out = {{"type", "function"}, {"function", {{"name", name}, {"arguments", object}}}};
  if (id.is_string()) out["id"] = id;
  return out;
}

Json member(const Json& object, const char* name) {
  return object.is_object() && object.contains(name) ? object[name] : Json();
}

void read_tool(Fields& fields, const Json& tool, bool flat, Functions& out) {
  if (!tool.is_object() || member(tool, "type") != "function" ||
      (!flat && !member(tool, "function").is_object()))
    return fields.fail("tools",
                       flat ? "holds something else than {\"type\": \"function\", \"name\": ...}"
                            : "holds something else than {\"type\": \"function\", \"function\": {...}}");
  Json function = flat ? tool : tool["function"];
  std::string name, description, type;
  Fields inside(function, "tools");
  if (flat) inside.text("type", type);
  inside.text("name", name);
  inside.text("description", description);
  const Json* parameters = inside.find("parameters");
  bool strict = false;
  inside.flag("strict", strict);
  if (!is_name(name))
    inside.fail("name",
                fmt::format("is \"{}\"; a function's name has 1 to 64 letters, digits, '_', '-', '.'", name));
  if (parameters != nullptr && !parameters->is_object()) inside.fail("parameters", "has to be a JSON schema");
  if (strict)
    inside.fail("strict", "is true; this server does not force answers into a schema, so leave it out");
  if (std::find(out.names.begin(), out.names.end(), name) != out.names.end())
    inside.fail("name", fmt::format("\"{}\" stands there twice", name));
  if (auto error = inside.finish()) return fields.fail_as(*error);
  function.erase("type");
  function.erase("strict");
  out.names.push_back(name);
  out.list.push_back({{"type", "function"}, {"function", function}});
}

}  // namespace

Json read_messages(Fields& fields, const Json& messages) {
  if (!messages.is_array() || messages.empty()) {
    fields.fail("messages", "has to be a list of at least one message");
    return {};
  }
  Json out = messages;
  for (Json& message : out) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      fields.fail("messages", "holds a message that is no object with a \"role\"");
      return {};
    }
    message["role"] = role_of(message["role"]);
    if (message.contains("content") && message["content"].is_array()) {
      std::string text;
      if (!text_of(fields, "messages", message["content"], text)) return {};
      message["content"] = text;
    }
    if (!message.contains("tool_calls") || !message["tool_calls"].is_array()) continue;
    for (Json& call : message["tool_calls"]) {
      const Json function = member(call, "function");
      call = call_json(fields, "messages", member(call, "id"), member(function, "name"),
                       member(function, "arguments"));
      if (fields.failed()) return {};
    }
  }
  return out;
}

Functions read_tools(Fields& fields, bool flat) {
  constexpr size_t kMost = 128;
  Functions out;
  if (const Json* tools = fields.find("tools")) {
    if (!tools->is_array() || tools->size() > kMost)
      fields.fail("tools", fmt::format("has to be a list of at most {} functions", kMost));
    else
      for (const Json& tool : *tools) read_tool(fields, tool, flat, out);
  }
  if (const Json* choice = fields.find("tool_choice")) {
    if (*choice == "none")
      out = {};
    else if (*choice != "auto")
      fields.fail("tool_choice",
                  fmt::format("is {}; this server does not force a call, so use \"auto\" or \"none\"",
                              shown(*choice)));
  }
  return out;
}

Json read_variables(Fields& fields) {
  constexpr const char* kField = "chat_template_kwargs";
  constexpr size_t kMost = 16, kMostName = 64, kMostBytes = 16384;
  const Json* given = fields.find(kField);
  if (given == nullptr) return Json::object();
  const auto fail = [&](const std::string& what) {
    fields.fail(kField, what);
    return Json::object();
  };
  if (!given->is_object()) return fail(fmt::format("is {}; it is an object of variables", shown(*given)));
  if (given->size() > kMost)
    return fail(fmt::format("has {} members; at most {} are taken", given->size(), kMost));
  for (const auto& [name, value] : given->items()) {
    const bool is_word = !name.empty() && name.size() <= kMostName &&
                         std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
                         std::all_of(name.begin(), name.end(),
                                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    if (!is_word)
      return fail(fmt::format("has {}; a variable's name has 1 to {} letters, digits and '_'", shown(name),
                              kMostName));
    for (const char* own : {"messages", "tools", "add_generation_prompt"})
      if (name == own) return fail(fmt::format("has \"{}\", which the request itself says", name));
  }
  if (const size_t bytes = given->dump().size(); bytes > kMostBytes)
    return fail(fmt::format("has {} bytes; at most {} are taken", bytes, kMostBytes));
  return *given;
}

Json read_items(Fields& fields, const Json& input, const std::string& instructions) {
  Json out = Json::array();
  if (!instructions.empty()) out.push_back({{"role", "system"}, {"content", instructions}});
  if (input.is_string()) {
    out.push_back({{"role", "user"}, {"content", input}});
    return out;
  }
  if (!input.is_array() || input.empty()) {
    fields.fail("input", "has to be a text or a list of at least one item");
    return {};
  }
  for (const Json& item : input) {
    const Json type = member(item, "type"), role = member(item, "role");
    if ((type.is_null() || type == "message") && role.is_string()) {
      std::string text;
      if (!text_of(fields, "input", member(item, "content"), text)) return {};
      out.push_back({{"role", role_of(role)}, {"content", text}});
    } else if (type == "function_call") {
      Json call = call_json(fields, "input", member(item, "call_id"), member(item, "name"),
                            member(item, "arguments"));
      if (fields.failed()) return {};
      // Calls of one answer are one message.
      if (out.empty() || out.back()["role"] != "assistant")
        out.push_back({{"role", "assistant"}, {"content", ""}});
      out.back()["tool_calls"].push_back(std::move(call));
    } else if (type == "function_call_output") {
      std::string text;
      if (!text_of(fields, "input", member(item, "output"), text)) return {};
      out.push_back({{"role", "tool"}, {"tool_call_id", member(item, "call_id")}, {"content", text}});
    } else {
      fields.fail("input",
                  fmt::format("holds an item of type {}; this server reads message, function_call and "
                              "function_call_output",
                              shown(type)));
      return {};
    }
  }
  return out;
}

}  // namespace ostro::serve
