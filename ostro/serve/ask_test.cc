// Requests are read strictly: each mistake is one error that names the field.
#include "ostro/serve/ask.h"
#include "ostro/serve/token_paths.h"

#include <random>

#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/serve/model_for_test.h"

namespace ostro::serve {
namespace {

// The message of a completion that is refused.
std::string refusal(const ServedModel& model, const std::string& body) {
  const ParsedAsk parsed = parse_completion(model, body);
  const auto* error = std::get_if<ApiError>(&parsed);
  if (error == nullptr) return "taken";
  CHECK(error_json(*error).starts_with(R"({"error":{"message":")"));
  return error->message;
}

TEST_CASE("a completion with every field") {
  const ServedModel model = test_model();
  const ParsedAsk parsed = parse_completion(
      model,
      R"({"model": "test", "prompt": ["the cat", [1, 2]], "max_tokens": 7, "temperature": 0.5, "top_p": 0.9,
          "top_k": 40, "min_p": 0.1, "presence_penalty": 1, "frequency_penalty": -1, "logit_bias": {"7": -1.5},
          "n": 2, "stop": ["a", "b"], "seed": 18446744073709551615, "logprobs": 3, "echo": true,
          "receipt": true, "return_token_ids": true, "stream": false, "nonce": null})");
  REQUIRE(std::holds_alternative<Ask>(parsed));
  const Ask& ask = std::get<Ask>(parsed);
  CHECK(ask.prompts.size() == 2);
  CHECK(ask.prompts[1] == std::vector<int32_t>{1, 2});
  CHECK(ask.prompt_texts == std::vector<std::string>{"the cat", ""});
  CHECK(ask.seed == UINT64_MAX);
  CHECK(ask.options.choice.bias == std::vector<std::pair<int32_t, double>>{{7, -1.5}});
  CHECK(ask.options.max_tokens == 7);
  CHECK(ask.rating.likely == 3);
  CHECK(ask.rating.prompt);
  CHECK(ask.count == 2);
}

// The members of an object with one more than may be.
std::string many_biases() {
  std::string out = R"("0": 1)";
  for (int i = 1; i <= 1024; ++i) out += ", \"" + std::to_string(i) + "\": 1";
  return out;
}

TEST_CASE("what is wrong is named") {
  const ServedModel model = test_model();
  const std::string p = R"({"prompt": "a", )";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "the body: not valid JSON"},
      {"[]", "the body is a list of 0; it has to be a JSON object"},
      {"{\"prompt\": \"a\xff\"}", "the body is not UTF-8"},
      {R"({"prompt": "\ud83d"})", "is half of a surrogate pair"},
      {R"({"prompt": "a", "temperature": NaN})", "NaN at byte"},
      {R"({"prompt": "a", "prompt": "b"})", "\"prompt\" twice"},
      {std::string(2000, '[') + std::string(2000, ']'), "nested too deeply"},
      {p + R"("temprature": 1})",
       "\"temprature\" is no field of this request; the nearest is \"temperature\""},
      {p + R"("temperature": "hot"})", "\"temperature\" is \"hot\"; use a number from 0 to 100"},
      {p + R"("temperature": -1})", "\"temperature\" is -1; use a number from 0"},
      {p + R"("temperature": 1e400})", "not valid JSON"},
      {p + R"("top_p": 0})", "leaves no token"},
      {p + R"("top_k": 1.5})", "\"top_k\" is 1.5; use an integer"},
      {p + R"("max_tokens": 99999999999999999999})", "\"max_tokens\" is 1e+20; use an integer"},
      {p + R"("max_tokens": -1})", "\"max_tokens\" is -1"},
      {p + R"("seed": -1})", "\"seed\" is -1; use an integer from 0 to 18446744073709551615"},
      {p + R"("stop": ""})", "every text would end at once"},
      {p + R"("stop": ")" + std::string(10'000, 's') + R"("})", "a string of 10000 bytes; at most 1024"},
      {p + R"("stop": [1]})", "\"stop\" holds 1"},
      {p + R"("n": 1000})", "\"n\" is 1000; use an integer from 1 to 16"},
      {p + R"("model": "gpt-4"})", "the model \"gpt-4\" is not served here; this server has \"test\""},
      {p + R"("stream_options": {"include_usage": true}})", "goes with \"stream\": true"},
      {p + R"("stream": true, "stream_options": {"use": 1}})", "\"stream_options.use\" is no field"},
      {p + R"("logit_bias": {"9999": 1}})", "token ids of this model are 0 to"},
      {p + R"("logit_bias": {"1": 101}})", "has 101 for id 1"},
      {p + R"("logit_bias": {)" + many_biases() + "}}", "more than 1024 members"},
      {p + R"("seed": 1, "nonce": "x"})", "decides the seed"},
      {p + R"("logprobs": 21})", "\"logprobs\" is 21; use an integer from 0 to 20"},
      {"{}", "\"prompt\" is missing"},
      {R"({"prompt": ""})", "\"prompt\" is empty"},
      {R"({"prompt": []})", "\"prompt\" is an empty list"},
      {R"({"prompt": [[]]})", "holds an empty list"},
      {R"({"prompt": [1, 99999]})", "holds 99999 at place 1; token ids of this model are 0 to"},
      {R"({"prompt": [-1]})", "holds -1 at place 0"},
      {R"({"prompt": [1, "a"]})", "holds \"a\" at place 1"},
      {R"({"prompt": {"a": 1}})", "holds an object"},
      {R"({"prompt": [)" +
           [] {
             std::string ids = "1";
             for (int i = 1; i < 64; ++i) ids += ",1";
             return ids;
           }() +
           "]}",
       "\"prompt\" has 64 tokens; the model's context is 64, the answer's included"},
  };
  for (const auto& [body, words] : cases) {
    const std::string message = refusal(model, body);
    CHECK_MESSAGE(message.find(words) != std::string::npos, body.substr(0, 100) << ": " << message);
  }
  CHECK(refusal(model, p + R"("max_tokens": 3})") == "taken");
}

