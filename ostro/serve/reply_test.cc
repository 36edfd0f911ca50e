// The forms of answers: chats with calls of functions, responses; whole and in pieces they say the same.
#include "ostro/serve/reply.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "ostro/io/files/memory_file_system.h"
#include "ostro/serve/model_for_test.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

class Written final : public http::Exchange {
 public:
  Written() : Exchange({}) {}
  void answer(http::Response response) override { status = response.status, body = response.body; }
  void begin(http::Response head) override { status = head.status; }
  void send(std::string_view bytes) override { body += bytes; }
  void end() override { ended = true; }
  bool is_gone() const override { return false; }

  std::vector<Json> events() const {
    std::vector<Json> out;
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("data: {")) out.push_back(Json::parse(line.substr(6)));
    return out;
  }
  int status = 0;
  std::string body;
  bool ended = false;
};

ServedModel chat_model() {
  ServedModel out = test_model(4096);
  io::MemoryFileSystem fs;
  auto file = fs.create("chat_template.jinja").value();
  REQUIRE(
      file->append(
              "{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}{% for m in messages %}"
              "<{{ m.role }}> {{ m.content or '' }}{% for c in m.tool_calls or [] %} ={{ c.function.name }}:"
              "{{ c.function.arguments.city }}{% endfor %}{% endfor %}<assistant>")
          .ok());
  REQUIRE(fs.create("tokenizer.json").ok());
  out.chat = eval::ChatPrompts::load(fs, "tokenizer.json", *out.tokenizer).value();
  out.tool_format = ToolFormat{"<call>", "</call>"};
  return out;
}

// What a request gets whose answer is this text, token by token; `cut`: it ends by its length.
std::shared_ptr<Written> written(const ServedModel& model, const Ask& ask, const std::string& text,
                                 bool cut = false) {
  auto out = std::make_shared<Written>();
  std::vector<uint32_t> ids = model.tokenizer->encode(text);
  if (!cut) ids.push_back(static_cast<uint32_t>(model.stops[0]));
  AnswerOptions options = ask.options;
  options.max_tokens = static_cast<int64_t>(ids.size());
  Reply reply(model, ask, *out);
  reply.open(0, 0, 7);
  AnswerState state = AnswerState::create(model, ask.prompts[0], options).value();
  for (const uint32_t id : ids) {
    check_ok(state.add(static_cast<int32_t>(id)));
    reply.token(state, {static_cast<int32_t>(id), -0.5F});
  }
  reply.close(state, {});
  reply.finish();
  return out;
}

Ask asked(const ServedModel& model, bool response, const std::string& body) {
  auto parsed = response ? parse_response(model, body) : parse_chat(model, body);
  if (const auto* error = std::get_if<ApiError>(&parsed)) FAIL(error->message);
  return std::get<Ask>(parsed);
}

constexpr const char* kChatTools = R"("tools": [{"type": "function", "function": {"name": "weather",
    "description": "d", "parameters": {"type": "object"}}}])";
constexpr const char* kTools = R"("tools": [{"type": "function", "name": "weather", "parameters": {}}])";
constexpr const char* kCalls =
    "It rains? \n<call>{\"name\": \"weather\", \"arguments\": {\"city\": \"Köln\"}}</call>\n"
    "<call>[{\"name\": \"weather\", \"arguments\": {}}]</call> ";

const std::vector<std::string> kBroken = {"<call>{\"name\": \"weather\", \"arguments\": {</call>",
                                          "<call>{\"name\": \"other\", \"arguments\": {}}</call>",
                                          "<call>{\"name\": \"weather\"}</call>",
                                          "<call>{\"name\": \"weather\", \"arguments\": {}}</call> more",
                                          "<call>[]</call>",
                                          "a <call",
                                          "<call>",
                                          "no call </call>",
                                          "<call>{\"name\": \"weather\", \"arguments\": \"{}\"}</call>"};

TEST_CASE("a template gets the functions, and calls of the conversation as objects") {
  const ServedModel model = chat_model();
  const Ask ask = asked(model, false,
                        std::string(R"({"messages": [{"role": "user", "content": [{"type": "text",
      "text": "a"}]}, {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function",
      "function": {"name": "weather", "arguments": "{\"city\": \"Rome\"}"}}]}, {"role": "tool", "tool_call_id": "1",
      "content": "dry"}], )") +
                            kChatTools + "}");
  const auto text = [&](const Ask& of) {
    return model.tokenizer->decode(std::vector<uint32_t>(of.prompts[0].begin(), of.prompts[0].end())).value();
  };
  CHECK(text(ask) == "[weather]<user> a<assistant>  =weather:Rome<tool> dry<assistant>");
  const Ask same = asked(model, true,
                         std::string(R"({"instructions": "s", "input": [{"role": "user", "content": "a"},
      {"type": "function_call", "call_id": "1", "name": "weather", "arguments": "{\"city\": \"Rome\"}"},
      {"type": "function_call_output", "call_id": "1", "output": "dry"}], )") +
                             kTools + "}");
  CHECK(text(same) == "[weather]<system> s<user> a<assistant>  =weather:Rome<tool> dry<assistant>");
}

