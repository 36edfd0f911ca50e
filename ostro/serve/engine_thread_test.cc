// Requests through the engine's thread: answers whole and in pieces are the same, and depend on nothing else.
#include "ostro/serve/engine_thread.h"

#include <latch>

#include "ostro/serve/engine_for_test.h"
#include "ostro/serve/receipts/check_receipt.h"

namespace ostro::serve {
namespace {

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

TEST_CASE("a prompt's beginning is kept for its own key, and no step is run for it again") {
  Served served(test_model(640, 4, 64));
  Json ids = Json::array();
  for (int i = 0; i < 300; ++i) ids.push_back(i % 200);
  const std::string body = Json({{"prompt", ids}, {"max_tokens", 4}, {"seed", 1}}).dump();
  const auto reused_by = [&](const std::string& owner) {
    const int64_t before = served.metrics->counts().reused_tokens;
    served.ask(body, std::make_shared<KeptExchange>(), owner)->wait();
    return served.metrics->counts().reused_tokens - before;
  };
  CHECK(reused_by("a") == 0);
  CHECK(reused_by("a") == 299);  // all but the last row, which is run for its logits
  CHECK(reused_by("b") == 0);
  CHECK(reused_by("b") == 299);
}

TEST_CASE("a rated prompt that fills the cache is answered again and again") {
  Served served(test_model(384, 2, 128, 3));
  Json ids = Json::array();
  for (int i = 0; i < 370; ++i) ids.push_back(i % 200);
  const Json ask = {{"prompt", ids}, {"max_tokens", 3}, {"seed", 1},
                    {"echo", true},  {"logprobs", 1},   {"n", 2}};
  const Json first = served.whole(ask.dump())["choices"];
  CHECK(first.size() == 2);
  CHECK(served.whole(ask.dump())["choices"] == first);
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
  CHECK_FALSE(served.engine.push({failed, std::make_shared<const Ask>(ask), nullptr}));
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

TEST_CASE("what a client does not read waits in few tokens, holds up no other, and comes when it is read") {
  Served served(test_model(64, 2, 32));
  const std::string body =
      R"({"prompt": "the cat", "max_tokens": 30, "seed": 3, "n": 3, "stream": true, "return_token_ids": true})";
  const auto whole = served.ask(body);
  whole->wait();
  const auto slow = std::make_shared<KeptExchange>();
  slow->full = true;
  served.ask(body, slow);
  CHECK(served.whole(R"({"prompt": [1], "max_tokens": 9})")["choices"].size() == 1);
  // A step looks twice whether its tokens are wanted, so behind these there are more steps than its last
  // answer takes. All of its tokens are made, and the engine has nothing to do but to look again.
  const int64_t before = slow->looked;
  while (slow->looked < before + 100) std::this_thread::yield();
  CHECK(served.whole(R"({"prompt": [1], "max_tokens": 9})")["choices"].size() == 1);
  CHECK(slow->pieces == 1);
  CHECK(static_cast<FormulaRunner&>(*served.model.runner).is_idle());
  slow->full = false;
  slow->wait();
  const auto text_of = [](const std::string& events) {  // ids and times of answers differ
    Json out = Json::array();
    std::istringstream lines(events);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("data: {")) out.push_back(Json::parse(line.substr(6))["choices"]);
    return out;
  };
  CHECK(text_of(slow->body) == text_of(whole->body));
  // One that leaves instead is forgotten.
  const auto left = std::make_shared<KeptExchange>();
  left->full = true;
  served.ask(body, left);
  while (left->looked < 10) std::this_thread::yield();
  left->gone = true;
  while (left.use_count() > 1) std::this_thread::yield();
}

}  // namespace
}  // namespace ostro::serve