TEST_CASE("bodies with drawn changes are read or refused") {
  const ServedModel model = test_model();
  const std::string body =
      R"({"model": "test", "prompt": ["the caté", [1, 2], "\u00e9\ud83d\ude00"], "max_tokens": 7, "top_p": 0.9,
          "logit_bias": {"7": -1.5}, "stop": ["a", "b"], "seed": 3, "stream": true,
          "stream_options": {"include_usage": true}, "logprobs": 1})";
  std::mt19937 random(11);
  int taken = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string changed = body;
    for (unsigned i = 0; i < 1 + random() % 3; ++i) {
      const size_t at = random() % changed.size();
      switch (random() % 4) {
        case 0: changed[at] = static_cast<char>(random() % 256); break;
        case 1: changed.erase(at, 1 + random() % 8); break;
        case 2: changed.insert(at, std::string(1 + random() % 50, "[{\"\\9-e,:"[random() % 10])); break;
        default: changed.insert(at, changed.substr(random() % changed.size(), random() % 20));
      }
      if (changed.empty()) changed = " ";
    }
    for (const auto& parsed : {parse_completion(model, changed), parse_chat(model, changed)}) {
      const auto* error = std::get_if<ApiError>(&parsed);
      ++(error == nullptr ? taken : refused);
      if (error != nullptr) CHECK(!error->message.empty());
      if (error != nullptr) CHECK(!error_json(*error).empty());
    }
  }
  CHECK(taken > 20);
  CHECK(refused > 1000);
}

TEST_CASE("a chat needs a template and messages") {
  const ServedModel model = test_model();
  const auto message = [&](const std::string& body) {
    const ParsedAsk parsed = parse_chat(model, body);
    return std::holds_alternative<ApiError>(parsed) ? std::get<ApiError>(parsed).message : "taken";
  };
  CHECK(message("{}").find("\"messages\" is missing") == 0);
  CHECK(message(R"({"messages": []})").find("at least one message") != std::string::npos);
  CHECK(message(R"({"messages": [{"content": "a"}]})").find("no object with a \"role\"") !=
        std::string::npos);
  CHECK(
      message(R"({"messages": [{"role": "user", "content": "a"}]})").find("the model has no chat template") !=
      std::string::npos);
}