TEST_CASE("calls in a chat's answer come back as calls, whole and in pieces; broken ones as text") {
  const ServedModel model = chat_model();
  const std::string fields = std::string(R"({"messages": [{"role": "user", "content": "a"}], )") + kChatTools;
  const Ask whole = asked(model, false, fields + "}"),
            stream = asked(model, false, fields + ", \"stream\": true}");
  const auto pieces = [&](const std::string& text) {
    std::string content;
    Json calls = Json::array(), finish;
    for (const Json& event : written(model, stream, text)->events())
      for (const Json& choice : event["choices"]) {
        content += choice["delta"].value("content", "");
        for (const Json& call : choice["delta"].value("tool_calls", Json::array())) calls.push_back(call);
        finish = choice["finish_reason"];
      }
    return std::tuple(content, calls, finish);
  };
  const Json choice = Json::parse(written(model, whole, kCalls)->body)["choices"][0];
  CHECK(choice["finish_reason"] == "tool_calls");
  CHECK(choice["message"]["content"] == "It rains?");
  REQUIRE(choice["message"]["tool_calls"].size() == 2);
  CHECK(choice["message"]["tool_calls"][0]["function"] ==
        Json{{"name", "weather"}, {"arguments", "{\"city\":\"Köln\"}"}});
  const auto [content, calls, finish] = pieces(kCalls);
  CHECK(content == "It rains?");
  CHECK(finish == "tool_calls");
  REQUIRE(calls.size() == 2);
  CHECK(calls[1]["index"] == 1);
  CHECK(calls[0]["function"] == choice["message"]["tool_calls"][0]["function"]);
  for (const std::string& text : kBroken) {
    const Json broken = Json::parse(written(model, whole, text)->body)["choices"][0];
    CHECK(broken["message"]["content"] == text);
    CHECK(!broken["message"].contains("tool_calls"));
    CHECK(broken["finish_reason"] == "stop");
    CHECK(std::get<0>(pieces(text)) == text);
    CHECK(std::get<1>(pieces(text)).empty());
  }
  // A token that ends the answer stands for the last end.
  CHECK(Json::parse(written(model, whole, "<call>{\"name\": \"weather\", \"arguments\": {}}")
                        ->body)["choices"][0]["finish_reason"] == "tool_calls");
  const Ask none = asked(model, false, fields + ", \"tool_choice\": \"none\"}");
  CHECK(Json::parse(written(model, none, kCalls)->body)["choices"][0]["message"]["content"] == kCalls);
}

TEST_CASE("a format without marks takes the whole text as a call") {
  const ToolUse use{{"", "", "name", "parameters"}, {"f"}};
  CHECK(parse_calls(use, " {\"name\": \"f\", \"parameters\": {\"a\": 1}} \n")->calls[0].arguments ==
        "{\"a\":1}");
  CHECK(!parse_calls(use, "a {\"name\": \"f\", \"parameters\": {}}"));
  CHECK(certain_content(use.format, "text") == 0);
}

TEST_CASE("a response, whole and as events") {
  const ServedModel model = chat_model();
  const std::string fields = std::string(R"({"input": "a", )") + kTools;
  const Ask whole = asked(model, true, fields + "}"),
            stream = asked(model, true, fields + ", \"stream\": true}");
  std::vector<std::string> texts = kBroken;
  for (const char* text : {"hello naïve 東京", "", kCalls}) texts.emplace_back(text);
  for (const bool cut : {false, true})
    for (const std::string& text : texts) {
      if (cut && text.empty()) continue;
      const Json response = Json::parse(written(model, whole, text, cut)->body);
      CHECK(response["object"] == "response");
      CHECK(response["status"] == (cut ? "incomplete" : "completed"));
      CHECK(response["incomplete_details"].is_null() == !cut);
      CHECK(response["seed"] == 7);
      const auto exchange = written(model, stream, text, cut);
      CHECK(exchange->ended);
      const auto events = exchange->events();
      CHECK(events.front()["type"] == "response.created");
      CHECK(events.back()["type"] == (cut ? "response.incomplete" : "response.completed"));
      std::string content;
      for (size_t i = 0; i < events.size(); ++i) {
        CHECK(events[i]["sequence_number"] == i);
        if (events[i]["type"] == "response.output_text.delta")
          content += events[i]["delta"].get<std::string>();
      }
      const Json& last = events.back()["response"];
      CHECK(last["usage"] == response["usage"]);
      REQUIRE(last["output"].size() == response["output"].size());
      for (size_t i = 0; i < last["output"].size(); ++i) {
        Json a = last["output"][i], b = response["output"][i];
        for (Json* item : {&a, &b}) item->erase("id"), item->erase("call_id");
        CHECK(a == b);
      }
      const Json& first = response["output"][0];
      if (text == kCalls) {
        CHECK(response["output"].size() == 3);
        CHECK(response["output"][1]["type"] == "function_call");
        CHECK(response["output"][1]["arguments"] == "{\"city\":\"Köln\"}");
        CHECK(content == "It rains?");
      } else {
        CHECK(first["content"][0]["text"] == text);
        CHECK(content == text);
      }
      CHECK(response["tools"].size() == 1);
    }
}

