// Embeddings through the engine's thread: a function of checkpoint, input and pooling, whatever else runs.
#include <bit>
#include <cstring>
#include <latch>

#include "ostro/infer/row_mean.h"
#include "ostro/serve/drawn_requests_for_test.h"
#include "ostro/tokenizer/unicode/base64.h"

namespace ostro::serve {
namespace {

std::shared_ptr<KeptExchange> asked(Served& served, const std::string& body) {
  ParsedAsk parsed = parse_embedding(served.model, body);
  REQUIRE_MESSAGE(std::holds_alternative<Ask>(parsed), body);
  Ask& ask = std::get<Ask>(parsed);
  ask.metrics = served.metrics;
  const auto exchange = std::make_shared<KeptExchange>();
  CHECK_FALSE(served.engine.push({exchange, std::make_shared<const Ask>(std::move(ask)), nullptr}));
  return exchange;
}

Json answer(Served& served, const std::string& body) {
  const auto exchange = asked(served, body);
  exchange->wait();
  CHECK_MESSAGE(exchange->status == 200, exchange->body);
  return Json::parse(exchange->body);
}

// What the runner makes of the ids, one row a step.
std::vector<float> alone(const std::vector<int32_t>& ids, bool mean) {
  ServedModel model = test_model(400);
  const int64_t sequence = model.runner->open().value();
  infer::RowMean all;
  std::vector<float> row;
  for (const int32_t& id : ids) {
    row.clear();
    const infer::RowChunk chunk{sequence, {&id, 1}, 1, &row};
    CHECK(model.runner->step({&chunk, 1}).ok());
    all.add(row, row.size());
  }
  return mean ? all.mean() : row;
}

TEST_CASE("an embedding is the last row, or the mean of all, of its input alone") {
  Served served;
  const std::vector<int32_t> ids = {5, 6, 7, 9}, other = {5, 6, 8, 9};
  for (const bool mean : {false, true}) {
    const std::string more = mean ? R"(, "pooling": "mean"})" : "}";
    const Json out = answer(served, R"({"model": "test", "input": [5, 6, 7, 9])" + more);
    CHECK(out["data"][0]["embedding"].get<std::vector<float>>() == alone(ids, mean));
    CHECK(out["data"][0]["embedding"].get<std::vector<float>>() != alone(ids, !mean));  // controls
    CHECK(out["data"][0]["embedding"].get<std::vector<float>>() != alone(other, mean));
    CHECK(out["usage"] == Json{{"prompt_tokens", 4}, {"total_tokens", 4}});
    const Json many =
        answer(served, R"({"input": [[5, 6, 8, 9], [5, 6, 7, 9], [3]], "dimensions": 5)" + more);
    CHECK(many["data"].size() == 3);
    CHECK(many["data"][0]["embedding"].get<std::vector<float>>() == alone(other, mean));
    CHECK(many["data"][1]["embedding"] == out["data"][0]["embedding"]);
    CHECK(many["data"][2]["index"] == 2);
    const Json packed = answer(served, R"({"input": [5, 6, 7, 9], "encoding_format": "base64")" + more);
    const std::string bytes =
        tokenizer::base64_decode(packed["data"][0]["embedding"].get<std::string>()).value();
    CHECK(bytes.size() == 5 * sizeof(float));
    CHECK(std::memcmp(bytes.data(), alone(ids, mean).data(), bytes.size()) == 0);
  }
  const Json text = answer(served, R"({"input": ["the cat", "sat"]})");
  CHECK(text["data"][0]["embedding"] == answer(served, R"({"input": "the cat"})")["data"][0]["embedding"]);
  CHECK(text["object"] == "list");
}

TEST_CASE("drawn embeddings among answers, in few pages, with kept ones, are those of each input alone") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()));
  int64_t reused = 0;
  const int workloads = sized(4, 40, 200);
  for (int i = 0; i < workloads; ++i) {
    Served served(test_model(400, 4, 32, 4 + draw() % 3), 200);
    std::vector<std::shared_ptr<KeptExchange>> texts, exchanges;
    std::vector<std::pair<std::vector<int32_t>, bool>> inputs;
    std::vector<int32_t> before(300, 7);
    for (int k = 0; k < 10; ++k) {
      std::vector<int32_t> ids(before.begin(), before.begin() + draw() % before.size());
      while (ids.size() < 5 || (ids.size() < 380 && draw() % 60 != 0))
        ids.push_back(static_cast<int32_t>(draw() % 256));
      const bool mean = draw() % 2 == 0;
      exchanges.push_back(asked(served, Json{{"input", {ids}}, {"pooling", mean ? "mean" : "last"}}.dump()));
      inputs.emplace_back(ids, mean);
      before = std::move(ids);
      texts.push_back(served.ask(Json{{"prompt", before}, {"max_tokens", 15}}.dump()));
    }
    int wrong = 0;
    for (size_t k = 0; k < exchanges.size(); ++k) {
      exchanges[k]->wait();
      const auto [ids, mean] = inputs[k];
      wrong += Json::parse(exchanges[k]->body)["data"][0]["embedding"].get<std::vector<float>>() !=
               alone(ids, mean);
      texts[k]->wait();
    }
    CHECK(wrong == 0);
    reused += served.metrics->counts().reused_tokens;
  }
  CHECK((workloads < 40 || reused > 0));
}

