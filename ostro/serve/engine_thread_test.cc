// Requests through the engine's thread: answers whole and in pieces are the same, and depend on nothing else.
#include "ostro/serve/engine_thread.h"

#include <atomic>
#include <future>
#include <latch>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "ostro/base/test_size.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/serve/model_for_test.h"
#include "ostro/serve/receipts/check_receipt.h"

namespace ostro::serve {
namespace {

using Json = nlohmann::ordered_json;

// Keeps what it gets.
class KeptExchange final : public http::Exchange {
 public:
  KeptExchange() : Exchange({}) {}
  void answer(http::Response response) override {
    status = response.status;
    body = response.body;
    over_.set_value();
  }
  void begin(http::Response head) override { status = head.status; }
  void send(std::string_view bytes) override {
    body += bytes;
    if (++pieces == leave_after) gone = true;
  }
  void end() override { over_.set_value(); }
  bool is_gone() const override { return gone; }
  void wait() { over_.get_future().wait(); }

  int status = 0, pieces = 0, leave_after = -1;
  std::string body;
  std::atomic<bool> gone = false;

 private:
  std::promise<void> over_;
};

struct Served {
  explicit Served(ServedModel served = test_model(), size_t waiting = 4)
      : model(std::move(served)), limits{.waiting = waiting} {}

  ServedModel model;
  EngineLimits limits;
  io::MemoryFileSystem fs;
  std::unique_ptr<ReceiptMaker> receipts = ReceiptMaker::open(fs, "", {}).value();
  EngineThread engine{model, *receipts, limits};

