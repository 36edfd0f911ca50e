#include "ostro/eval/report/results.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ostro/eval/report/report.h"

namespace ostro::eval {
namespace {

Samples samples(const std::vector<double>& numerators, const std::vector<double>& denominators) {
  return {numerators, denominators};
}

Entry entry(const std::string& name, std::vector<std::string> tags, Samples values) {
  Entry out;
  out.name = name, out.tags = std::move(tags), out.type = "corpus", out.documents_hash = "h";
  out.measures = {{"bits_per_byte", std::move(values)}};
  return out;
}

TEST_CASE("a mean, its standard error, and that of a ratio of sums") {
  const Estimate accuracy = estimate(samples({1, 0, 1, 1}, {1, 1, 1, 1}));
  CHECK(accuracy.value == 0.75);
  CHECK(*accuracy.standard_error == doctest::Approx(0.25));  // sqrt(0.25) / sqrt(4)
  // 6 bits of 4 bytes and 6 bits of 2: 2 bits a byte; residuals -2 and 2.
  const Estimate ratio = estimate(samples({6, 6}, {4, 2}));
  CHECK(ratio.value == 2);
  CHECK(*ratio.standard_error == doctest::Approx(std::sqrt(2.0 * 8) / 6));
  CHECK_FALSE(estimate(samples({3}, {2})).standard_error);
}

TEST_CASE("micro averages weigh documents, macro averages corpora") {
  const Samples a = samples({2, 2}, {1, 1}), b = samples({12, 12}, {3, 3});
  const Samples* both[] = {&a, &b};
  CHECK(micro_average(both).value == 3.5);
  CHECK(macro_average(both).value == 3);
  CHECK(*macro_average(both).standard_error == 0);
}

TEST_CASE("a paired difference is far surer than the two values") {
  Samples d;
  REQUIRE(difference(samples({1, 5, 9}, {1, 1, 1}), samples({2, 6, 10}, {1, 1, 1}), d));
  CHECK(estimate(d).value == 1);
  CHECK(*estimate(d).standard_error == 0);
  CHECK_FALSE(difference(samples({1}, {1}), samples({1}, {2}), d));
  CHECK_FALSE(difference(samples({1}, {1}), samples({1, 1}, {1, 1}), d));
}

TEST_CASE("names and tags make a tree") {
  const Samples s = samples({1}, {1});
  const auto nodes = tag_nodes({entry("web/en/c4", {}, s), entry("web/en/news", {"news"}, s),
                                entry("code", {"news/tech"}, s), entry("alone/x", {}, s)});
  CHECK(nodes == std::map<std::string, std::vector<size_t>>{
                     {"", {0, 1, 2, 3}}, {"news", {1, 2}}, {"web", {0, 1}}, {"web/en", {0, 1}}});
}

TEST_CASE("differences are of the same documents only") {
  Evaluated a, b;
  a.corpora = {entry("x", {}, samples({1, 2}, {1, 1})), entry("y", {}, samples({1}, {1}))};
  b.corpora = {entry("x", {}, samples({3, 4}, {1, 1})), entry("y", {}, samples({1}, {1})),
               entry("z", {}, {})};
  b.corpora[1].documents_hash = "other";
  const Evaluated d = differences(a, b);
  REQUIRE(d.corpora.size() == 1);
  CHECK(estimate(d.corpora[0].measures[0].samples).value == 2);
  const std::string table = report_table({"t", "", {a, a}});
  CHECK(table.find("+0.0000 to +0.0000") != std::string::npos);
  CHECK(table.find("all (macro of 2)") != std::string::npos);
}

}  // namespace
}  // namespace ostro::eval