TEST_CASE("an embedding that gives up its pages on the way is the same") {
  for (const bool mean : {false, true}) {
    std::latch asked_all(1);
    Served served(test_model(400, 4, 32, 4));
    static_cast<FormulaRunner&>(*served.model.runner).before_step = [&] { asked_all.wait(); };
    Json answers = {{"max_tokens", 60}, {"seed", 1}};
    answers["logit_bias"][std::to_string(served.model.stops[0])] = -100;
    for (int32_t text = 0; text < 2; ++text) answers["prompt"].push_back(std::vector<int32_t>(122, text));
    const auto texts = served.ask(answers.dump());
    const std::vector<int32_t> ids(250, 9);
    const auto embedding = asked(served, Json{{"input", ids}, {"pooling", mean ? "mean" : "last"}}.dump());
    asked_all.count_down();
    embedding->wait();
    texts->wait();
    CHECK(served.metrics->counts().preempted > 0);
    CHECK(Json::parse(embedding->body)["data"][0]["embedding"].get<std::vector<float>>() == alone(ids, mean));
  }
}

TEST_CASE(
    "a request for many embeddings goes on between others, whatever it was before, and in turn with its "
    "like") {
  for (const int64_t running : {1, 2, 4}) {
    ServedModel model = test_model(64, running, 32);
    auto& runner = static_cast<FormulaRunner&>(*model.runner);
    std::latch asked_all(1);
    runner.before_step = [&] { asked_all.wait(); };
    Served served(std::move(model), 64);
    const auto noted = [&](int64_t& at, const std::string& body, bool embeds) {
      const auto exchange = std::make_shared<KeptExchange>();
      exchange->at_end = [&] { at = runner.steps; };
      ParsedAsk parsed = embeds ? parse_embedding(served.model, body) : parse_completion(served.model, body);
      CHECK_FALSE(served.engine.push(
          {exchange, std::make_shared<const Ask>(std::move(std::get<Ask>(parsed))), nullptr}));
      return exchange;
    };
    Json many;
    for (int32_t i = 0; i < 120; ++i) many["input"].push_back(std::vector<int32_t>(31, i));
    int64_t first = 0, second = 0, one = 0;
    std::vector<int64_t> texts(6);
    std::vector<std::shared_ptr<KeptExchange>> all = {noted(first, many.dump(), true),
                                                      noted(second, many.dump(), true)};
    for (int64_t& at : texts)
      all.push_back(noted(at, R"({"prompt": [1, 2], "max_tokens": 4, "temperature": 0})", false));
    all.push_back(noted(one, Json{{"input", std::vector<int32_t>(31, 7)}}.dump(), true));
    asked_all.count_down();
    for (const auto& exchange : all) exchange->wait();
    CAPTURE(running);
    // A text of 31 tokens takes at most two steps, an answer of four tokens four.
    for (const int64_t at : texts) CHECK(at <= 2 * 2 + 6 * 4 + 2 * 6);
    CHECK(one <= 2 * 2 + 6 * 4 + 2 * 7);
    CHECK(first >= 120);
    CHECK(second >= 120);
    // They take turns: neither is half done when the other is.
    CHECK(std::min(first, second) * 10 >= std::max(first, second) * 8);
    // The controls: each is what it is alone.
    const Json vectors = Json::parse(all[0]->body)["data"];
    for (const int32_t i : {0, 60, 119})
      CHECK(vectors[static_cast<size_t>(i)]["embedding"].get<std::vector<float>>() ==
            alone(std::vector<int32_t>(31, i), false));
    CHECK(all[0]->body == all[1]->body);
  }
}