  std::shared_ptr<KeptExchange> ask(
      const std::string& body, std::shared_ptr<KeptExchange> exchange = std::make_shared<KeptExchange>()) {
    const ParsedAsk parsed = parse_completion(model, body);
    REQUIRE(std::holds_alternative<Ask>(parsed));
    CHECK(engine.push({exchange, std::make_shared<const Ask>(std::get<Ask>(parsed)), nullptr}));
    return exchange;
  }
  Json whole(const std::string& body) {
    const auto exchange = ask(body);
    exchange->wait();
    CHECK(exchange->status == 200);
    return Json::parse(exchange->body);
  }
  std::vector<Json> events(const std::string& body) {
    const auto exchange = ask(body);
    exchange->wait();
    CHECK(exchange->body.ends_with("data: [DONE]\n\n"));
    std::vector<Json> out;
    std::istringstream lines(exchange->body);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("data: {")) out.push_back(Json::parse(line.substr(6)));
    return out;
  }
};

TEST_CASE("pieces add up to the whole answer, with its tokens, log-probabilities and end") {
  Served served;
  const std::string fields =
      R"("prompt": "the cat", "max_tokens": 30, "seed": 3, "logprobs": 2, "return_token_ids": true, "n": 2)";
  const Json whole = served.whole("{" + fields + "}");
  const auto events =
      served.events("{" + fields + R"(, "stream": true, "stream_options": {"include_usage": true}})");
  CHECK(whole["choices"].size() == 2);
  CHECK(whole["choices"][0]["text"] != whole["choices"][1]["text"]);
  for (const Json& choice : whole["choices"]) {
    std::string text;
    Json ids = Json::array(), log_probs = Json::array(), offsets = Json::array(), finish;
    for (const Json& event : events)
      for (const Json& piece : event["choices"]) {
        if (piece["index"] != choice["index"]) continue;
        text += piece["text"].get<std::string>();
        for (const Json& id : piece["token_ids"]) ids.push_back(id);
        for (const Json& p : piece["logprobs"]["token_logprobs"]) log_probs.push_back(p);
        for (const Json& offset : piece["logprobs"]["text_offset"]) offsets.push_back(offset);
        finish = piece["finish_reason"];
      }
    CHECK(text == choice["text"].get<std::string>());
    CHECK(ids == choice["token_ids"]);
    CHECK(log_probs == choice["logprobs"]["token_logprobs"]);
    CHECK(offsets == choice["logprobs"]["text_offset"]);
    CHECK(finish == choice["finish_reason"]);
    CHECK(choice["seed"] == 3);
    CHECK(choice["logprobs"]["top_logprobs"][0].size() >= 2);
  }
  CHECK(events.back()["usage"] == whole["usage"]);
}

TEST_CASE("an answer is the same alone, among others and after a client that left") {
  Served served;
  const std::string body = R"({"prompt": [5, 6, 7], "max_tokens": 25, "seed": 11})";
  const Json alone = served.whole(body)["choices"];
  const auto gone = std::make_shared<KeptExchange>();
  gone->leave_after = 3;
  served.ask(R"({"prompt": "the cat", "max_tokens": 60, "seed": 1, "stream": true})", gone);
  served.ask(R"({"prompt": "a", "max_tokens": 20})")->wait();
  CHECK(gone->pieces <= 4);
  CHECK(served.whole(body)["choices"] == alone);
  const Json drawn = served.whole(R"({"prompt": [5, 6, 7], "max_tokens": 25})")["choices"][0];
  const std::string again =
      R"({"prompt": [5, 6, 7], "max_tokens": 25, "seed": )" + drawn["seed"].dump() + "}";
  CHECK(served.whole(again)["choices"][0] == drawn);
}

TEST_CASE("echo has the prompt, and a request for no token only rates it") {
  Served served;
  const Json choice =
      served.whole(R"({"prompt": "the cat", "max_tokens": 0, "echo": true, "logprobs": 1})")["choices"][0];
  CHECK(choice["text"] == "the cat");
  CHECK(choice["finish_reason"] == "length");
  const Json& log_probs = choice["logprobs"];
  CHECK(log_probs["token_logprobs"][0].is_null());
  CHECK(log_probs["tokens"].size() == served.model.tokenizer->encode("the cat").size());
  CHECK(log_probs["tokens"].size() > 1);
  CHECK(log_probs["token_logprobs"][1].get<double>() < 0);
  CHECK(log_probs["text_offset"][0] == 0);
}

TEST_CASE("echo in pieces is echo whole") {
  Served served;
  for (const std::string more : {R"("max_tokens": 5)", R"("max_tokens": 5, "logprobs": 1)",
                                 R"("max_tokens": 0, "logprobs": 0)", R"("max_tokens": 0)"}) {
    const std::string fields = R"("prompt": ["the cat", [3, 4, 5]], "echo": true, "seed": 2, )" + more;
    const Json whole = served.whole("{" + fields + "}");
    const auto events = served.events("{" + fields + R"(, "stream": true})");
    for (const Json& choice : whole["choices"]) {
      std::string text;
      Json log_probs = Json::array(), offsets = Json::array();
      for (const Json& event : events)
        for (const Json& piece : event["choices"]) {
          if (piece["index"] != choice["index"]) continue;
          text += piece["text"].get<std::string>();
          if (piece["logprobs"].is_null()) continue;
          for (const Json& p : piece["logprobs"]["token_logprobs"]) log_probs.push_back(p);
          for (const Json& offset : piece["logprobs"]["text_offset"]) offsets.push_back(offset);
        }
      CHECK(text == choice["text"].get<std::string>());
      if (choice["logprobs"].is_null()) continue;
      CHECK(log_probs == choice["logprobs"]["token_logprobs"]);
      CHECK(offsets == choice["logprobs"]["text_offset"]);
    }
  }
}

TEST_CASE("a stop string that names a special token ends the answer at its id") {
  Served served;
  const std::string end = std::to_string(served.model.stops[0]);
  served.model.stops.clear();  // it ends no answer by itself
  const auto choice = [&](const std::string& stop) {
    return served.whole(R"({"prompt": [1], "max_tokens": 9, "return_token_ids": true, "logit_bias": {")" +
                        end + R"(": 100}, "stop": [")" + stop + "\"]}")["choices"][0];
  };
  CHECK(choice("<|endoftext|>")["token_ids"] == Json::array({std::stoi(end)}));
  CHECK(choice("<|endoftext|>")["finish_reason"] == "stop");
  CHECK(choice("<|other|>")["token_ids"].size() == 9);
}

TEST_CASE("a receipt comes with its choice, and holds") {
  Served served;
  for (const std::string more : {"", R"(, "stream": true)", R"(, "nonce": "n")"}) {
    const std::string body =
        R"({"prompt": "the cat", "max_tokens": 12, "receipt": true, "temperature": 0.9)" + more + "}";
    const Json choice = more.find("stream") == std::string::npos ? served.whole(body)["choices"][0]
                                                                 : served.events(body).back()["choices"][0];
    const auto document = parse_document(choice["receipt"].dump(), "receipt").value();
    CHECK(std::to_string(choice["seed"].get<uint64_t>()) ==
          std::to_string(document.receipt.options.choice.seed));
    const auto check = check_receipt(document, served.model, {}).value();
    CHECK_MESSAGE(check.verdict() == audit::Verdict::kEqual, receipt_check_text(check));
  }
}