TEST_CASE("a response that fails in its stream names the code of its error") {
  const ServedModel model = chat_model();
  const Ask ask = asked(model, true, R"({"input": "a", "stream": true})");
  for (const std::string code : {kRunLimit, ""}) {
    Written out;
    Reply reply(model, ask, out);
    reply.open(0, 0, 7);
    reply.fail({kUnavailable, "too late", "", code});
    CHECK(out.ended);
    CHECK(out.events().back()["type"] == "response.failed");
    CHECK(out.events().back()["response"]["error"]["code"] == (code.empty() ? "server_error" : code));
  }
}

TEST_CASE("what a response cannot have is refused") {
  const ServedModel model = chat_model();
  for (const auto& [more, says] : std::vector<std::pair<std::string, std::string>>{
           {R"("store": true)", "keeps no responses"},
           {R"("previous_response_id": "r")", "keeps none"},
           {R"("text": {"format": {"type": "json_schema"}})", "\"text\" is something else"},
           {R"("tool_choice": "required")", "does not force a call"},
           {R"("tools": [{"type": "web_search"}])", "something else than"},
           {R"("tools": [{"type": "function", "name": "a b"}])", "a function's name has"},
           {R"("tools": [{"type": "function", "name": "a", "strict": true}])", "\"tools.strict\" is true"},
           {R"("tools": [{"type": "function", "name": "a", "desciption": "b"}])",
            "the nearest is \"tools.description\""},
           {R"("include": ["reasoning"])", "has \"reasoning\""},
           {R"("top_logprobs": 2)", "goes with \"include\""},
           {R"("n": 2)", "\"n\" is no field"},
           {R"("max_output_tokens": 0)", "\"max_output_tokens\" is 0"}}) {
    const auto parsed = parse_response(model, R"({"input": "a", )" + more + "}");
    REQUIRE_MESSAGE(std::holds_alternative<ApiError>(parsed), more);
    CHECK_MESSAGE(std::get<ApiError>(parsed).message.find(says) != std::string::npos,
                  std::get<ApiError>(parsed).message);
  }
  for (const auto& [input, says] : std::vector<std::pair<std::string, std::string>>{
           {"[]", "at least one item"},
           {"5", "has to be a text or a list"},
           {R"([{"type": "reasoning"}])", "an item of type \"reasoning\""},
           {R"([{"role": "user", "content": [{"type": "input_image"}]}])", "reads text alone"},
           {R"([{"role": "user", "content": 1}])", "a content that is 1"},
           {R"([{"type": "function_call", "name": "f", "arguments": "[1]"}])", "no JSON object"}}) {
    const auto parsed = parse_response(model, "{\"input\": " + input + "}");
    REQUIRE_MESSAGE(std::holds_alternative<ApiError>(parsed), input);
    CHECK_MESSAGE(std::get<ApiError>(parsed).message.find(says) != std::string::npos,
                  std::get<ApiError>(parsed).message);
  }
}

TEST_CASE("a format of calls is read strictly") {
  io::MemoryFileSystem fs;
  const auto loaded = [&](const std::string& text) {
    REQUIRE(fs.create("tool_format.json").value()->append(text).ok());
    return load_tool_format(fs, "tokenizer.json");
  };
  REQUIRE(fs.create("tokenizer.json").ok());
  CHECK(!load_tool_format(fs, "tokenizer.json").value());
  CHECK(loaded(R"({"begin": "<a>", "end": "</a>", "arguments": "parameters"})").value()->arguments ==
        "parameters");
  for (const char* wrong : {"", "[]", R"({"begin": "a"})", R"({"begin": 1, "end": "a"})", R"({"start": "a"})",
                            R"({"name": ""})", R"({"name": "arguments"})"})
    CHECK_MESSAGE(!loaded(wrong).ok(), wrong);
}

}  // namespace
}  // namespace ostro::serve
