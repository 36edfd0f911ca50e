#include "ostro/experiment/plan/plan.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ostro/io/files/local_file_system.h"

namespace ostro::lab {
namespace {

// Reads a plan from a file that goes away again.
Result<Plan> plan_of(const std::string& text) {
  const auto path =
      std::filesystem::temp_directory_path() / ("ostro_plan_test_" + std::to_string(::getpid()));
  std::ofstream(path) << text;
  auto plan = read_plan(io::local_file_system(), path.string());
  std::filesystem::remove(path);
  return plan;
}

std::string plan_with(const std::string& steps) { return "lab: a\nquestion: Why?\nsteps:\n" + steps; }

const std::string kSteps = R"(
  score: {eval: {of: $base}}
  base:
    sweep: {rate: [0.1, 2], mix: {one: {data.shuffle: true}, "no": {}}}
    train: {data: $rows, config: c.yaml, set: $mix}
  rows: {tokens: {from: $texts, held_out: $texts, tokenizer: $words}}
  words: {tokenizer: {from: $texts, vocab_size: 300}}
  texts: {source: {files: [a, b/*.txt], licence: MIT}}
)";

std::vector<std::string> names_of(const Plan& plan) {
  std::vector<std::string> names;
  for (const Step& step : plan.steps) names.push_back(step.name);
  return names;
}

TEST_CASE("a sweep makes a step for each choice, and so do the steps behind it; inputs come first") {
  std::string with_rate = kSteps;
  with_rate.replace(with_rate.find("c.yaml"), 6, "$rate ");
  CHECK_FALSE(plan_of(plan_with(with_rate)).ok());  // a number is no text
  const auto plan = plan_of(plan_with(kSteps));
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  CHECK(names_of(*plan) ==
        std::vector<std::string>{"texts", "words", "rows", "base[mix=one,rate=0.1]", "base[mix=no,rate=0.1]",
                                 "base[mix=one,rate=2]", "base[mix=no,rate=2]", "score[mix=one,rate=0.1]",
                                 "score[mix=no,rate=0.1]", "score[mix=one,rate=2]", "score[mix=no,rate=2]"});
  const Step& base = *plan->find("base[mix=one,rate=2]");
  CHECK(base.inputs.at("data") == "rows");
  CHECK(config::flow_text(*base.parameters.find("set")) == "{data.shuffle: true}");
  CHECK(plan->find("score[mix=no,rate=2]")->inputs.at("of") == "base[mix=no,rate=2]");
  CHECK(config::flow_text(*plan->find("words")->parameters.find("pattern")) == "llama3");
  CHECK(plan->find("base") == nullptr);
}

TEST_CASE("inputs that were made with one variable go together where it has one value") {
  const auto plan = plan_of(plan_with(R"(
  texts: {source: {files: [a], licence: MIT}}
  words: {sweep: {size: [300, 400]}, tokenizer: {from: $texts, vocab_size: $size}}
  rows: {tokens: {from: $texts, held_out: $texts, tokenizer: $words}}
  base: {train: {data: $rows, config: c.yaml}}
)"));
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  CHECK(plan->steps.size() == 7);
  CHECK(plan->find("base[size=400]")->inputs.at("data") == "rows[size=400]");
}

TEST_CASE("a program's words can be numbers and choices of a sweep; what it makes takes a source's place") {
  const auto plan = plan_of(plan_with(R"(
  texts: {source: {files: [a], licence: MIT}}
  some: {sweep: {n: [5, 0.50]}, run: {program: [x, $n, 7], inputs: {t: $texts}, outputs: [o.txt]}}
  words: {tokenizer: {from: $some, vocab_size: 300}}
)"));
  REQUIRE_MESSAGE(plan.ok(), plan.error().message());
  const Step& some = *plan->find("some[n=5]");
  CHECK(config::flow_text(*some.parameters.find("program")) == "[x, \"5\", \"7\"]");
  CHECK(some.inputs.at("t") == "texts");
  CHECK(plan->find("words[n=0.50]")->inputs.at("from") == "some[n=0.50]");
}

TEST_CASE("the canonical plan depends on what steps are, not on comments and order") {
  std::string other = "# a comment\n" + plan_with(kSteps);
  const size_t at = other.find("{files: [a, b/*.txt], licence: MIT}");
  other.replace(at, 35, "{licence: MIT, files: [a, b/*.txt]}");
  CHECK(canonical_plan(*plan_of(other)) == canonical_plan(*plan_of(plan_with(kSteps))));
  std::string changed = plan_with(kSteps);
  changed.replace(changed.find("300"), 3, "301");
  CHECK(canonical_plan(*plan_of(changed)) != canonical_plan(*plan_of(plan_with(kSteps))));
}

TEST_CASE("numbers are what a configuration takes for numbers, and equal ones have one text") {
  const auto of = [](const std::string& value) {
    std::string steps = kSteps;
    steps.replace(steps.find("data.shuffle: true"), 18, "trainer.seed: " + value);
    return plan_of(plan_with(steps));
  };
  const auto text = [&](const std::string& value) {
    const auto plan = of(value);
    REQUIRE_MESSAGE(plan.ok(), plan.error().message());
    return config::flow_text(*plan->find("base[mix=one,rate=2]")->parameters.find("set"));
  };
  CHECK(text(".5") == text("0.5"));
  CHECK(text("+5") == "{trainer.seed: 5}");
  CHECK(text("007") == "{trainer.seed: 7}");
  CHECK(text("True") == "{trainer.seed: true}");
  CHECK(text("1.") == "{trainer.seed: 1.0}");
  for (const char* wrong : {"1e400", "99999999999999999999"}) {
    const auto plan = of(wrong);
    REQUIRE_FALSE(plan.ok());
    CHECK_MESSAGE(plan.error().message().find("set.trainer.seed") != std::string::npos,
                  plan.error().message());
  }
}

TEST_CASE("a price is read, and is no part of the plan that is kept") {
  const auto without = plan_of(plan_with(kSteps));
  const auto with = plan_of(plan_with(kSteps) + "price: {machine_hour: 2.5, currency: EUR}\n");
  REQUIRE(without.ok());
  REQUIRE_MESSAGE(with.ok(), with.error().message());
  CHECK_FALSE(without->price.has_value());
  CHECK(canonical_plan(*with) == canonical_plan(*without));
  CHECK(with->price->text(5400) == "3.75 EUR");
  CHECK(plan_of(plan_with(kSteps) + "price: {machine_hour: 0}\n")->price->text(5400) == "0.00");
  for (const char* price :
       {"3", "{machine_hour: x}", "{currency: EUR}", "{machine_hour: -1}", "{machine_hour: .inf}",
        "{machine_hour: 1, currency: \"<b>\"}", "{machine_hour: 1, curency: EUR}"})
    CHECK_MESSAGE(!plan_of(plan_with(kSteps) + "price: " + price + "\n").ok(), price);
}

TEST_CASE("a figure is a SELECT, or a map that says how it is drawn") {
  const auto with = [](const std::string& figures) {
    return plan_of(plan_with(kSteps) + "figures: " + figures);
  };
  const auto plain = with("{f: SELECT 1}"), map = with("{f: {query: SELECT 1}}"),
             bars = with("{f: {query: SELECT 1, draw: bars, facets: true}}");
  REQUIRE_MESSAGE(bars.ok(), bars.error().message());
  CHECK(bars->figures[0].form == FigureForm{FigureMarks::kBars, true});
  CHECK(bars->figures[0].sql == "SELECT 1");
  CHECK(map->figures[0].form == FigureForm());
  CHECK(canonical_plan(*plain) == canonical_plan(*map));
  CHECK(canonical_plan(*plain) != canonical_plan(*bars));
  CHECK(canonical_plan(*plain).find(R"("figures":{"f":"SELECT 1"})") != std::string::npos);
  const auto error = [&](const std::string& figures) { return with(figures).error().message(); };
  CHECK(error("{f: {query: SELECT 1, draw: pie}}")
            .find("figures.f.draw: \"pie\": use lines, points, bands or bars") != std::string::npos);
  CHECK(error("{f: {draw: bars}}").find("figures.f.query: expected a SELECT") != std::string::npos);
  CHECK(error("{f: {query: SELECT 1, facets: 3}}").find("figures.f.facets: expected true or false") !=
        std::string::npos);
  CHECK(error("{f: {query: SELECT 1, drow: bars}}").find("draw") != std::string::npos);
  CHECK_FALSE(plan_of(plan_with(kSteps) + "tables: {f: {query: SELECT 1}}").ok());
}

TEST_CASE("a sweep that is too large is an error before it is made") {
  std::string hundred = "[0";
  for (int i = 1; i < 100; ++i) hundred += ", " + std::to_string(i);
  hundred += "]";
  std::string steps = kSteps;
  steps.replace(steps.find("rate: [0.1, 2]"), 14,
                "a: " + hundred + ", b: " + hundred + ", c: " + hundred + ", d: " + hundred);
  const auto plan = plan_of(plan_with(steps));
  REQUIRE_FALSE(plan.ok());
  CHECK(plan.error().message().find("more than 10000 steps") != std::string::npos);
}

TEST_CASE("values of a sweep that hold each other are limited in all") {
  const auto plan_of_depth = [](int depth) {
    std::string sweep;
    for (int i = 0; i < depth; ++i) {
      sweep += fmt::format("v{}: {{x: [", i);
      for (int k = 0; k < 10; ++k) sweep += fmt::format("{}$v{}", k == 0 ? "" : ", ", i + 1);
      sweep += "]}, ";
    }
    std::string steps = kSteps;
    steps.replace(steps.find("rate: [0.1, 2]"), 14,
                  sweep + fmt::format("v{}: {{x: 1}}, rate: [0.1, 2]", depth));
    steps.replace(steps.find("data.shuffle: true"), 18, "trainer.seed: $v0");
    return plan_of(plan_with(steps));
  };
  const auto few = plan_of_depth(3);
  CHECK_MESSAGE(few.ok(), (few.ok() ? "" : few.error().message()));
  const auto many = plan_of_depth(6);
  REQUIRE_FALSE(many.ok());
  CHECK(many.error().message().find("are more than 100000 values") != std::string::npos);
}

TEST_CASE("every mistake is an error with its line and the nearest name") {
  const auto error_of = [](const std::string& steps) {
    const auto plan = plan_of(plan_with(steps));
    REQUIRE_FALSE(plan.ok());
    return plan.error().message();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(error_of("  a: {sorce: {}}\n"), ":4: step a: unknown key \"sorce\"; the nearest is \"source\"");
  has(error_of("  a: {source: {file: [a], licence: MIT}}\n"),
      ":4: step a: source: unknown key \"file\"; the nearest is \"files\"");
  has(error_of("  a: {source: {files: [a], licence: MIT}, eval: {of: $a}}\n"), "a step has one kind");
  has(error_of("  a: {}\n"), "has no kind");
  has(error_of("  a: {source: {files: [a], licence: MIT}}\n  a: {source: {files: [a], licence: MIT}}\n"),
      "twice");
  has(error_of("  a: {eval: {of: $b}}\n  b:\n    train: {config: c, data: $r, set: {x.y: 1, z: 2,\n      "
               "x.y: 3}}\n"),
      "x.y is there twice; the first is at ");
  has(error_of("  b:\n    sweep: {s: [1, 2],\n      s: [3]}\n    eval: {of: $b}\n"),
      ":6: s is there twice; the first is at ");
  has(error_of("  b:\n    sweep: {s: {one: {x: 1}, one: {x: 2}}}\n    eval: {of: $b}\n"),
      "one is there twice");
  has(error_of("  a b: {source: {files: [a], licence: MIT}}\n"), "is no name");
  has(error_of("  a: {source: {files: a, licence: MIT}}\n"), "expected a list of texts");
  has(error_of("  a: {tokenizer: {from: $b, vocab_size: 300}}\n"), "no step is called \"b\"");
  has(error_of("  a: {tokenizer: {from: b, vocab_size: 300}}\n"), "as $NAME");
  // A cycle is a step of the wrong kind somewhere.
  has(error_of("  a: {tokenizer: {from: $b, vocab_size: 300}}\n  b: {eval: {of: $a}}\n"),
      "is not of kind source");
  has(error_of("  a: {sweep: {x: [1]}, source: {files: [a], licence: MIT}}\n"), "has no sweep");
  has(error_of("  a: {sweep: {x: [\"b c\"]}, eval: {of: $a}}\n"), "cannot name a choice");
  const std::string texts = "  t: {source: {files: [a], licence: MIT}}\n";
  has(error_of(texts + "  f: {filter: {from: $t, letters: [0.5, 0.2]}}\n"),
      ":5: step f: letters: no number is from 0.5 to 0.2");
  CHECK(
      plan_of(plan_with(texts + "  f: {filter: {from: $t, letters: [0.2, 0.2], words: [null, 5]}}\n")).ok());
  const std::string run = ", outputs: [o]}}\n";
  has(error_of("  a: {run: {program: [x], inputs: {i: $b}" + run +
               "  b: {run: {program: [x], inputs: {i: $c}" + run +
               "  c: {run: {program: [x], inputs: {i: $b}" + run),
      ":5: steps need each other in a circle: b needs c needs b");
  has(error_of("  a: {run: {program: [x], inputs: {i: b}" + run), "i: expected a step, as $NAME");
  has(error_of("  a: {run: {program: [x], inputs: [b]" + run), "inputs: expected a map from names");
  has(error_of("  a: {run: {program: [], inputs: {}" + run), "at least one text");
  has(error_of("  a: {run: {program: [x]}}\n"), "run.outputs is missing");
  has(error_of("  a: {run: {program: [x]" + run + "  b: {eval: {of: $a}}\n"), "a is not of kind train");
  CHECK_FALSE(plan_of("lab: a\nsteps: {}\n").ok());
  CHECK_FALSE(plan_of("just a text").ok());
}

TEST_CASE(
    "a plan says where the report and the pages go, below its folder, and that is no part of what it is") {
  const auto plan_of_keys = [](const std::string& keys) { return plan_of(plan_with(kSteps) + keys); };
  const auto plain = plan_of_keys("report: a.typ\n");
  const auto made = plan_of_keys("report: {paper: a.typ, out: r/}\nsite: {}\n");
  REQUIRE_MESSAGE((plain.ok() && made.ok()), made.error().message());
  CHECK((plain->report == "a.typ" && !plain->makes.report && !plain->makes.site));
  CHECK(plain->report_folder() == plain->folder + "/a.lab/report");
  CHECK((made->report == "a.typ" && made->makes.report == "r" && made->makes.site == ""));
  CHECK(made->report_folder() == made->folder + "/r");
  CHECK(made->site_folder() == made->folder + "/a.lab/site");
  CHECK(canonical_plan(*made) == canonical_plan(*plain));
  const auto bare = plan_of_keys("report: {}\n");  // figures and tables, without a text
  REQUIRE(bare.ok());
  CHECK((bare->report.empty() && bare->makes.report == ""));
  Plan small = *made;
  small.sanity = true;
  CHECK(small.report_folder() == small.folder + "/a.sanity.lab/report");
  const auto error = [&](const std::string& keys, const std::string& wanted) {
    const auto plan = plan_of_keys(keys);
    REQUIRE_FALSE(plan.ok());
    CHECK_MESSAGE(plan.error().message().find(wanted) != std::string::npos, plan.error().message());
  };
  for (const char* folder : {"/tmp/x", "../x", "a/../../x", "s3://bucket/x", ".", "[a]"})
    error(fmt::format("site: {{out: {}}}\n", folder), "site.out: expected a folder below that of the plan");
  error("report: {paper: [a]}\n", "report: expected a file, or a map");
  error("report: {papr: a.typ}\n", "unknown key \"papr\"; the nearest is \"paper\"");
  error("report: [a]\n", "report: expected a file, or a map");
  error("site: out\n", "site: expected a map");
  error("report: {paper: a.typ, out: r}\nsite: {out: ./r}\n", "site.out: is the folder of the report");
  error("report: {paper: a.typ, out: r}\nsite: {out: r/pages}\n", "lie in each other");
  error("site: {out: a.lab/report}\n", "site.out: is the folder of the report");
  for (const char* folder : {"a.lab", "a.lab/out", "a.sanity.lab/x"})
    error(fmt::format("report: {{out: {}}}\n", folder), "the folder of the lab");
  for (const char* folder : {"a", "a/x", "b", "b/x"})
    error(fmt::format("site: {{out: {}}}\n", folder), "meets the files of the source texts");
  CHECK(plan_of_keys("report: {out: a.lab/report}\nsite: {out: a.lab/site}\n").ok());
}

}  // namespace
}  // namespace ostro::lab