// Requests with everything that decides an answer, drawn; a third shares the beginning of its prompt.
std::vector<Json> drawn_asks(std::mt19937& draw, int count, int64_t tokens) {
  const auto below = [&](uint32_t n) { return draw() % n; };
  std::vector<Json> out;
  const auto prompt = [&] {
    Json ids = Json::array();
    if (!out.empty() && below(3) == 0)
      for (const Json& id : out[below(static_cast<uint32_t>(out.size()))]["prompt"][0]) ids.push_back(id);
    for (uint32_t i = 0, more = 1 + below(12); i < more && ids.size() < 40; ++i)
      ids.push_back(below(static_cast<uint32_t>(tokens)));
    return ids;
  };
  for (int i = 0; i < count; ++i) {
    Json ask = {{"prompt", Json::array({prompt()})}, {"max_tokens", below(16)}, {"seed", below(1000)}};
    if (below(4) == 0) ask["prompt"].push_back(prompt());
    ask["n"] = 1 + below(3);
    ask["temperature"] = below(2) == 0 ? 0.0 : 1.5;
    ask["logprobs"] = below(3);
    ask["return_token_ids"] = true;
    if (below(3) == 0) ask["frequency_penalty"] = 0.5;
    if (below(3) == 0) ask["echo"] = true;
    if (below(3) == 0) ask["top_p"] = 0.9;
    if (below(4) == 0) ask["stop"] = "a";
    out.push_back(std::move(ask));
  }
  return out;
}

// How many of the requests get other choices together than alone. `spoil` may change the runner of those that
// run together; some clients leave.
int wrong_together(std::mt19937& draw, int count, infer::RowLimits limits,
                   const std::function<void(ServedModel&)>& spoil = {}) {
  ServedModel model = test_model(64, limits.sequences, limits.rows);
  if (spoil) spoil(model);
  Served alone(test_model(64, 1, 64)), together(std::move(model), 200);
  const std::vector<Json> asks = drawn_asks(draw, count, alone.model.tokens());
  std::vector<std::shared_ptr<KeptExchange>> exchanges;
  for (const Json& ask : asks) {
    exchanges.push_back(together.ask(ask.dump()));
    if (draw() % 4 != 0) continue;
    const auto leaving = std::make_shared<KeptExchange>();
    leaving->leave_after = static_cast<int>(draw() % 6);
    leaving->gone = leaving->leave_after == 0;
    Json streamed = ask;
    streamed["stream"] = true;
    streamed.erase("echo");
    together.ask(streamed.dump(), leaving);
  }
  int wrong = 0;
  for (size_t i = 0; i < asks.size(); ++i) {
    exchanges[i]->wait();
    CHECK(exchanges[i]->status == 200);
    wrong += Json::parse(exchanges[i]->body)["choices"] != alone.whole(asks[i].dump())["choices"];
  }
  return wrong;
}

TEST_CASE("drawn requests get together what each gets alone, to the bits of its log-probabilities") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()));
  for (int i = 0; i < sized(30, 300, 3000); ++i) {
    const infer::RowLimits limits{64, 1 + static_cast<int64_t>(draw() % 9), int64_t{1} << (draw() % 6)};
    CAPTURE(limits.sequences);
    CAPTURE(limits.rows);
    CHECK(wrong_together(draw, 1 + static_cast<int>(draw() % (i % 10 == 0 ? 48 : 8)), limits) == 0);
  }
}

// Runners with a fault that batching could have.
class NeighboursRow final : public FormulaRunner {
 public:
  using FormulaRunner::FormulaRunner;
  Result<runtime::Buffer> step(std::span<const infer::RowChunk> chunks) override {
    ASSIGN_OR_RETURN(runtime::Buffer rows, FormulaRunner::step(chunks));
    if (!rows.valid() || rows.shape().axes[0].size < 2) return rows;
    const auto vocab = static_cast<int64_t>(rows.shape().axes[1].size);
    const std::span<float> all = rows.mutable_as<float>();
    std::swap_ranges(all.begin(), all.begin() + vocab, all.begin() + vocab);
    return rows;
  }
};
class OtherBeginning final : public FormulaRunner {
 public:
  using FormulaRunner::FormulaRunner;
  Status copy(int64_t from, int64_t to, int64_t count) override {
    const std::vector<int32_t> other(static_cast<size_t>(count), 3);
    const infer::RowChunk chunk{to, other, 0};
    (void)from;
    return FormulaRunner::step({&chunk, 1}).ok() ? Status() : io_error("no room");
  }
};

