#include "ostro/drawn/corpus.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "ostro/base/sha256.h"
#include "ostro/drawn/language.h"
#include "ostro/io/files/local_file_system.h"

namespace ostro::drawn {
namespace {

std::vector<nlohmann::json> rows_of(const CorpusRequest& request) {
  std::vector<nlohmann::json> out;
  for (int64_t i = 0; i < request.documents; ++i)
    out.push_back(nlohmann::json::parse(corpus_row(request, i)));
  return out;
}

TEST_CASE("a corpus of each kind has the bytes that it has on every machine") {
  CorpusRequest request{.documents = 40,
                        .seed = 7,
                        .duplicates = 0.1,
                        .near_duplicates = 0.1,
                        .planted = 0.2,
                        .noise = 0.1,
                        .evaluation = {"Question: What is every drum made of?\nAnswer: skin"}};
  std::string all;
  for (const std::string& kind : corpus_kinds()) {
    request.kind = kind;
    for (int64_t i = 0; i < request.documents; ++i) all += corpus_row(request, i) + "\n";
  }
  CHECK(sha256_hex(all) == "1958997904999fda45ee146d33bea95b77ec365d575e559374d117ab5ef52c41");
  const std::string row = corpus_row(request, 3);
  request.seed = 8;
  CHECK(corpus_row(request, 3) != row);
}

TEST_CASE("duplicates and planted texts are where the rows say, in the share that was asked for") {
  const CorpusRequest request{.kind = "web",
                              .documents = 400,
                              .duplicates = 0.2,
                              .near_duplicates = 0.1,
                              .planted = 0.25,
                              .evaluation = {"the first planted text", "the second planted text"}};
  const auto rows = rows_of(request);
  int64_t copies = 0, near = 0, planted = 0;
  std::set<std::string> fresh;
  for (const auto& row : rows) {
    const std::string text = row["text"];
    if (row.contains("copy_of")) {
      ++copies;
      CHECK(row["copy_of"] < row["document"]);
      CHECK(text == rows[row["copy_of"]]["text"]);
    } else if (row.contains("near_copy_of")) {
      ++near;
      const std::string origin = rows[row["near_copy_of"]]["text"];
      CHECK(text.starts_with(origin));
      CHECK(text.size() > origin.size());
    } else {
      CHECK(fresh.insert(text).second);
    }
    planted += row.contains("planted") ? 1 : 0;
    for (size_t i = 0; i < request.evaluation.size(); ++i)
      CHECK((text.find(request.evaluation[i]) != std::string::npos) ==
            (row.contains("planted") && row["planted"] == i));
    const std::string html = row["html"];
    CHECK(html.find("<nav>") != std::string::npos);
    CHECK(html.find("<h1>" + text.substr(0, text.find('\n')) + "</h1>") != std::string::npos);
  }
  CHECK((copies > 50 && copies < 110));
  CHECK((near > 15 && near < 60));
  CHECK((planted > 60 && planted < 140));
}

TEST_CASE("what is learnable holds: sums are right, and what a thing is made of is the same everywhere") {
  for (const char* kind : {"maths", "tasks", "papers"}) {
    std::string text;
    for (const auto& row : rows_of({.kind = kind, .documents = 60}))
      text += row["text"].get<std::string>() + "\n";
    size_t sums = 0, things = 0;
    for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string line = text.substr(at, end - at);
      long a = 0, b = 0, c = 0;
      if (std::sscanf(line.c_str(), "%ld + %ld = %ld", &a, &b, &c) != 3) continue;
      ++sums;
      CHECK_MESSAGE(a + b == c, line);
    }
    for (uint32_t t = 0; t < kTopics; ++t)
      for (uint32_t n = 0; n < kNouns; ++n) {
        const std::string wanted = fmt::format("Every {} is made of ", noun(t, n));
        for (size_t at = 0; (at = text.find(wanted, at)) != std::string::npos; ++at, ++things)
          CHECK(text.substr(at + wanted.size()).starts_with(noun(t, made_of(n)) + "."));
      }
    CHECK((std::string(kind) == "maths" ? sums : std::string(kind) == "papers" ? things : 1) > 0);
  }
}

TEST_CASE("a request that cannot be drawn names the parameter; evaluation files are read as texts") {
  const auto error = [](const CorpusRequest& request) {
    const Status status = request.validate();
    return status.ok() ? std::string() : status.error().message();
  };
  CHECK(error({}) == "");
  CHECK(error({.kind = "poems"}) == "kind is poems: use one of web, code, maths, papers, tasks");
  CHECK(error({.documents = 0}).starts_with("documents is 0: use 1 to "));
  CHECK(error({.seed = -1}) == "seed is -1: use 0 or more");
  CHECK(error({.noise = 1.5}) == "noise is 1.5: use a share from 0 to 1");
  CHECK(error({.planted = 0.5}) == "planted is 0.5, and evaluation has no text to plant");

  namespace files = std::filesystem;
  const files::path top = files::temp_directory_path() / ("ostro_corpus_test_" + std::to_string(::getpid()));
  files::create_directories(top);
  std::ofstream(top / "a.txt") << "one\ntwo\n\nthree\n";
  std::ofstream(top / "b.jsonl") << "{\"text\": \"one\"}\n\n{\"other\": 1}\n";
  io::FileSystem& fs = io::local_file_system();
  CHECK(*evaluation_texts(fs, (top / "a.txt").string()) == std::vector<std::string>{"one\ntwo", "three\n"});
  const auto bad = evaluation_texts(fs, (top / "b.jsonl").string());
  REQUIRE(!bad.ok());
  CHECK(bad.error().message().ends_with("b.jsonl:3: is no row with a text in the field text"));
  files::remove_all(top);
}

}  // namespace
}  // namespace ostro::drawn
