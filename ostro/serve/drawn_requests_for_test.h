// drawn_asks, wrong_together, KeptRunner: drawn requests, each of which has to get among others what it
// gets alone.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ostro/base/test_size.h"
#include "ostro/serve/engine_for_test.h"
#include "ostro/serve/model/forwarding_runner.h"

namespace ostro::serve {

// Which beginnings of texts a runner gives: those that it keeps, none, or, by a fault, those of the text
// before.
enum class Kept { kOwn, kNone, kOfTextBefore };

class KeptRunner final : public ForwardingRunner {
 public:
  KeptRunner(std::unique_ptr<infer::RowRunner> inner, Kept kept)
      : ForwardingRunner(std::move(inner)), kept_(kept) {}

  int64_t reuse(int64_t sequence, std::span<const int32_t> tokens, std::string_view owner) override {
    if (kept_ == Kept::kNone) return 0;
    if (kept_ == Kept::kOwn) return ForwardingRunner::reuse(sequence, tokens, owner);
    std::vector<int32_t> other(tokens.begin(), tokens.end());
    other.swap(before_);
    return ForwardingRunner::reuse(sequence, std::span(other).first(std::min(other.size(), tokens.size())),
                                   owner);
  }

 private:
  Kept kept_;
  std::vector<int32_t> before_;
};

inline ServedModel with_kept(ServedModel model, Kept kept) {
  model.runner = std::make_unique<KeptRunner>(std::move(model.runner), kept);
  return model;
}

// Requests with everything that decides an answer, drawn; a third shares the beginning of its prompt. Ids are
// below `tokens`; prompts have at most 40 * `times` of them, answers less than 16 * `times`.
inline std::vector<Json> drawn_asks(std::mt19937& draw, int count, int64_t tokens, uint32_t times) {
  const auto below = [&](uint32_t n) { return draw() % n; };
  std::vector<Json> out;
  const auto prompt = [&] {
    Json ids = Json::array();
    if (!out.empty() && below(3) == 0)
      for (const Json& id : out[below(static_cast<uint32_t>(out.size()))]["prompt"][0]) ids.push_back(id);
    for (uint32_t i = 0, more = times * (1 + below(30)); i < more && ids.size() < 40 * times; ++i)
      ids.push_back(below(static_cast<uint32_t>(tokens)));
    return ids;
  };
  for (int i = 0; i < count; ++i) {
    Json ask = {
        {"prompt", Json::array({prompt()})}, {"max_tokens", times * below(16)}, {"seed", below(1000)}};
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

// What each request gets when it is asked alone, of a model of its own that keeps nothing.
class Alone {
 public:
  explicit Alone(ServedModel model) : served_(with_kept(std::move(model), Kept::kNone)) {}

  const Json& choices(const std::string& ask) {
    Json& out = known_[ask];
    if (out.is_null()) out = served_.whole(ask)["choices"];
    return out;
  }

 private:
  Served served_;
  std::map<std::string, Json> known_;
};

// How many of the requests get other choices together than alone: other ids, bytes, log-probabilities (they
// are printed so that they read back exactly) or reasons. Some clients leave. The requests are of several
// keys.
inline int wrong_together(std::mt19937& draw, const std::vector<Json>& asks, Served& together, Alone& alone) {
  std::vector<std::shared_ptr<KeptExchange>> exchanges;
  for (const Json& ask : asks) {
    constexpr const char* kKeys[] = {"", "a", "b", "c"};
    const char* key = kKeys[draw() % std::size(kKeys)];
    exchanges.push_back(together.ask(ask.dump(), std::make_shared<KeptExchange>(), "", key));
    if (draw() % 4 != 0) continue;
    const auto leaving = std::make_shared<KeptExchange>();
    leaving->leave_after = static_cast<int>(draw() % 6);
    leaving->gone = leaving->leave_after == 0;
    Json streamed = ask;
    streamed["stream"] = true;
    streamed.erase("echo");
    together.ask(streamed.dump(), leaving, "", key);
  }
  int wrong = 0;
  for (size_t i = 0; i < asks.size(); ++i) {
    exchanges[i]->wait();
    CHECK(exchanges[i]->status == 200);
    wrong += Json::parse(exchanges[i]->body)["choices"] != alone.choices(asks[i].dump());
  }
  return wrong;
}

}  // namespace ostro::serve