TEST_CASE("the controls: a neighbour's row, keys of another prompt, a seed by the place are found") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()) + 1);
  const infer::RowLimits limits{64, 4, 32};
  const auto with = [&]<typename T>(T*) {
    return [&](ServedModel& m) { m.runner = std::make_unique<T>(m.tokens(), limits); };
  };
  CHECK(wrong_together(draw, 12, limits, with(static_cast<NeighboursRow*>(nullptr))) > 0);
  CHECK(wrong_together(draw, 24, limits, with(static_cast<OtherBeginning*>(nullptr))) > 0);
  // A seed by the place in the batch would be another one for the same request: the answers then differ.
  Served served;
  const std::string fields = R"({"prompt": [5, 6, 7], "max_tokens": 25, "temperature": 1.5, "seed": )";
  CHECK(served.whole(fields + "1}")["choices"][0]["text"] !=
        served.whole(fields + "2}")["choices"][0]["text"]);
}

// The end's token has an id behind all others, so that the ids before it and at its old place are of no
// token.
ServedModel model_with_a_hole() {
  ServedModel out = test_model();
  const int64_t id = out.tokens() + 1;
  Json json = Json::parse(out.tokenizer->to_json());
  Json& end = json["added_tokens"][0];
  end["id"] = id;
  Json& vocabulary = json["model"]["vocab"];
  const auto name = end["content"].get<std::string>();
  if (vocabulary.contains(name)) vocabulary[name] = id;
  out.tokenizer =
      std::make_shared<tokenizer::Tokenizer>(tokenizer::Tokenizer::from_json(json.dump(), "t").value());
  out.runner = std::make_unique<FormulaRunner>(out.tokens(), infer::RowLimits{64, 4, 32});
  out.stops = {static_cast<int32_t>(id)};
  return out;
}

TEST_CASE("an answer that cannot go on ends its own request alone") {
  Served served(model_with_a_hole());
  const auto hole = static_cast<int32_t>(served.model.tokens() - 2);
  REQUIRE_FALSE(served.model.tokenizer->id_to_token(static_cast<uint32_t>(hole)));
  const std::string body = R"({"prompt": "the cat", "max_tokens": 30, "seed": 4, "n": 2, "top_k": 1})";
  const Json alone = served.whole(body)["choices"];
  const auto innocent = served.ask(body);
  Ask ask = std::get<Ask>(parse_completion(served.model, R"({"prompt": "the", "temperature": 0, "n": 2})"));
  ask.options.choice.bias = {{hole, 100}};
  const auto failed = std::make_shared<KeptExchange>();
  CHECK(served.engine.push({failed, std::make_shared<const Ask>(ask), nullptr}));
  failed->wait();
  innocent->wait();
  CHECK(failed->status == 500);
  CHECK(innocent->status == 200);
  CHECK(Json::parse(innocent->body)["choices"] == alone);
  // As a request it is refused before the model has it.
  const ParsedAsk refused = parse_completion(
      served.model, R"({"prompt": "the", "logit_bias": {")" + std::to_string(hole) + R"(": 100}})");
  REQUIRE(std::holds_alternative<ApiError>(refused));
  CHECK(std::get<ApiError>(refused).message.find("the id of no token") != std::string::npos);
}

TEST_CASE("answers run together, and those of one prompt run its rows once") {
  ServedModel model = test_model(64, 4, 64);
  auto& runner = static_cast<FormulaRunner&>(*model.runner);
  std::latch pushed(1);
  runner.before_step = [&] { pushed.wait(); };
  Served served(std::move(model));
  std::string prompt = "1";
  for (int i = 2; i <= 30; ++i) prompt += ", " + std::to_string(i);
  const auto exchange =
      served.ask("{\"prompt\": [" + prompt + R"(], "max_tokens": 10, "n": 4, "logit_bias": {")" +
                 std::to_string(served.model.stops[0]) + R"(": -100}})");
  pushed.count_down();
  exchange->wait();
  CHECK(exchange->status == 200);
  CHECK(runner.most_together == 4);
  CHECK(runner.rows == 30 + 3 + 4 * 9);  // the prompt, its last row for the others, all tokens but the last
  served.whole(R"({"prompt": [1], "max_tokens": 1})");
  CHECK(runner.is_idle());
}

TEST_CASE("more than may wait is refused, and what left makes room") {
  BoundedQueue<int> queue(2);
  const auto none = [](int) { return false; };
  CHECK(queue.push(1, none));
  CHECK(queue.push(2, none));
  CHECK_FALSE(queue.push(3, none));
  CHECK(queue.push(4, [](int i) { return i == 1; }));
  CHECK(queue.pop() == 2);
  CHECK(queue.pop() == 4);
  queue.close();
  CHECK_FALSE(queue.pop().has_value());
  CHECK_FALSE(queue.push(5, none));
}

}  // namespace
}  // namespace ostro::serve
