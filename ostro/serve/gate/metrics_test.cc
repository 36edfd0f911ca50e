// Counters, and the text that Prometheus reads.
#include "ostro/serve/gate/metrics.h"

#include <doctest/doctest.h>

#include "ostro/serve/gate/paths.h"

namespace ostro::serve {
namespace {

TEST_CASE("the text of counters") {
  Metrics metrics;
  metrics.answered("/v1/completions", 200);
  metrics.answered("/v1/completions", 200);
  metrics.answered("a\"b\\c\nd", 404);
  metrics.take();
  metrics.take();
  metrics.begin(12);
  metrics.token(0.02, true);
  metrics.token(0.03, false);
  const std::string text = metrics_text(metrics.counts(), "nano", "3f");
  for (const char* line : {"ostro_model_info{model=\"nano\",state=\"3f\"} 1\n",
                           "ostro_requests_total{path=\"/v1/completions\",status=\"200\"} 2\n",
                           "ostro_requests_total{path=\"a\\\"b\\\\c\\nd\",status=\"404\"} 1\n",
                           "\nostro_prompt_tokens_total 12\n", "\nostro_generated_tokens_total 2\n",
                           "\nostro_requests_running 1\n", "\nostro_requests_waiting 1\n",
                           "ostro_time_to_first_token_seconds_bucket{le=\"0.01\"} 0\n",
                           "ostro_time_to_first_token_seconds_bucket{le=\"0.025\"} 1\n",
                           "ostro_time_to_first_token_seconds_bucket{le=\"+Inf\"} 1\n",
                           "ostro_time_to_first_token_seconds_sum 0.02\n", "ostro_request_seconds_count 0\n"})
    CHECK_MESSAGE(text.find(line) != std::string::npos, line);
  metrics.end(1);
  metrics.drop();
  CHECK(metrics.counts().running == 0);
  CHECK(metrics.counts().taken == 1);
  CHECK(metrics.counts().whole.count == 1);
  CHECK(metrics_text({}, "", "").find("ostro_model_info") == std::string::npos);
}

TEST_CASE("pages of all engines are counted together, until they are gone") {
  Metrics metrics;
  const int one = 0, other = 0;
  metrics.cache(&one, {4, 40, 1, 2});
  metrics.cache(&other, {6, 60, 3, 0});
  metrics.cache(&other, {6, 60, 2, 1});
  CHECK(metrics.counts().cache.pages == 10);
  CHECK(metrics.counts().cache.bytes == 100);
  CHECK(metrics.counts().cache.held == 3);
  metrics.cache(&one, {});
  CHECK(metrics.counts().cache.pages == 6);
  CHECK(metrics.counts().cache.kept == 1);
}

TEST_CASE("a client that left before its answer is counted as such, and an answer once") {
  class Nothing final : public http::Exchange {
   public:
    Nothing() : Exchange({}) {}
    void answer(http::Response) override {}
    void begin(http::Response) override {}
    void send(std::string_view) override {}
    void end() override {}
    bool is_gone() const override { return true; }
  };
  const auto metrics = std::make_shared<Metrics>();
  {
    (void)counted(std::make_shared<Nothing>(), metrics, "/a");
  }
  {
    const auto one = counted(std::make_shared<Nothing>(), metrics, "/a");
    one->begin({200});
    one->answer({500});
  }
  const Counts counts = metrics->counts();
  CHECK(counts.answers.size() == 2);
  CHECK(counts.answers.at({"/a", 499}) == 1);
  CHECK(counts.answers.at({"/a", 200}) == 1);
}

TEST_CASE("paths") {
  CHECK(path_of("/v1/models")->action == Action::kModels);
  CHECK(path_of("/v1/models/a/b")->action == Action::kModel);
  CHECK(path_of("/v1/models/a/b")->path == "/v1/models/{id}");
  CHECK(path_of("/")->action == Action::kPage);
  for (const char* none : {"", "/v1/models/", "/v1", "/V1/models", "/health/"})
    CHECK_MESSAGE(!path_of(none), none);
  CHECK(paths_text().find("/v1/responses") != std::string::npos);
}

}  // namespace
}  // namespace ostro::serve
