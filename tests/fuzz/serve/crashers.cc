#include "crashers.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace ostro::fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kFarTooDeep = 60'000;  // for a stack, if each level took a frame
constexpr int kDeep = 400;           // what the reader of JSON lets through

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

std::string in_parentheses(int depth, const std::string& text) {
  return std::string(static_cast<size_t>(depth), '(') + text + std::string(static_cast<size_t>(depth), ')');
}

Json with_pattern(const std::string& pattern) {
  return {{"type", "object"}, {"properties", {{"m", {{"type", "string"}, {"pattern", pattern}}}}}};
}

Json nested_arrays(int depth) {
  Json out = {{"type", "string"}};
  for (int i = 0; i < depth; ++i) out = {{"type", "array"}, {"items", std::move(out)}};
  return out;
}

// Every definition refers twice to the one before it: a reader that writes references out has 2^40 of them.
Json doubling() {
  Json defs = {{"d0", {{"type", "string"}}}};
  for (int i = 1; i <= 40; ++i) {
    const Json before = {{"$ref", "#/$defs/d" + std::to_string(i - 1)}};
    defs["d" + std::to_string(i)] = {{"allOf", Json::array({before, before})}};
  }
  return {{"$defs", std::move(defs)}, {"$ref", "#/$defs/d40"}};
}

Json cyclic() { return {{"$defs", {{"A", {{"$ref", "#/$defs/A"}}}}}, {"$ref", "#/$defs/A"}}; }

Json tree() {
  const Json node = {{"type", "object"},
                     {"properties", {{"left", {{"$ref", "#"}}}, {"right", {{"$ref", "#"}}}}},
                     {"required", Json::array({"left", "right"})}};
  return node;
}

// Schemas and where they stand.
std::vector<std::pair<std::string, Json>> schemas() {
  return {
      {"a bounded repeat of 129 (xgrammar 863)", with_pattern("^[^\\n\\r]{1,129}$")},
      {"a huge repeat", with_pattern("^((a{1,99999}){1,99999}){1,2147483647}$")},
      {"a pattern that is none", with_pattern("^hello there indeed\\!$(")},
      {"nested groups of a pattern (llama.cpp 19008)", with_pattern(in_parentheses(kFarTooDeep, "a"))},
      {"alternatives that backtrack", with_pattern("^(a|a)*(a|aa)+$")},
      {"a reference to itself (LocalAI 11020)", cyclic()},
      {"a tree that never ends (SGLang 7639)", tree()},
      {"references that double", doubling()},
      {"references that lead nowhere", {{"$ref", "#/$defs/none"}}},
      {"a reference to a file", {{"$ref", "file:///etc/passwd"}}},
      {"a nested schema (llama.cpp 25283)", nested_arrays(kDeep / 2)},
      {"a list of 2^31 - 1 items",
       {{"type", "array"}, {"minItems", 2147483647}, {"items", {{"type", "null"}}}}},
      {"a type that there is not (SGLang 4574)", {{"type", "nothing"}, {"format", "uuid"}}},
      {"keys that no name has", {{"type", "object"}, {"properties", {{"", {}}, {"\u0000", 1}}}}},
  };
}

Json hello() { return Json::array({{{"role", "user"}, {"content", "hi"}}}); }

Json tool_with(const Json& schema, bool strict) {
  Json function = {{"name", "f"}, {"parameters", schema}};
  if (strict) function["strict"] = true;
  return Json::array({{{"type", "function"}, {"function", std::move(function)}}});
}

}  // namespace

std::vector<Crasher> crashers() {
  std::vector<Crasher> out;
  const auto add = [&](const std::string& name, size_t reader, const Json& body, bool is_refused = true) {
    out.push_back({name, reader, body.dump(), is_refused});
  };
  const auto grammar = [](const std::string& rules) {
    return Json{{"prompt", "hi"}, {"max_tokens", 1}, {"grammar", rules}};
  };
  add("nested groups of a grammar (llama.cpp 26600)", 0,
      grammar("root ::= " + in_parentheses(kFarTooDeep, "\"a\"")));
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 5000; ++i)
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string((i + 1) % 5000) + "\n";
  add("a chain of rules that ends in itself (llama.cpp 26602)", 0, grammar(chain));
  add("a grammar that is none (llama.cpp 4492)", 0, grammar("rout::=\\\"route\\\""));
  add("a huge repeat of a grammar", 0, grammar("root ::= ((\"a\"{1,99999}){1,99999}){0,2147483647}"));
  for (const char* field : {"guided_regex", "regex", "ebnf", "structural_tag"})
    add(std::string("a pattern that is none, as ") + field + " (vLLM 17313)", 0,
        {{"prompt", "hi"}, {field, repeated("[a-", 1000)}});
  for (const auto& [name, schema] : schemas()) {
    for (const char* field : {"guided_json", "json_schema"})
      add(name + ", as " + field, 0, {{"prompt", "hi"}, {field, schema}});
    const Json named = {{"name", "s"}, {"strict", true}, {"schema", schema}};
    add(name + ", as response_format", 1,
        {{"messages", hello()}, {"response_format", {{"type", "json_schema"}, {"json_schema", named}}}});
    Json format = named;
    format["type"] = "json_schema";
    add(name + ", as text.format", 2, {{"input", "hi"}, {"text", {{"format", format}}}});
    add(name + ", as a strict function", 1, {{"messages", hello()}, {"tools", tool_with(schema, true)}});
    add(name + ", as a function that is forced", 1,
        {{"messages", hello()},
         {"tools", tool_with(schema, false)},
         {"tool_choice", {{"type", "function"}, {"function", {{"name", "f"}}}}}});
    // What is only shown to the model is not read as a schema.
    if (schema.dump().size() < 4000)
      add(name + ", as a function", 1,
          {{"messages", hello()}, {"tools", tool_with(schema, false)}, {"max_tokens", 2}}, false);
  }
  for (const auto& [variable, value] :
       {std::pair<std::string, Json>("chat_template", "{% for i in range(999999999) %}{% endfor %}"),
        std::pair<std::string, Json>("tokenize", true),
        std::pair<std::string, Json>("messages", Json::array())}) {
    Json variables = Json::object();
    variables[variable] = value;
    add("a variable of the template: " + variable, 1,
        {{"messages", hello()}, {"chat_template_kwargs", variables}});
  }
  // Deeper than the reader of JSON goes; a writer of JSON would need a stack of that depth.
  const std::string head =
      R"({"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function",)"
      R"( "function": {"name": "f", "parameters": )";
  out.push_back(
      {"a schema that is nested far too deep", 1,
       head + repeated(R"({"items": )", kFarTooDeep) + "{}" + std::string(kFarTooDeep + 3, '}') + "]}",
       true});
  out.push_back(
      {"lists that are nested far too deep", 1,
       head + R"({"enum": )" + std::string(kFarTooDeep, '[') + std::string(kFarTooDeep, ']') + "}}}]}",
       true});
  return out;
}

}  // namespace ostro::fuzz
