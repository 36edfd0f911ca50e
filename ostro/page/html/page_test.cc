#include "ostro/page/html/page.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ostro/base/sha256.h"
#include "ostro/page/html/chart.h"

namespace ostro::page {
namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string digest(int64_t i) { return sha256_hex(std::to_string(i)); }

// A run of so many steps, and of as many sessions, checkpoints, components and amends as `many` says.
RunView run_of(int64_t steps, int64_t many) {
  RunView view;
  const std::string config = R"({"optimizer":{"learning_rate":"0x1p-10"},"trainer":{"num_train_steps":)" +
                             std::to_string(steps) + "}}";
  view.chain.links.push_back(
      {chain::GenesisEntry{"1", digest(1), config, digest(2), digest(3), {}}, digest(4)});
  view.config_now = config;
  if (steps > 0) view.chain.links.push_back({chain::StepEntry{steps, 2.5, 64, "ab", "cd", "ef"}, digest(5)});
  view.record.emplace();
  for (int64_t i = 0; i < many; ++i) {
    view.record->sessions.push_back({{"--config", "a.yaml"},
                                     "/home",
                                     "c0ffee",
                                     digest(i),
                                     "gcc 12",
                                     "a processor",
                                     "2026-11-21T10:00:00Z",
                                     "2026-11-21T10:01:30Z",
                                     "finished",
                                     0,
                                     steps});
    view.checkpoints.push_back({i, digest(i), digest(i), ""});
  }
  view.history.last_step = steps;
  view.history.tokens = 64.0 * static_cast<double>(steps);
  view.history.has_metrics = true;
  view.facts.emplace();
  for (int64_t i = 0; i < many; ++i) {
    view.facts->data.push_back({"web" + std::to_string(i), {10, 1000, 4000}, {1, 100, 400}});
    view.history.metrics.try_emplace("eval/web" + std::to_string(i) + "/loss", kPageBins / 4);
    view.history.metrics.try_emplace("eval/web" + std::to_string(i) + "/bits_per_byte", kPageBins / 4);
  }
  for (const char* name :
       {"train/loss", "train/grad_norm", "train/learning_rate", "memory/resident_bytes",
        "throughput/tokens_per_second", "throughput/step_seconds", "eval/loss", "eval/bits_per_byte"})
    view.history.metrics.try_emplace(name, kPageBins);
  view.history.step_tokens = Bins(kPageBins);
  for (int64_t step = 1; step <= steps; ++step) view.history.step_tokens.add(step, 64);
  view.outcomes.assign(static_cast<size_t>(many), "finished");
  for (auto& [name, bins] : view.history.metrics)
    for (int64_t step = 1; step <= steps; ++step)
      bins.add(step, 2 + 1e5 * std::abs(std::sin(static_cast<double>(step * 7919))));
  return view;
}

TEST_CASE("a page says what the run is") {
  const std::string page = page_html(run_of(100, 1));
  for (const int64_t hash : {1, 2, 3, 5}) CHECK(holds(page, digest(hash)));
  for (const char* part : {">finished<", "num_train_steps: 100", "learning_rate: 0.0009765625", "a processor",
                           "c0ffee", "ostro train --config a.yaml", "1:30", "<h2 id=\"data\">Data</h2>",
                           "<a href=\"#data\">Data</a>", "Gradient norm"})
    CHECK_MESSAGE(holds(page, part), part);
  CHECK(page == page_html(run_of(100, 1)));
}

TEST_CASE("a page of a long run is no larger than its bound") {
  CHECK(page_html(run_of(100, 1)).size() < 100'000);
  const std::string page = page_html(run_of(30'000, 200));
  CHECK_MESSAGE(page.size() < 400'000, page.size());
  CHECK(holds(page, "and 170 earlier sessions"));
  CHECK(holds(page, "and 170 earlier checkpoints"));
  CHECK(holds(page, "and 170 more"));
  CHECK(holds(page, "A point is the mean of up to 128 steps"));
}

TEST_CASE("long texts are cut") {
  RunView view = run_of(10, 1);
  view.facts->samples.push_back({"", std::string(5000, 'f'), 1, std::string(50'000, 'p'),
                                 std::string(50'000, 't'), std::string(50'000, 'm')});
  view.config_yaml = std::string(1'000'000, 'y');
  view.record->sessions[0].argv.assign(10'000, "--word");
  view.outcomes[0] = std::string(500'000, 'o');
  const std::string page = page_html(view);
  CHECK_MESSAGE(page.size() < 200'000, page.size());
  CHECK(holds(page, "(984,000 more bytes)"));
}

TEST_CASE("samples of a damaged file do not fill the page") {
  RunView view = run_of(10, 1);
  view.facts->samples.assign(1000, {"", "file", 1, "prompt", "text", "model"});
  CHECK(count(page_html(view), "class=\"sample\"") == 30);
}

TEST_CASE("whatever stands in texts and names is text") {
  const std::string evil = "</pre></script><script>alert(1)</script>\"'\x01\xFF";
  RunView view = run_of(10, 1);
  view.facts->samples.push_back({evil, evil, 1, evil, evil, evil});
  view.facts->data[0].name = evil;
  view.config_yaml = evil;
  view.config.emplace();
  view.config->trainer.id = evil;
  view.config->data.train_urls = {evil};
  chain::Session& session = view.record->sessions[0];
  session.argv = {evil};
  session.cpu = session.compiler = session.source_commit = session.started = view.outcomes[0] = evil;
  view.checkpoints.push_back({10, "", "", evil});
  view.history.metrics.try_emplace("eval/" + evil + "/loss", kPageBins).first->second.add(1, 2);
  const std::string page = page_html(view);
  CHECK(count(page, "<script") == 1);
  CHECK(count(page, "</script") == 1);
  CHECK(count(page, "alert(1)") == 21);
  CHECK(page.find_first_of(std::string("\x01\xFF")) == std::string::npos);
}

TEST_CASE("a run without steps, without record, without metrics") {
  RunView view = run_of(0, 0);
  CHECK(holds(page_html(view), "No step was done yet."));
  view.record.reset();
  view.record_error = "run.json: damaged";
  CHECK(holds(page_html(view), "record damaged"));
  CHECK(holds(page_html(view), "The record cannot be read: run.json: damaged"));
  RunView bare = run_of(5, 0);
  bare.facts.reset();
  bare.history.has_metrics = false;
  CHECK(holds(page_html(bare), "There is no metrics.jsonl"));
  CHECK(!holds(page_html(bare), ">Data</h2>"));
  bare.metrics_error = "metrics.jsonl: a damaged disk";
  CHECK(holds(page_html(bare), "taken from the chain: metrics.jsonl: a damaged disk"));
  CHECK(!holds(page_html(bare), "There is no metrics.jsonl"));
}

TEST_CASE("a checkpoint that the chain does not have is not shown as if it did") {
  RunView view = run_of(10, 0);
  view.checkpoints = {{2, digest(7), digest(7), ""}, {4, digest(8), digest(9), ""}, {6, digest(10), "", ""}};
  const std::string page = page_html(view);
  CHECK(holds(page, "1 of 3 has the hash that the chain has for its step."));
  CHECK(holds(page, "the chain has another hash: " + digest(9)));
  CHECK(holds(page, "not in the chain: saved by the clock or a signal"));
}

TEST_CASE("a page leads with the result, what it is compared with, and how to check it") {
  RunView view = run_of(100, 1);
  view.facts->data[0].unigram = Unigram{6.99, 4.2};
  view.config.emplace();
  view.config->trainer.log_dir = "my runs";
  view.config->trainer.id = "it's";
  const std::string page = page_html(view);
  CHECK(holds(page, "<b>Held-out loss "));
  CHECK(holds(page, "costs 6.9900 nats (4.2000 bits per byte)"));
  CHECK(holds(page, "<code class=\"command\">ostro verify &#39;my runs/it&#39;\\&#39;&#39;s&#39;</code>"));
  CHECK(holds(page, "data-level=\"6.9"));
  CHECK(page.find("Held-out loss ") < page.find("class=\"tiles\""));
  view.history.metrics.erase("eval/loss");
  CHECK(holds(page_html(view), "<b>Training loss "));
}

TEST_CASE(
    "a session without an end was killed when another one follows, and steps that were resumed are marked") {
  RunView view = run_of(100, 3);
  view.record->sessions[0].ended = "";
  view.record->sessions[1].from_step = 40;
  view.record->sessions[2].from_step = 40;
  view.outcomes = {"killed", "finished", "running"};
  std::string page = page_html(view);
  CHECK(count(page, "<td>killed</td>") == 1);
  CHECK(holds(page, ">running, after step 100<"));
  CHECK(holds(page, "data-after=\"40\""));
  view.outcomes[2] = "killed";
  page = page_html(view);
  CHECK(count(page, "<td>killed</td>") == 2);
  CHECK(!holds(page, "running"));
}

TEST_CASE("other axes: tokens and time that had come together at a step") {
  const std::string page = page_html(run_of(100, 1));
  CHECK(holds(page, "&quot;tokens&quot;:[[0,0],[1,64],[2,128]"));
  CHECK(holds(page, "[100,6400]]"));
  CHECK(holds(page, "&quot;seconds&quot;:"));
  Bins gap(10);
  gap.add(1, 2);
  gap.add(3, 2);
  CHECK(sums_by_step(gap, 1, 3).empty());
  gap.add(2, 2);
  REQUIRE(sums_by_step(gap, 1, 3).size() == 4);
  CHECK(sums_by_step(gap, 1, 3)[3].amount == 6);
}

TEST_CASE("ten runs over each other: a curve and a colour for each, and what their options differ in") {
  std::vector<RunView> runs;
  std::vector<std::string> names;
  for (int64_t i = 0; i < 10; ++i) {
    runs.push_back(run_of(300, i % 2));
    runs.back().config_now =
        R"({"optimizer":{"learning_rate":"0x1p-)" + std::to_string(i) + R"("},"same":1})";
    names.push_back("run <" + std::to_string(i) + ">");
  }
  const std::string page = comparison_html(runs, names);
  CHECK(holds(page, "<th>optimizer.learning_rate</th>"));
  CHECK(!holds(page, "<th>same</th>"));
  CHECK(holds(page, "class=\"line c1 again\" data-name=\"train/loss\" data-curve=\"9\" data-run=\"9\""));
  CHECK(count(page, "run &lt;9&gt;</button>") == 7);
  CHECK(!holds(page, "run <"));
  CHECK(page.size() < 2'000'000);
  CHECK(holds(comparison_html(std::vector<RunView>(2, run_of(3, 1)), std::vector<std::string>{"a", "b"}),
              "The configurations are equal"));
}

TEST_CASE("a live page may ask its server; a file asks nothing") {
  const RunView view = run_of(10, 1);
  CHECK(holds(page_html(view, PageKind::kLive), "connect-src"));
  CHECK(holds(page_html(view, PageKind::kLive), "\" data-live>"));
  CHECK(!holds(page_html(view), "connect-src"));
  CHECK(!holds(page_html(view), "\" data-live>"));
}

TEST_CASE("a band is within the chart, but for a spike among hundreds of points") {
  std::vector<double> means(300, 5), leasts(300, 4), mosts(300, 6);
  means[0] = 8;
  mosts[0] = 1000;
  const Range range = range_with_bands(means, leasts, mosts);
  CHECK((range.low < 4 && range.high > 8 && range.high < 9));
  CHECK(range_with_bands({5}, {2}, {9}).high > 9);
  CHECK(range_with_bands({5, 6}, {}, {}).high < 7);
}

TEST_CASE("values of memory and shares are written as such") {
  using Texts = std::vector<std::string>;
  CHECK(tick_texts({0, 5e7, 1e8}, Format::kBytes) == Texts{"0", "50 MB", "100 MB"});
  CHECK(tick_texts({0, 500}, Format::kBytes) == Texts{"0", "500 B"});
  CHECK(tick_texts({0.2, 0.4}, Format::kPercent) == Texts{"20 %", "40 %"});
}

TEST_CASE("a chart's path goes through its values") {
  Bins bins(10), single(10);
  bins.add(1, 4);
  bins.add(3, 2);
  const std::string chart = chart_html({"Loss", "nats", {{"train/loss", &bins, false}}, 1, 3});
  CHECK(holds(chart, "data-steps=\"0.5 3.5\" data-values=\"1.9199999999999999 4.0800000000000001\""));
  CHECK(holds(chart, "data-points=\"[[1,1,4],[3,3,2]]\" d=\"M166.67 37.04L833.33 962.96\""));
  single.add(2, 1);
  const std::string dot = chart_html({"Loss", "", {{"eval/loss", &single, true}}, 1, 3});
  CHECK(count(dot, "h0\"") == 1);
  CHECK(count(dot, "data-points") == 1);
  CHECK(chart_html({"Loss", "", {}, 1, 3}).empty());
  CHECK(chart_html({"Loss", "", {{"train/loss", &bins, false}}, 4, 9}).empty());
}

}  // namespace
}  // namespace ostro::page