TEST_CASE("a chat's template gets further variables, and the role developer as system") {
  io::MemoryFileSystem fs;
  check_ok(fs.make_dirs("t"));
  check_ok(io::write_file_atomically(
      fs, "t/chat_template.jinja",
      "{% for m in messages %}<{{ m.role }}> {{ m.content }} {% endfor %}{% if enable_thinking is defined "
      "and enable_thinking is false %}<quick>{{ extra.a[0] }}{% endif %}{% if documents or bos_token is "
      "defined "
      "%}{{ raise_exception(bos_token ~ image_token) }}{% endif %}"));
  check_ok(io::write_file_atomically(fs, "t/tokenizer_config.json",
                                     R"({"extra_special_tokens": {"image_token": "<image>"}})"));
  ServedModel model = test_model();
  model.chat = eval::ChatPrompts::load(fs, "t", *model.tokenizer).value();
  const auto asked = [&](const std::string& fields, const std::string& role = "user") {
    return "{\"messages\": [{\"role\": \"" + role + "\", \"content\": \"a\"}], " + fields + "\"seed\": 1}";
  };
  const auto text_of = [&](const ParsedAsk& parsed) {
    if (const auto* error = std::get_if<ApiError>(&parsed)) return "error: " + error->message;
    const std::vector<int32_t>& ids = std::get<Ask>(parsed).prompts.at(0);
    return model.tokenizer->decode(std::vector<uint32_t>(ids.begin(), ids.end())).value();
  };
  const auto prompt = [&](const std::string& body) { return text_of(parse_chat(model, body)); };
  CHECK(prompt(asked("")) == "<user> a ");
  CHECK(prompt(asked("", "developer")) == "<system> a ");
  CHECK(prompt(asked("", "developers")) == "<developers> a ");
  CHECK(prompt(asked(R"("chat_template_kwargs": {"enable_thinking": false, "extra": {"a": [7]}}, )")) ==
        "<user> a <quick>7");
  for (const std::string same : {R"({"enable_thinking": true})", "{}", "null"})
    CHECK(prompt(asked("\"chat_template_kwargs\": " + same + ", ")) == "<user> a ");
  std::string many;
  for (int i = 0; i < 17; ++i) many += (i > 0 ? ", \"v" : "\"v") + std::to_string(i) + "\": 1";
  const std::pair<std::string, std::string> cases[] = {
      {"[1]", "is a list of 1; it is an object of variables"},
      {R"({"enable_thinkin": false})",
       "\"chat_template_kwargs\" has \"enable_thinkin\", which the model's chat template does not read"},
      {R"({"thinking": false})", "does not read"},
      {R"({"messages": []})", "has \"messages\", which the request itself says"},
      {R"({"tools": []})", "the request itself says"},
      {R"({"add_generation_prompt": false})", "the request itself says"},
      // What a receipt's chat_template names, or the program, is not replaced; the template reads all of
      // these but the last three.
      {R"({"bos_token": "x"})", "has \"bos_token\", which is no further variable"},
      {R"({"image_token": "x"})", "has \"image_token\", which is no further variable"},
      {R"({"documents": [{"text": "x"}]})", "has \"documents\", which is no further variable"},
      {R"({"raise_exception": "x"})", "has \"raise_exception\", which is no further variable"},
      {R"({"eos_token": "x"})", "which is no further variable"},
      {R"({"namespace": 1})", "which is no further variable"},
      {R"({"strftime_now": 1})", "which is no further variable"},
      {R"({"a b": 1})", "has \"a b\"; a variable's name has"},
      {R"({"": 1})", "a variable's name has"},
      {R"({"1a": 1})", "a variable's name has"},
      {"{" + many + "}", "has 17 members; at most 16"},
      {R"({"extra": ")" + std::string(20'000, 'x') + R"("})", "bytes; at most 16384"},
  };
  for (const auto& [given, words] : cases) {
    const std::string message = prompt(asked("\"chat_template_kwargs\": " + given + ", "));
    CHECK_MESSAGE(message.find(words) != std::string::npos, given.substr(0, 60) << ": " << message);
  }
  // What is true of chats is true of responses.
  const auto response = [&](const std::string& given) {
    return text_of(parse_response(model, "{\"input\": \"a\", \"chat_template_kwargs\": " + given + "}"));
  };
  CHECK(response(R"({"enable_thinking": false, "extra": {"a": [7]}})") == "<user> a <quick>7");
  CHECK(response(R"({"enable_thinking": true})") == "<user> a ");
  CHECK(response(R"({"thinking": false})").find("does not read") != std::string::npos);
}

