#include "ostro/lab/steps/halving.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "ostro/chain/canonical.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/local_file_system.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/lab/steps/rung.h"
#include "ostro/models/model_choices.h"

namespace ostro::lab {
namespace {

constexpr const char* kSteps = R"(
lab: a
question: Why?
steps:
  texts: {corpus: {kind: web, documents: 10}}
  words: {tokenizer: {from: $texts, vocab_size: 300}}
  rows: {tokens: {from: $texts, held_out: $texts, tokenizer: $words}}
  base:
    sweep: {rate: [0.6, 0.5, 0.4, 0.3, 0.2, 0.1]}
    halving: {keep: 1/3, at: [4, 8]}
    train: {data: $rows, config: c.yaml, set: {optimizer.learning_rate: $rate}}
  score: {eval: {of: $base}}
  law: {fit: {of: [$score]}}
  cool: {fork: {of: $base, at: 4}}
)";
// The members differ in tokenizer and held-out texts, too.
constexpr const char* kStepsOfMoreData = R"(
lab: a
question: Why?
steps:
  texts: {corpus: {kind: web, documents: 10}}
  held: {sweep: {n: [10, 20]}, corpus: {kind: web, documents: $n}}
  words: {sweep: {v: [300, 400]}, tokenizer: {from: $texts, vocab_size: $v}}
  rows: {tokens: {from: $texts, held_out: $held, tokenizer: $words}}
  base:
    sweep: {rate: [0.6, 0.5]}
    halving: {keep: 1/3, at: [4]}
    train: {data: $rows, config: c.yaml, set: {optimizer.learning_rate: $rate}}
)";

// Of kSteps: six members in this order, of which two go on behind step 4, and one behind step 8.
Plan halved_plan(const char* text = kSteps) {
  const auto path =
      std::filesystem::temp_directory_path() / ("ostro_lab_halving_test_" + std::to_string(::getpid()));
  std::ofstream(path) << text;
  auto plan = read_plan(io::local_file_system(), path.string());
  std::filesystem::remove(path);
  REQUIRE_MESSAGE(plan.ok(), (plan.ok() ? "" : plan.error().message()));
  return std::move(*plan);
}

// A plan whose outputs are in memory.
struct Halved {
  Plan plan;
  io::MemoryFileSystem fs;
  NoProgress progress;
  Context context{fs, {}, {}, {}, progress};
  Services services;
  Seeds seeds;
  std::map<std::string, Made> made;

  explicit Halved(const char* text = kSteps) : plan(halved_plan(text)) {
    for (const Step& step : plan.steps)
      if (step.kind->name == "corpus" || step.kind->name == "tokenizer" || step.kind->name == "tokens")
        make(step.name);
  }
  void make(const std::string& step, const std::string& file = "", const std::string& text = "") {
    check_ok(fs.make_dirs("out/" + step));
    if (!file.empty()) check_ok(io::write_file_atomically(fs, "out/" + step + "/" + file, text));
    made[step] = {
        .fingerprint = "f", .content = step + text, .folder = "out/" + step, .files = {}, .pinned = {}};
  }
  void measure(const std::string& at, const std::string& rate, const std::string& loss) {
    make(fmt::format("base-{}[rate={}]", at, rate));
    make(fmt::format("base-{}-eval[rate={}]", at, rate), "evaluation.json",
         fmt::format(R"({{"loss":"{}","step":{},"state":"s","tokens":1}})", loss, at));
  }
  Work work(const std::string& step) const {
    return {context, services, plan, *plan.find(step), made, seeds};
  }
  // Decides a rung; returns the rates that go on, in the order of the plan.
  std::vector<std::string> decide(const std::string& rung) {
    check_ok(fs.make_dirs("out/" + rung));
    const auto content = perform(work(rung), "out/" + rung);
    REQUIRE_MESSAGE(content.ok(), content.error().message());
    made[rung] = {
        .fingerprint = "f", .content = **content, .folder = "out/" + rung, .files = {}, .pinned = {}};
    const auto members = read_rung(fs, "out/" + rung);
    REQUIRE(members.ok());
    std::vector<std::string> kept;
    for (const RungMember& m : *members)
      if (m.kept) kept.push_back(m.run.substr(m.run.find('=') + 1, 3));
    return kept;
  }
  std::string why(const std::string& step, const std::set<std::string>& left = {}) {
    const auto said = left_out(fs, plan, made, left, *plan.find(step));
    REQUIRE_MESSAGE(said.ok(), said.error().message());
    return *said;
  }
};

using Rates = std::vector<std::string>;