TEST_CASE(
    "requests for embeddings that have texts left count as waiting, and a text of others overtakes them") {
  ServedModel model = test_model(64, 1, 32);
  auto& runner = static_cast<FormulaRunner&>(*model.runner);
  Served served(std::move(model), EngineLimits{.waiting = 4, .times = kDays});  // of them 3 of one key
  Json many;
  for (int32_t i = 0; i < 60; ++i) many["input"].push_back(std::vector<int32_t>(31, i));
  std::vector<std::shared_ptr<KeptExchange>> taken;
  int refused = 0;
  int64_t ended = 0;
  std::latch over(1);
  // Returns false if it may not wait.
  const auto ask = [&](const std::shared_ptr<KeptExchange>& exchange, ParsedAsk parsed) {
    const auto error = served.engine.push(
        {exchange, std::make_shared<const Ask>(std::move(std::get<Ask>(parsed))), nullptr, "a"});
    if (error) CHECK(error->status == kTooMany);
    if (!error) taken.push_back(exchange);
    return !error;
  };
  const auto embed = [&] {
    return ask(std::make_shared<KeptExchange>(), parse_embedding(served.model, many.dump()));
  };
  runner.before_step = [&] {  // by the engine's thread
    if (runner.steps < 4 || (runner.steps >= 30 && runner.steps < 90)) refused += embed() ? 0 : 1;
    if (runner.steps == 90) over.count_down();
    if (runner.steps != 10) return;
    const auto text = std::make_shared<KeptExchange>();
    text->at_end = [&] { ended = runner.steps; };
    CHECK(ask(text, parse_completion(served.model, R"({"prompt": [1, 2], "max_tokens": 4})")));
  };
  const auto first = std::make_shared<KeptExchange>();
  ParsedAsk parsed = parse_embedding(served.model, many.dump());
  CHECK_FALSE(served.engine.push(
      {first, std::make_shared<const Ask>(std::move(std::get<Ask>(parsed))), nullptr, "a"}));
  over.wait();
  CHECK(taken.size() == 4 + 1 + 1);  // with the first one, 3 that run in turn and 3 behind them; and the text
  CHECK(refused == 59);
  CHECK(ended <= 10 + 3 * 2 + 4 + 2);
  first->wait();
  for (const auto& exchange : taken) exchange->wait();
  for (const auto& exchange : taken) CHECK(exchange->status == 200);
}

TEST_CASE("short embeddings fill a step where nothing else waits") {
  ServedModel model = test_model(64, 8, 32);
  auto& runner = static_cast<FormulaRunner&>(*model.runner);
  Served served(std::move(model));
  Json many;
  for (int32_t i = 0; i < 64; ++i) many["input"].push_back(std::vector<int32_t>(4, i));
  CHECK(answer(served, many.dump())["data"].size() == 64);
  CHECK(runner.rows == 64 * 4);
  CHECK(runner.most_together >= 4);
  CHECK(runner.steps <= 16 + 4);
}

