// Limits of a server: the share of a key, the longest wait, and what waits or runs for too long. Time is
// counted in steps of the model.
#include "ostro/serve/limits.h"

#include <latch>
#include <thread>

#include "ostro/serve/engine_for_test.h"
#include "ostro/serve/receipts/check_receipt.h"

namespace ostro::serve {
namespace {

// Requests through a model with `sequences` sequences, whose first step waits until all have been asked. A
// step takes a second.
struct Counted {
  explicit Counted(int64_t sequences, EngineLimits limits = {}, int64_t context = 64, int64_t pages = 0)
      : served(made(sequences, context, pages), clocked(std::move(limits))) {}

  ServedModel made(int64_t sequences, int64_t context, int64_t pages) {
    ServedModel out = test_model(context, sequences, 32, pages);
    runner = static_cast<FormulaRunner*>(out.runner.get());
    runner->before_step = [this] {
      begun = true;
      asked.wait();
      ++seconds;
    };
    return out;
  }
  EngineLimits clocked(EngineLimits limits) {
    limits.now = [this] { return Clock::time_point(std::chrono::seconds(seconds)); };
    return limits;
  }
  // An answer of exactly so many tokens; `more`: further fields. `ended` gets the time of its end.
  std::shared_ptr<KeptExchange> ask(const std::string& key, int64_t tokens, const std::string& more = "",
                                    int64_t* ended = nullptr, const Json& prompt = {1}) {
    const auto exchange = std::make_shared<KeptExchange>();
    if (ended != nullptr) exchange->at_end = [this, ended] { *ended = seconds; };
    return served.ask("{\"prompt\": " + prompt.dump() +
                          R"(, "seed": 1, "return_token_ids": true, "logit_bias": {")" +
                          std::to_string(served.model.stops[0]) + R"(": -100}, "max_tokens": )" +
                          std::to_string(tokens) + more + "}",
                      exchange, "", key);
  }

  // Its first step waits for `asked`; what is asked from now on is taken behind it.
  void begin(const std::string& key) {
    first = ask(key, 1);
    while (!begun) std::this_thread::yield();
  }

  std::latch asked{1};
  std::atomic<bool> begun = false;
  std::shared_ptr<KeptExchange> first;
  std::atomic<int64_t> seconds = 0;
  FormulaRunner* runner = nullptr;
  Served served;
};

// When the one request of a third key ends, where two others have asked twelve times each.
int64_t end_behind_others(const char* a, const char* b, const char* c) {
  Counted test(4, {.waiting = 40});
  std::vector<std::shared_ptr<KeptExchange>> all;
  for (int i = 0; i < 12; ++i)
    for (const char* key : {a, b}) all.push_back(test.ask(key, 10));
  int64_t ended = 0;
  all.push_back(test.ask(c, 10, "", &ended));
  test.asked.count_down();
  for (const auto& one : all) one->wait();
  return ended;
}

TEST_CASE("the longest wait is that of the guide; without turns of keys it is longer") {
  // docs/guide/serve.md: ceil((A + 1) * K / R) * S, with A = 0 answers before it, K = 3 keys, R = 4 answers
  // at a time, S = 10 steps of each; then it runs for 10.
  CHECK(end_behind_others("a", "b", "c") <= 10 + 10);
  CHECK(end_behind_others("", "", "") > 60);  // the control: first come, first served
}

TEST_CASE("a key runs its share of answers at a time, and waits with its share of requests") {
  const auto together = [](const char* key) {
    Counted test(4, {.waiting = 40});
    std::vector<std::shared_ptr<KeptExchange>> all;
    for (int i = 0; i < 8; ++i) all.push_back(test.ask(key, 10));
    test.asked.count_down();
    for (const auto& one : all) one->wait();
    return test.runner->most_together;
  };
  CHECK(together("a") == 3);
  CHECK(together("") == 4);  // one owner has all
  // Of one request, too, whose answers are many; another key's is not behind them.
  Counted test(4, {.waiting = 4});
  int64_t ended = 0;
  const auto many = test.ask("a", 10, R"(, "n": 16)"), one = test.ask("b", 10, "", &ended);
  test.asked.count_down();
  many->wait();
  one->wait();
  CHECK(ended <= 10 + 10);
  CHECK(Json::parse(many->body)["choices"].size() == 16);

  CHECK(share_of(16, 75) == 12);
  CHECK(share_of(1, 75) == 1);
  CHECK(share_of(100, 57) == 57);  // 100 * 0.57 is less
  const ApiError refused = may_not_wait(Pushed::kKeyFull, 64, 75);
  CHECK(refused.status == 429);
  CHECK(refused.message.find("48 requests of this key wait already, which is its share of the 64") == 0);
  CHECK(error_response(refused).headers[0].first == "Retry-After");
}

TEST_CASE("prompts are read in the order in which their answers began, so keys take turns at them, too") {
  // Twelve prompts of one key, one of another, of 60 rows each: when do both end, in steps?
  const auto ends = [](const char* a, const char* b) {
    Counted test(4);
    test.begin("c");
    std::pair<int64_t, int64_t> out;
    std::vector<std::vector<int32_t>> prompts;  // of which none begins like another
    for (int32_t i = 0; i < 12; ++i) prompts.emplace_back(60, i);
    const auto many = test.ask(a, 1, "", &out.first, prompts),
               one = test.ask(b, 1, "", &out.second, std::vector<int32_t>(60, 12));
    test.asked.count_down();
    many->wait();
    one->wait();
    return out;
  };
  const auto [many, one] = ends("a", "b");
  CHECK(one <= 1 + 2 * 60 / 16 + 2);  // behind one prompt, by 16 rows at least in a step
  CHECK(2 * one <= many);
  const auto [before, behind] = ends("", "");  // the control
  CHECK(2 * behind > before);
}

