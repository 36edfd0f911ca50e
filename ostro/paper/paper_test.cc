#include "ostro/paper/paper.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "ostro/io/files/memory_file_system.h"
#include "ostro/io/files/path.h"
#include "ostro/paper/answers.h"
#include "ostro/paper/differences.h"
#include "ostro/paper/latex.h"
#include "ostro/paper/prelude.h"
#include "ostro/paper/sources.h"
#include "ostro/paper/typst.h"

namespace ostro::paper {
namespace {

lab::Database losses(double last) {
  auto record = lab::Database::create(/*measured=*/false);
  REQUIRE(record.ok());
  for (int64_t step = 1; step <= 3; ++step)
    REQUIRE(record
                ->insert("chain",
                         {std::string("base"), step, step == 3 ? last : 2.5, int64_t{64}, std::string("h")})
                .ok());
  return std::move(*record);
}

lab::Quoted quoted(const std::string& name, const lab::Value& value) {
  return {{name, "SELECT 1", ""}, value, lab::NumberClass::kRecorded};
}

TEST_CASE("a value is rounded from its exact digits") {
  CHECK(rounded_texts(2.675).at(2) == "2.67");  // the double is below 2.675
  CHECK(rounded_texts(-0.5).at(0) == "-0");
  CHECK(rounded_texts(1.0).size() == kMostDigits + 1);
  CHECK(rounded_texts(int64_t{3}).empty());
  CHECK(rounded_texts(HUGE_VAL).empty());
}

TEST_CASE("a table's hash is that of its rows, and an altered loss moves it") {
  const auto hash = table_hash(losses(1.5), "chain");
  REQUIRE(hash.ok());
  CHECK(*hash == *table_hash(losses(1.5), "chain"));
  CHECK(*hash != *table_hash(losses(std::nextafter(1.5, 2.0)), "chain"));
  CHECK(*table_hash(losses(1.5), "runs") ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("differences are named by value, and by table, row and column") {
  const std::string wanted = R"({"values":{"best":{"value":"1.4"},"n":{"value":"2"}}})";
  CHECK(value_differences(wanted, wanted).empty());
  const auto lines = value_differences(R"({"values":{"best":{"value":"1.5"}},"more":1})", wanted);
  CHECK(lines == std::vector<std::string>{"values.best.value: is 1.5, not 1.4", "values.n: is missing",
                                          "more: is no part of it"});
  CHECK(value_differences("{", wanted) == std::vector<std::string>{"is no JSON"});
  const std::string record = *losses(1.5).bytes();
  CHECK(record_differences(record, record)->empty());
  CHECK(*record_differences(*losses(1.25).bytes(), record) ==
        std::vector<std::string>{"chain: row 3: loss is 1.25, not 1.5"});
  CHECK(record_differences("no database", record)->size() == 1);
  CHECK(record_differences("", record)->size() > 0);
  std::string cut = record;
  cut.resize(cut.size() / 2);
  CHECK(record_differences(cut, record)->size() > 0);
}

TEST_CASE("names of LaTeX have letters alone, and no two are one") {
  lab::Values values;
  values.values = {quoted("best_2", 0.125), quoted("rate", std::string("5% & a_b"))};
  values.verdicts = {quoted("helps", std::string("supported"))};
  values.tables.push_back({{"t", "", ""}, {{"a", "b"}, {{std::string("x_y"), int64_t{3}}}}});
  const auto text = latex_macros(values);
  REQUIRE_MESSAGE(text.ok(), text.error().message());
  for (const char* line :
       {"\\newcommand{\\ostrobesttwo}{0.125}\n", "\\newcommand{\\ostrobesttwodigitstwo}{0.12}\n",
        "\\newcommand{\\ostrorate}{5\\% \\& a\\_b}\n", "\\newcommand{\\ostroverdicthelps}{supported}\n",
        "\\newcommand{\\ostrotablet}{\\begin{tabular}{ll}\n\\hline\na & b \\\\\n\\hline\nx\\_y & 3 \\\\\n"})
    CHECK_MESSAGE(text->find(line) != std::string::npos, line, " is not in ", *text);
  values.values.push_back(quoted("best2", int64_t{1}));
  const auto twice = latex_macros(values);
  REQUIRE_FALSE(twice.ok());
  CHECK(twice.error().message() ==
        "--latex: queries.best_2 and queries.best2 would both be \\ostrobesttwo; give one of them another "
        "name");
}

TEST_CASE("a paper has the files that it names, and none outside of its folder") {
  io::MemoryFileSystem fs;
  const auto write = [&](const std::string& path, const std::string& text) {
    REQUIRE(fs.make_dirs(io::parent_path(path)).ok());
    REQUIRE(fs.write_file(path, text).ok());
  };
  write("/lab/p/paper.typ",
        "#import \"ostro.typ\": *\n#include \"parts/a.typ\" 5\" wide #image(\"/logo.svg\") \"../out\"");
  write("/lab/p/parts/a.typ", "#image(\"../b.png\") #image(\"none.png\")");
  for (const char* name : {"p/logo.svg", "p/b.png", "out", "p/ostro.typ", "p/unnamed.svg"})
    write(fmt::format("/lab/{}", name), "x");
  const auto found = gather_sources(fs, "/lab/p", "paper.typ", {"ostro.typ", "report.typ"});
  REQUIRE_MESSAGE(found.ok(), found.error().message());
  std::vector<std::string> names;
  for (const lab::ReportFile& file : *found) names.push_back(file.name);
  CHECK(names == std::vector<std::string>{"paper.typ", "parts/a.typ", "logo.svg", "b.png"});
  const auto taken = gather_sources(fs, "/lab/p", "report.typ", {"report.typ"});
  REQUIRE_FALSE(taken.ok());
  CHECK(taken.error().message().find("give the paper another one") != std::string::npos);
}

TEST_CASE("an error of Typst names the author's line") {
  const std::string diagnostic =
      "error: panicked with: none\n  \u250c\u2500 ostro.typ:4:23\n  \u2502\n\nhelp: while calling `num`\n"
      "   \u250c\u2500 parts/a.typ:31:4\n  \u250c\u2500 paper.typ:3:4\n";
  CHECK(typst_error("panicked with: none", diagnostic, "lab", {"ostro.typ"}) == "lab/parts/a.typ:31: none");
  CHECK(typst_error("none", "error: none", "lab", {}) == "none");
}

TEST_CASE("a page may load and run nothing") {
  const std::string page = styled_html("<html><head><title>a</title></head><body></body></html>");
  CHECK(page.find("default-src 'none'") < page.find("</head>"));
  CHECK(styled_html("<p>") == "<p>");
}

}  // namespace
}  // namespace ostro::paper