TEST_CASE("the control: a page of another text is found in an embedding") {
  Served served(with_kept(test_model(400), Kept::kOfTextBefore));
  const auto body = [](int32_t id) { return Json{{"input", std::vector<int32_t>(140, id)}}.dump(); };
  const std::vector<int32_t> first(140, 1), second(140, 2);
  CHECK(answer(served, body(1))["data"][0]["embedding"].get<std::vector<float>>() == alone(first, false));
  CHECK(answer(served, body(2))["data"][0]["embedding"].get<std::vector<float>>() != alone(second, false));
}

TEST_CASE("what is wrong with a request for embeddings is named") {
  ServedModel model = test_model();
  const auto refusal = [&](const std::string& body) {
    const ParsedAsk parsed = parse_embedding(model, body);
    const auto* error = std::get_if<ApiError>(&parsed);
    return error == nullptr ? std::string("taken") : error->message;
  };
  std::string long_list = "1";
  for (int i = 0; i < 64; ++i) long_list += ",1";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{}", "\"input\" is missing"},
      {R"({"input": ""})", "\"input\" is empty"},
      {R"({"input": []})", "\"input\" is an empty list"},
      {R"({"input": [[]]})", "\"input\" holds an empty list"},
      {R"({"input": [[1], 3]})", "\"input\" holds 3"},
      {R"({"input": [99999]})", "holds 99999 at place 0"},
      {R"({"input": "a", "dimensions": 4})", "\"dimensions\" is 4; embeddings of this model have 5"},
      {R"({"input": "a", "dimensions": 0})", "\"dimensions\" is 0"},
      {R"({"input": "a", "encoding_format": "int8"})",
       "\"encoding_format\" is \"int8\"; use float or base64"},
      {R"({"input": "a", "pooling": "first"})", "\"pooling\" is \"first\"; use last or mean"},
      {R"({"input": "a", "poling": "mean"})", "the nearest is \"pooling\""},
      {R"({"input": "a", "model": "other"})", "is not served here"},
      {R"({"input": [3, [)" + long_list + "]]}", "holds a list of 65 at place 1"},
      {R"({"input": [[3], [)" + long_list + "]]}", "has 65 tokens at place 1; the model's context is 64"},
  };
  for (const auto& [body, words] : cases) {
    const std::string message = refusal(body);
    CHECK_MESSAGE(message.find(words) != std::string::npos, body.substr(0, 100) << ": " << message);
  }
  CHECK(refusal(R"({"input": [)" + long_list.substr(2) + "]}") == "taken");
  std::string many = "[1]";
  for (int i = 0; i < 2048; ++i) many += ",[1]";
  CHECK(refusal(R"({"input": [)" + many + "]}").find("holds 2049 texts; at most 2048") != std::string::npos);
  const auto with_limits = [&](const AskLimits& limits) {
    const auto asked = parse_embedding(model, R"({"input": [[1, 2], [3], [4]]})", limits);
    const auto* error = std::get_if<ApiError>(&asked);
    return error != nullptr ? error->message : "taken";
  };
  CHECK(with_limits({.input_tokens = 4, .numbers = 3 * model.facts.width}) == "taken");
  CHECK(with_limits({.input_tokens = 3}).find("has 4 tokens in all; a request may have 3") !=
        std::string::npos);
  CHECK(with_limits({.numbers = 3 * model.facts.width - 1}).find("has 3 texts; a request may have 2") !=
        std::string::npos);
  model.facts.width = 0;
  CHECK(refusal(R"({"input": "a"})").find("gives no embeddings") != std::string::npos);
}

}  // namespace
}  // namespace ostro::serve