TEST_CASE("where pages run out, the answer that began last gives up its own, whichever key it is of") {
  Counted test(4, {}, 400, 4), alone(4, {}, 400);
  test.begin("c");
  int64_t ended = 0, other_ended = 0;
  const std::vector<int32_t> first(122, 1), second(122, 2), third(122, 3);
  // By the turns they begin as first, third, second; each grows into a second page, and there are four.
  const auto both = test.ask("a", 60, "", &ended, {first, second}),
             other = test.ask("b", 60, "", &other_ended, third);
  test.asked.count_down();
  both->wait();
  other->wait();
  CHECK(test.served.metrics->counts().preempted > 0);
  CHECK(other_ended < ended);
  alone.asked.count_down();
  const std::vector<std::pair<std::shared_ptr<KeptExchange>, Json>> all = {{both, {first, second}},
                                                                           {other, third}};
  for (const auto& [got, prompt] : all) {
    const auto expected = alone.ask("", 60, "", nullptr, prompt);
    expected->wait();
    CHECK(Json::parse(got->body)["choices"] == Json::parse(expected->body)["choices"]);
  }
}

TEST_CASE("a request that waits for too long gets an error, and the others what they get alone") {
  Counted test(1, {.times = {.waiting = std::chrono::seconds(10)}});
  const auto runs = test.ask("", 50);
  int64_t ended = 0;
  const auto waits = test.ask("", 5, "", &ended);
  test.asked.count_down();
  waits->wait();
  runs->wait();
  CHECK(waits->status == 503);
  CHECK(Json::parse(waits->body)["error"]["code"] == "wait_limit");
  CHECK(ended == 11);  // the first step at whose end it is too late
  Counted alone(1);
  alone.asked.count_down();
  const auto expected = alone.ask("", 50);
  expected->wait();
  CHECK(Json::parse(runs->body)["choices"] == Json::parse(expected->body)["choices"]);
}

TEST_CASE("an answer that runs for too long ends with what it has, and its receipt says so and holds") {
  Counted test(2, {.times = {.running = std::chrono::seconds(20)}}), alone(2);
  test.asked.count_down();
  alone.asked.count_down();
  const auto choice = [](Counted& of, const std::string& more) {
    const auto exchange = of.ask("", 60, more);
    exchange->wait();
    CHECK(exchange->status == 200);
    return Json::parse(exchange->body)["choices"][0];
  };
  const std::string fields = R"(, "receipt": true, "logprobs": 1)";
  const Json cut = choice(test, fields), whole = choice(alone, fields);
  const Json& ids = whole["token_ids"];
  CHECK(ids.size() == 60);
  CHECK(cut["token_ids"] == Json(std::vector<Json>(ids.begin(), ids.begin() + 21)));
  CHECK(whole["text"].get<std::string>().starts_with(cut["text"].get<std::string>().substr(0, 10)));
  CHECK(cut["finish_reason"] == "length");
  CHECK(cut["ended_by"] == "running_seconds");
  CHECK_FALSE(whole.contains("ended_by"));
  // Its end in a receipt is neither that of a full answer nor the other way round.
  const auto verdict = [&](const Json& of, const char* finish) {
    auto document = parse_document(of["receipt"].dump(), "receipt").value();
    if (*finish != 0) document.receipt.finish = finish;
    return check_receipt(document, test.served.model, {}).value().verdict();
  };
  CHECK(verdict(cut, "") == audit::Verdict::kEqual);
  CHECK(verdict(cut, "time_limit") == audit::Verdict::kEqual);
  CHECK(verdict(cut, "length") == audit::Verdict::kDiffers);
  CHECK(verdict(whole, "") == audit::Verdict::kEqual);
  CHECK(verdict(whole, "time_limit") == audit::Verdict::kDiffers);
  // In pieces it has the same text, and its last piece the end.
  const auto streamed = test.ask("", 60, R"(, "stream": true)");
  streamed->wait();
  std::string text;
  Json last;
  std::istringstream lines(streamed->body);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("data: {")) {
      last = Json::parse(line.substr(6))["choices"][0];
      text += last["text"].get<std::string>();
    }
  CHECK(text == cut["text"].get<std::string>());
  CHECK(last["ended_by"] == "running_seconds");
  CHECK(last["finish_reason"] == "length");
}

TEST_CASE("a request of which an answer has no token when its time is over gets an error") {
  Counted test(1, {.times = {.running = std::chrono::seconds(20)}});
  const auto both = test.ask("", 15, R"(, "n": 2)"), three = test.ask("", 15, R"(, "n": 3)");
  test.asked.count_down();
  both->wait();
  three->wait();
  CHECK(both->status == 200);
  CHECK(Json::parse(both->body)["choices"][1]["ended_by"] == "running_seconds");
  CHECK(three->status == 503);
  const Json error = Json::parse(three->body)["error"];
  CHECK(error["code"] == "run_limit");
  CHECK(error["message"].get<std::string>().find("answer 3 of 3 is not so far") != std::string::npos);
  CHECK(error_response(ran_too_long(std::chrono::seconds(20), 2, 3)).headers[0].first == "x-should-retry");
  test.ask("", 1)->wait();
  CHECK(test.runner->is_idle());
}

}  // namespace
}  // namespace ostro::serve