TEST_CASE("what clients say of themselves, and what is so anyway, changes nothing; other values are errors") {
  const ServedModel model = test_model();
  const auto message = [&](const std::string& fields) {
    const ParsedAsk parsed = parse_completion(model, "{\"prompt\": \"the\", " + fields + "}");
    return std::holds_alternative<ApiError>(parsed) ? std::get<ApiError>(parsed).message : "taken";
  };
  CHECK(message(R"("user": "u1", "best_of": 1, "suffix": "")") == "taken");
  CHECK(message(R"("user": 7)").find("\"user\"") == 0);
  CHECK(message("\"user\": \"" + std::string(600, 'u') + "\"").find("600 bytes; at most 512") !=
        std::string::npos);
  CHECK(message(R"("n": 2, "best_of": 2)") == "taken");
  CHECK(message(R"("n": 2, "best_of": 3)").find("has to be \"n\"") != std::string::npos);
  CHECK(message(R"("suffix": "b")").find("fills no gaps") != std::string::npos);
  CHECK(message(R"("metadata": {})").find("metadata") != std::string::npos);  // no field of completions

  // Fields are read before the chat template is missed, which this model has not got.
  const auto chat = [&](const std::string& fields) {
    const ParsedAsk parsed =
        parse_chat(model, "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], " + fields + "}");
    return std::get<ApiError>(parsed).message;
  };
  for (const char* taken : {R"("response_format": {"type": "text"})", R"("store": false)",
                            R"("parallel_tool_calls": true)", R"("service_tier": "auto")",
                            R"("metadata": {"a": "b"}, "safety_identifier": "x", "prompt_cache_key": "y")"})
    CHECK_MESSAGE(chat(taken).find("the model has no chat template") != std::string::npos, chat(taken));
  CHECK(chat(R"("response_format": {"type": "json_object"})").find("does not force answers into a format") !=
        std::string::npos);
  CHECK(chat(R"("store": true)").find("keeps no answers") != std::string::npos);
  CHECK(chat(R"("parallel_tool_calls": false)").find("several calls") != std::string::npos);
  CHECK(chat(R"("service_tier": "flex")").find("one tier") != std::string::npos);
  CHECK(chat(R"("metadata": {"a": 1})").find("object of texts") != std::string::npos);
}

TEST_CASE("texts to ids and back") {
  const ServedModel model = test_model();
  const http::Response ids = tokenize(model, R"({"prompt": "the cat"})");
  CHECK(ids.status == 200);
  const auto expected = model.tokenizer->encode("the cat");
  CHECK(ids.body.find("\"count\":" + std::to_string(expected.size())) != std::string::npos);
  std::string list;
  for (const uint32_t id : expected) list += (list.empty() ? "" : ",") + std::to_string(id);
  CHECK(detokenize(model, "{\"tokens\": [" + list + "]}").body == "{\"prompt\":\"the cat\"}\n");
  CHECK(tokenize(model, "{}").status == 400);
  const Body once(R"({"prompt": "the cat", "model": "other"})"), wrong("[");
  CHECK(once.model() == "other");
  CHECK(tokenize(model, once).status == 404);
  CHECK(wrong.model().empty());
  CHECK(tokenize(model, wrong).body == tokenize(model, "[").body);
  CHECK(tokenize(model, wrong).status == 400);
  CHECK(detokenize(model, R"({"tokens": [99999]})").status == 400);
  CHECK(detokenize(model, R"({"tokens": 1})").status == 400);
}

}  // namespace
}  // namespace ostro::serve