TEST_CASE(
    "a rung keeps the lowest losses, of equal ones the first of the plan, and runs that diverged last") {
  const std::string low = chain::hex_float(2.0), high = chain::hex_float(3.0);
  // The evaluations are there in another order than the plan has: who comes first does not matter.
  for (const Rates& arrival :
       {Rates{"0.6", "0.5", "0.4", "0.3", "0.2", "0.1"}, Rates{"0.1", "0.2", "0.3", "0.4", "0.5", "0.6"}}) {
    Halved lab;
    for (const std::string& rate : arrival)
      lab.measure("4", rate,
                  rate == "0.5" || rate == "0.3" || rate == "0.2" ? low
                  : rate == "0.6"                                 ? "nan"
                                                                  : high);
    CHECK(lab.decide("base-4-rung") == Rates{"0.5", "0.3"});
    CHECK(Rates(arrival.begin(), arrival.begin() + 2) != Rates{"0.5", "0.3"});  // by arrival: others
    const auto members = read_rung(lab.fs, "out/base-4-rung");
    REQUIRE(members.ok());
    REQUIRE(members->size() == 6);
    CHECK(members->at(0).place == 6);
    CHECK(members->at(0).loss == "nan");
    CHECK(members->at(4).place == 3);
    CHECK(members->at(4).run == "base-4[rate=0.2]");
  }
}

TEST_CASE("what a rung decides is in the recipe of what stands on it, and says what is left out") {
  Halved lab;
  const Rates all = {"0.6", "0.5", "0.4", "0.3", "0.2", "0.1"};
  for (size_t i = 0; i < all.size(); ++i)
    lab.measure("4", all[i], chain::hex_float(i == 2 ? 1.0 : i == 5 ? 1.5 : 2.0));
  const auto before = recipe(lab.work("base-4-rung"));
  REQUIRE_MESSAGE(before.ok(), before.error().message());
  CHECK(lab.decide("base-4-rung") == Rates{"0.4", "0.1"});
  // The first rung: who goes on, and where the others end.
  const auto end_of = [&](const std::string& step) {
    const auto stopped = stopped_at(lab.fs, lab.plan, lab.made, *lab.plan.find(step));
    REQUIRE(stopped.ok());
    return *stopped ? (*stopped)->step : 0;
  };
  CHECK(end_of("base-4[rate=0.5]") == 0);
  CHECK(end_of("base-8[rate=0.4]") == 0);
  CHECK(end_of("base-8[rate=0.5]") == 4);
  CHECK(lab.why("base-8[rate=0.5]") == "");  // it is what there is of it
  const auto stopped = stopped_at(lab.fs, lab.plan, lab.made, *lab.plan.find("base-8[rate=0.5]"));
  CHECK((*stopped)->why == "at the rung base-4-rung after step 4: place 4 of 6 by held-out loss 2, 2 kept");
  // The second one sees two.
  std::set<std::string> left;
  for (const std::string& rate : all) {
    const std::string run = fmt::format("base-8[rate={}]", rate),
                      eval = fmt::format("base-8-eval[rate={}]", rate);
    lab.make(run);
    if (const std::string why = lab.why(eval); !why.empty()) {
      CHECK(why.starts_with(run + " was stopped at the rung base-4-rung after step 4"));
      left.insert(eval);
    } else {
      lab.measure("8", rate, chain::hex_float(rate == "0.4" ? 1.0 : 0.5));
    }
  }
  CHECK(left.size() == 4);
  CHECK(lab.why("base-8-rung", left) == "");
  CHECK(lab.decide("base-8-rung") == Rates{"0.1"});
  for (const std::string& rate : all) lab.make(fmt::format("base[rate={}]", rate));
  CHECK(end_of("base[rate=0.5]") == 4);
  CHECK(end_of("base[rate=0.4]") == 8);
  CHECK(end_of("base[rate=0.1]") == 0);
  // Steps of what was stopped are left out; those of whole families see the others.
  for (const std::string& rate : all)
    if (rate != "0.1") {
      CHECK(lab.why(fmt::format("score[rate={}]", rate)).find("was stopped at the rung") !=
            std::string::npos);
      CHECK(lab.why(fmt::format("cool[rate={}]", rate)) != "");
      left.insert(fmt::format("score[rate={}]", rate));
    }
  CHECK(lab.why("score[rate=0.1]", left) == "");
  lab.make("score[rate=0.1]");
  CHECK(lab.why("law", left) == "");
  CHECK(members_there(lab.plan, lab.made, *lab.plan.find("law")).size() == 1);
  left.insert("score[rate=0.1]");
  lab.made.erase("score[rate=0.1]");
  CHECK(lab.why("law", left) == "needs score[rate=0.1], which is left out");
  // Another loss, another recipe, whatever it decides.
  lab.measure("4", "0.6", chain::hex_float(2.5));
  CHECK(recipe(lab.work("base-4-rung")).value() != *before);
}

