// What a client that leaves had is free within two steps of the model, wherever its request was.
#include <latch>

#include "ostro/serve/engine_for_test.h"

namespace ostro::serve {
namespace {

TEST_CASE("pages and rows of a client that leaves in its prompt or its stream are free within two steps") {
  std::string prompt = "1";
  for (int i = 2; i <= 700; ++i) prompt += ", " + std::to_string(1 + i % 200);
  for (const size_t leaves_in : {2, 3, 7, 15, 40, 90}) {  // the number of the step; some 20 are of the prompt
    CAPTURE(leaves_in);
    ServedModel model = test_model(1024, 4, 48);
    auto& runner = static_cast<FormulaRunner&>(*model.runner);
    const std::string endless = R"(, "logit_bias": {")" + std::to_string(model.stops[0]) + R"(": -100}})";
    std::latch asked(1);
    const auto leaving = std::make_shared<KeptExchange>();
    std::vector<int64_t> held, rows;  // at the beginning of each step: pages; rows of all steps before
    runner.before_step = [&] {
      asked.wait();
      held.push_back(runner.cache_facts().held);
      rows.push_back(runner.rows);
      if (held.size() == leaves_in) leaving->gone = true;
    };
    Served served(std::move(model));
    const auto staying = served.ask(R"({"prompt": [1], "max_tokens": 110)" + endless);
    served.ask("{\"prompt\": [" + prompt + R"(], "max_tokens": 300, "stream": true)" + endless, leaving);
    asked.count_down();
    staying->wait();
    CHECK(staying->status == 200);
    REQUIRE(held.size() > leaves_in + 2);
    CHECK(held[leaves_in - 1] > 1);             // it had some, beside the one page of who stays
    CHECK(held[leaves_in + 1] == 1);            // the second step after this one
    CHECK(rows.back() - rows[leaves_in + 1] ==  // which is alone from then on
          static_cast<int64_t>(rows.size() - leaves_in - 2));
  }
}

}  // namespace
}  // namespace ostro::serve
