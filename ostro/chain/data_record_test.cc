// What a chain says of its data, with and without amends that add components.
#include "ostro/chain/data_record.h"

#include <doctest/doctest.h>

#include "ostro/chain/example_chain_for_test.h"

namespace ostro::chain {
namespace {

TEST_CASE("the names of a config's components") {
  using Names = std::set<std::string>;
  CHECK(component_names(R"({"data":{"components":{"b":{},"a":{"format":1}}}})") == Names{"a", "b"});
  for (const char* none : {R"({"data":{"components":{}}})", R"({"data":{}})", "{}", "no JSON", "3", "",
                           R"({"data":{"components":[1]}})"})
    CHECK(component_names(none) == Names{""});
}

TEST_CASE(
    "the genesis and each amend that names data give a record; other amends and strange members do not") {
  Chain chain;
  GenesisEntry first = genesis();
  first.config = R"({"data":{"components":{"web":{}}}})";
  first.data_roots = {{"web", std::string(64, '1')}};
  chain.links = {{first, ""}, {step(1), ""}};
  CHECK(data_records(chain).size() == 1);
  CHECK(data_records(chain)[0].hash == first.data_hash);
  CHECK(data_records(chain)[0].roots == first.data_roots);
  for (const char* other : {R"({"optimizer.learning_rate":{"from":1,"to":2}})", R"({"data":{"to":3}})",
                            R"({"data":4})", R"({"data":{"from":"a"}})", "{}"}) {
    chain.links.push_back({AmendEntry{1, other}, ""});
    CHECK(data_records(chain).size() == 1);
  }
  const std::string more = std::string(64, '2');
  chain.links.push_back(
      {AmendEntry{1, R"({"data":{"from":"x","to":")" + more +
                         R"("},"data.components":{"to":{"web":{},"code":{}}},"data_roots":{"to":{"web":")" +
                         first.data_roots["web"] + R"(","code":")" + more + R"("}}})"},
       ""});
  const std::vector<DataRecord> records = data_records(chain);
  REQUIRE(records.size() == 2);
  CHECK(records[1].step == 1);
  CHECK(records[1].hash == more);
  CHECK(records[1].components == std::set<std::string>{"code", "web"});
  CHECK(records[1].roots ==
        std::map<std::string, std::string>{{"code", more}, {"web", std::string(64, '1')}});
  CHECK(records[0].components == std::set<std::string>{"web"});
}

}  // namespace
}  // namespace ostro::chain