TEST_CASE("a rung where every member diverged chooses nobody: it is an error") {
  Halved lab;
  for (const char* rate : {"0.6", "0.5", "0.4", "0.3", "0.2", "0.1"}) lab.measure("4", rate, "nan");
  check_ok(lab.fs.make_dirs("out/base-4-rung"));
  const auto none = perform(lab.work("base-4-rung"), "out/base-4-rung");
  REQUIRE(!none.ok());
  CHECK(none.error().message().starts_with(
      "none of its 6 members has a finite held-out loss (the one of base-4[rate=0.6] is nan)"));
  lab.measure("4", "0.2", chain::hex_float(9.0));  // control: one is enough
  CHECK(lab.decide("base-4-rung") == Rates{"0.6", "0.2"});
}

TEST_CASE("members whose losses are of other tokens or other texts are not compared") {
  const auto decided = [](const std::string& other_tokenizer, const std::string& other_texts) {
    Halved lab(kStepsOfMoreData);
    for (const Step& step : lab.plan.steps)
      if (step.family == "base-4")
        lab.make(step.name);
      else if (step.family == "base-4-eval")
        lab.make(step.name, "evaluation.json", R"({"loss":"0x1p+1","step":4})");
    lab.made["words[v=300]"].content = "words", lab.made["words[v=400]"].content = other_tokenizer;
    lab.made["held[n=10]"].content = "held", lab.made["held[n=20]"].content = other_texts;
    check_ok(lab.fs.make_dirs("out/base-4-rung"));
    const auto said = perform(lab.work("base-4-rung"), "out/base-4-rung");
    return said.ok() ? std::string() : said.error().message();
  };
  CHECK(decided("words", "held") == "");  // other steps with the same contents
  CHECK(decided("other", "held")
            .find("have the tokens of words[v=300] and words[v=400], which are different "
                  "tokenizers") != std::string::npos);
  CHECK(decided("words", "other").find("have different held-out texts") != std::string::npos);
}

// An output that moves while the version of the kind stays would be served from old journals.
TEST_CASE("the file of a rung of version 1") {
  Halved lab;
  lab.measure("4", "0.6", chain::hex_float(3.0));
  lab.measure("4", "0.3", chain::hex_float(2.5));
  lab.measure("4", "0.1", "inf");
  const Step& rung = *lab.plan.find("base-4-rung");
  CHECK(rung.kind->version == 1);
  CHECK(
      rung_text(lab.fs, lab.plan, lab.made, rung).value() ==
      R"({"keep":"1/3","members":[{"evaluation":"base-4-eval[rate=0.6]","kept":false,"loss":"0x1.8p+1",)"
      R"("place":2,"run":"base-4[rate=0.6]","step":4},{"evaluation":"base-4-eval[rate=0.3]","kept":true,)"
      R"("loss":"0x1.4p+1","place":1,"run":"base-4[rate=0.3]","step":4},{"evaluation":"base-4-eval[rate=0.1]",)"
      R"("kept":false,"loss":"inf","place":3,"run":"base-4[rate=0.1]","step":4}]})"
      "\n");
}

TEST_CASE("where the training began whose output a step has") {
  Halved lab;
  lab.make("base-4[rate=0.1]"), lab.make("base-8[rate=0.1]"), lab.make("base[rate=0.1]");
  const auto behind = [&](const std::string& part, const char* first, const char* second, const char* last) {
    lab.made["base-4[rate=0.1]"].fingerprint = first;
    lab.made["base-8[rate=0.1]"].fingerprint = second;
    lab.made["base[rate=0.1]"].fingerprint = last;
    return began_behind(lab.plan, lab.made, *lab.plan.find(part + "[rate=0.1]"));
  };
  CHECK(behind("base-4", "a", "b", "c") == 0);
  CHECK(behind("base-8", "a", "b", "c") == 4);
  CHECK(behind("base", "a", "b", "c") == 8);
  CHECK(behind("base", "a", "b", "b") == 4);  // stopped at the second rung
  CHECK(behind("base", "a", "a", "a") == 0);  // stopped at the first one
  CHECK(began_behind(lab.plan, lab.made, *lab.plan.find("texts")) == 0);
}

TEST_CASE("how many go on at most is known before anything is done") {
  const Plan plan = halved_plan();
  CHECK(!most_that_go_on(plan, *plan.find("base-4[rate=0.1]")));
  CHECK(most_that_go_on(plan, *plan.find("base-8[rate=0.1]")) == 2);
  CHECK(most_that_go_on(plan, *plan.find("base[rate=0.1]")) == 1);
}

TEST_CASE("a decision that is missing or damaged is an error that names the file") {
  Halved lab;
  check_ok(lab.fs.make_dirs("out/r"));
  CHECK(!read_rung(lab.fs, "out/r").ok());
  for (const char* text : {"", "[]", "{}", R"({"members":[1]})", R"({"members":[{"run":"a"}]})"}) {
    check_ok(io::write_file_atomically(lab.fs, "out/r/rung.json", text));
    const auto read = read_rung(lab.fs, "out/r");
    REQUIRE(!read.ok());
    CHECK(read.error().message() == "out/r/rung.json: is no decision of a rung");
  }
}

}  // namespace
}  // namespace ostro::lab
