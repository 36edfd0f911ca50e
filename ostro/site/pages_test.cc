#include "ostro/site/pages.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <tuple>

#include "ostro/base/sha256.h"
#include "ostro/base/test_size.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/files/path.h"
#include "ostro/site/shell.h"

namespace ostro::site {
namespace {

// A lab with this many runs that are done, and its record.
struct MadeLab {
  lab::Plan plan;
  lab::LabState state;
  Result<lab::Database> record = lab::Database::create(/*measured=*/true);
  io::MemoryFileSystem fs;

  MadeLab(int runs, int64_t steps, const std::string& name = "base") {
    plan.name = "made", plan.question = "Which?";
    plan.steps.reserve(static_cast<size_t>(runs));
    for (int i = 0; i < runs; ++i) {
      lab::Step& step = plan.steps.emplace_back();
      step.name = fmt::format("{}[seed={}]", name, i), step.kind = lab::find_kind("train");
      state.made[step.name].folder = fmt::format("made.lab/out/{}", i);
    }
    for (const lab::Step& step : plan.steps) {
      lab::StepState& s = state.steps.emplace_back();
      s.step = &step, s.action = lab::Action::kSkip, s.reason = "is in the journal";
      const auto put = [&](const char* table, const std::vector<lab::Value>& row) {
        REQUIRE(record->insert(table, row).ok());
      };
      put("runs", {step.name, sha256_hex(step.name), steps, "p", "d", "t", "1", "d"});
      for (int option = 0; option < 100; ++option)
        put("config", {step.name, fmt::format("section.option_{}", option), fmt::format("value {}", option)});
      put("config", {step.name, "trainer.seed", step.name.substr(4)});
      put("evaluations", {"score of " + step.name, step.name, steps, "s", 3.25, 1.5, int64_t{999}});
      for (int64_t s = 1; s <= steps; ++s)
        put("chain", {step.name, s, 4.0 + 1.0 / static_cast<double>(s), int64_t{128}, "h"});
    }
  }
  LabFacts facts(bool measured = false) {
    const auto journal = lab::Journal::open(fs, "made.lab");
    REQUIRE(journal.ok());
    return lab_facts(plan, state, *record, *journal, measured);
  }
};

size_t page_size(const std::string& body) { return Shell{"made", {}}.page("x.html", "x", body).size(); }

}  // namespace

TEST_CASE("the first page of 200 runs, with style sheet and script, is small") {
  const int64_t steps = test_size() == TestSize::kSample ? 200 : 10'000;
  MadeLab made(200, steps);
  const LabFacts facts = made.facts();
  REQUIRE(facts.runs.size() == 200);
  const auto index = index_body(facts);
  REQUIRE(index.ok());
  const size_t rest = style_sheet().size() + site_script().size();
  CHECK(index->find("base[seed=199]") != std::string::npos);
  CHECK(page_size(*index) + rest <= 400'000);
  // Neither are the pages behind it large: their curves have a number of points that no run changes.
  const auto runs = runs_body(facts);
  const auto run = run_body(facts, facts.runs[7]);
  REQUIRE(runs.ok());
  REQUIRE(run.ok());
  CHECK(page_size(*runs) + rest <= 400'000);
  CHECK(page_size(*run) + rest <= 150'000);
  CHECK(runs->find("the first 24 of 200 runs") != std::string::npos);
  MESSAGE(fmt::format("{} steps: first page {} bytes, runs {}, a run {}, style sheet and script {}", steps,
                      page_size(*index), page_size(*runs), page_size(*run), rest));
}

TEST_CASE("columns are the options in which runs differ; the others are said once") {
  MadeLab made(3, 5);
  const auto body = runs_body(made.facts());
  REQUIRE(body.ok());
  const size_t same = body->find("id=\"same\"");
  REQUIRE(same != std::string::npos);
  CHECK(body->find("<th>trainer.seed</th>") < same);
  CHECK(body->find("section.option_42") > same);
}

TEST_CASE("the held-out loss of a run is that of its newest state, whatever the order of evaluations") {
  MadeLab made(1, 5);
  const std::string& run = made.plan.steps[0].name;
  // Of two of the last step the last by name; one of an earlier step comes last.
  for (const auto& [name, step, loss] : {std::tuple{"z early", int64_t{2}, 3.125},
                                         {"y", int64_t{5}, 2.875},
                                         {"x", int64_t{5}, 2.625},
                                         {"zz early", int64_t{1}, 3.375}})
    REQUIRE(
        made.record->insert("evaluations", {std::string(name), run, step, "s", loss, loss / 2, int64_t{9}})
            .ok());
  const auto body = runs_body(made.facts());
  REQUIRE(body.ok());
  const size_t same = body->find("id=\"same\"");
  CHECK(body->find(">2.875<") < same);
  CHECK(body->find(">1.4375<") < same);
  for (const char* other : {">3.25<", ">3.125<", ">2.625<", ">3.375<"})
    CHECK(body->find(other) == std::string::npos);
}

TEST_CASE("names and texts of a lab are texts of its pages, and long ones are cut") {
  const std::string hostile = "</script><img src=x>\"'\xE2\x80\xAE";
  MadeLab made(2, 3, hostile);
  made.plan.question = hostile + std::string(1'000'000, 'x');
  made.state.steps[0].reason = hostile;
  const LabFacts facts = made.facts();
  const auto index = index_body(facts), runs = runs_body(facts), run = run_body(facts, facts.runs[0]),
             diff = diff_body(facts);
  for (const auto* body : {&index, &runs, &run, &diff}) {
    REQUIRE(body->ok());
    CHECK((*body)->find("<img") == std::string::npos);
    CHECK((*body)->find("</script") == std::string::npos);
    CHECK((*body)->size() < 60'000);
  }
  CHECK(index->find("&lt;/script&gt;") != std::string::npos);
  CHECK(index->find("the beginning of 1000025 bytes") != std::string::npos);
  const std::string page = Shell{hostile, {{"x.html", hostile}}}.page("x.html", hostile, "");
  CHECK(page.find("<img") == std::string::npos);
  CHECK(page.find("default-src 'none'") != std::string::npos);
}

TEST_CASE(
    "a run's operations and samples are on its page, the first ones in the graph and the table of steps, "
    "too") {
  const std::string hostile = "</script><img src=x>\xE2\x80\xAE";
  MadeLab made(2, 3);
  LabFacts facts = made.facts();
  const auto before = run_body(facts, facts.runs[0]);
  REQUIRE(before.ok());
  CHECK(before->find("FLOPs") == std::string::npos);
  CHECK(before->find("Samples") == std::string::npos);
  facts.runs[0].flops = 1.25e9;
  facts.runs[0].samples.emplace();
  facts.runs[0].samples->step = 3;
  facts.runs[0].samples->samples = {
      {"", hostile + ".txt", 2, "the beginning", "its end " + hostile, "model says " + hostile}};
  const auto body = run_body(facts, facts.runs[0]), index = index_body(facts);
  REQUIRE(body.ok());
  REQUIRE(index.ok());
  for (const char* part :
       {"1.25e+09 FLOPs", "Samples", "the state after step 3", "the beginning", "its end ", "model says "})
    CHECK_MESSAGE(body->find(part) != std::string::npos, part);
  CHECK(body->find("<img") == std::string::npos);
  CHECK(index->find("<title>base[seed=0]: done, 1.25e+09 FLOPs</title>") != std::string::npos);
  CHECK(index->find("384 tokens, 1.25e+09 FLOPs") != std::string::npos);
  CHECK(index->find("<title>base[seed=1]: done</title>") != std::string::npos);
}

TEST_CASE("paths begin in the plan's folder, and clocks are on measured pages alone") {
  MadeLab made(1, 3);
  made.plan.folder = "/home/anna/lab";
  made.state.steps[0].reason = "see /home/anna/lab/texts, not /x/home/anna/lab/texts";
  REQUIRE(made.record
              ->insert("sessions", {made.plan.steps[0].name, int64_t{1}, "2026-01-01", "2026-01-02",
                                    "finished", int64_t{0}, int64_t{3}, 12.5, "some processor"})
              .ok());
  const auto index = index_body(made.facts());
  CHECK(index->find("see texts, not /x/home/anna/lab/texts") != std::string::npos);
  CHECK(index->find("12.5 s") == std::string::npos);
  CHECK(index_body(made.facts(true))->find("12.5 s") != std::string::npos);
  const LabFacts facts = made.facts(), measured = made.facts(true);
  CHECK(run_body(facts, facts.runs[0])->find("some processor") == std::string::npos);
  CHECK(run_body(measured, measured.runs[0])->find("some processor") != std::string::npos);
}

TEST_CASE(
    "the reason of a step that failed names no folder of this machine, also where the plan's folder is "
    "relative") {
  const std::string here = io::absolute_path(".");
  for (const char* folder : {"", "labs/one"}) {
    CAPTURE(folder);
    MadeLab made(1, 3);
    made.plan.folder = folder;
    made.state.steps[0].action = lab::Action::kFail;
    const std::string whole = *folder == '\0' ? here : here + "/" + folder;
    made.state.steps[0].reason = "cannot read " + whole + "/texts/a.txt: No such file; see " + whole + "/b";
    const auto index = index_body(made.facts());
    REQUIRE(index.ok());
    CHECK_MESSAGE(index->find("cannot read texts/a.txt: No such file; see b") != std::string::npos, *index);
    CHECK(index->find(here) == std::string::npos);
  }
}

TEST_CASE("data of a page are one script of ASCII") {
  BatchSet set;
  set.id = "batches-1", set.components = {{"", "rows", 3, 6, true}};
  set.documents.emplace_back();
  set.documents[0].file = "a\xE2\x80\xAE</script>", set.documents[0].text = "caf\xC3\xA9 \xE2\x80\xA8\xFF";
  for (const std::string& json : {set.json(), set.texts_json()}) {
    const std::string script = data_script(set.id, json);
    for (const char c : script) CHECK(static_cast<unsigned char>(c) < 0x80);
    CHECK(script.starts_with("ostro_data(\"batches-1\", "));
  }
  CHECK(set.texts_json() == "[\"caf\\u00e9 \\u2028\\ufffd\"]");
  set.components[0].shows_texts = false;
  CHECK(set.texts_json() == "[null]");
}

}  // namespace ostro::site
