#include "ostro/config/open_section.h"

#include <doctest/doctest.h>

#include "ostro/config/config.h"

namespace ostro::config {
namespace {

enum class Color { kRed, kGreen };
std::vector<std::string> option_names(Color) { return {"red", "green"}; }

class Apple final : public SectionValue {
 public:
  int64_t seeds = 5;
  Color color = Color::kRed;
  std::string type() const override { return "apple"; }
  void visit_options(OptionTable& t) override {
    t.add(&seeds, "seeds", Effect::kBits, "", "seeds");
    t.add(&color, "color", Effect::kBits, "", "color").other("green");
  }
  std::unique_ptr<SectionValue> clone() const override { return std::make_unique<Apple>(*this); }
};

class Pear final : public SectionValue {
 public:
  double length = 9;
  std::string type() const override { return "pear"; }
  void visit_options(OptionTable& t) override { t.add(&length, "length", Effect::kBits, "cm", "length"); }
  std::unique_ptr<SectionValue> clone() const override { return std::make_unique<Pear>(*this); }
};

struct Basket {
  OpenSection fruit{{std::make_shared<Apple>(), std::make_shared<Pear>()}};
  void visit_options(OptionTable& t) { t.section(&fruit, "fruit", "a fruit"); }
};

Status read(const std::string& yaml, Basket* basket) {
  ASSIGN_OR_RETURN(const Node tree, parse_yaml(yaml, "c.yaml"));
  return read_value(tree, "", basket);
}

TEST_CASE("a section of types given at run time is read, copied and written like any other") {
  Basket basket;
  check_ok(read("fruit: {seeds: 7, color: green}", &basket));
  CHECK(resolved_yaml(basket) == "fruit:\n  type: apple\n  seeds: 7\n  color: green\n");
  const Basket copy = basket;
  check_ok(read("fruit: {type: pear}", &basket));
  CHECK(resolved_yaml(basket) == "fruit:\n  type: pear\n  length: 9.0\n");
  CHECK(resolved_yaml(copy) == "fruit:\n  type: apple\n  seeds: 7\n  color: green\n");
  CHECK(canonical_config(copy) == R"({"fruit":{"color":"green","seeds":7,"type":"apple"}})");
}

TEST_CASE("unknown types and words name what is known") {
  Basket basket;
  CHECK(read("fruit: {type: plum}", &basket).error().message() ==
        "c.yaml:1: fruit.type: unknown type \"plum\"; known: apple, pear; the nearest is \"pear\"");
  CHECK(read("fruit: {color: gren}", &basket).error().message() ==
        "c.yaml:1: fruit.color: expected one of red | green (the nearest is \"green\"), got \"gren\"");
  CHECK(read("fruit: {type: pear, seeds: 1}", &basket).error().message() ==
        "c.yaml:1: unknown key \"fruit.seeds\"; known here: length");
}

TEST_CASE("all types are listed, each with what selects it") {
  const std::vector<OptionInfo> all = list_options(Basket{});
  REQUIRE(all.size() == 4);
  CHECK(all[0].path == "fruit.type");
  CHECK(all[0].type == "apple | pear");
  CHECK(all[0].other_value == "pear");
  CHECK(all[3].path == "fruit.length");
  CHECK(all[3].selects == std::vector<std::pair<std::string, std::string>>{{"fruit.type", "pear"}});
}

}  // namespace
}  // namespace ostro::config
