// Requests through the engine's thread: answers whole and in pieces are the same, and depend on nothing else.
#include "ostro/serve/engine_thread.h"

#include <atomic>
#include <future>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ostro/io/files/memory_file_system.h"
#include "ostro/serve/check_receipt.h"
#include "ostro/serve/model_for_test.h"

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
  ServedModel model = test_model();
  io::MemoryFileSystem fs;
  std::unique_ptr<ReceiptMaker> receipts = ReceiptMaker::open(fs, "", {}).value();
  EngineThread engine{model, *receipts, {.waiting = 4}};

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
    CHECK(text == choice["text"]);
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
      CHECK(text == choice["text"]);
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
