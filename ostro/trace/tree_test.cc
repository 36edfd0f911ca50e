// Structs as trees: names, order, signatures.
#include "ostro/trace/tree.h"

#include <doctest/doctest.h>

#include <functional>

#include "ostro/trace/arrays_for_test.h"

namespace ostro {
namespace {

using namespace test;

enum class Kind { kOne, kTwo };

struct Leafy {
  Array weight, bias;
  std::vector<std::string> names;
  double scale = 1;
  Kind kind = Kind::kOne;
  std::string title;
  OSTRO_FIELDS(weight, bias)
  OSTRO_STATICS(names, scale, kind, title)
};

struct Nest {
  std::vector<Leafy> list;
  std::optional<Leafy> maybe;
  Array last;
  int not_listed = 0;
  OSTRO_FIELDS(list, maybe, last)
};

struct Named {
  Array value;
  std::string name;
  OSTRO_FIELDS(value)
  std::string ostro_name() const { return name; }
};

Array scalar(float v) { return f32({}, {v}); }

Nest nest() {
  Nest n;
  n.list = {Leafy{scalar(1), scalar(2), {}, 1, Kind::kOne, ""}, Leafy{scalar(3), {}, {}, 1, Kind::kOne, ""}};
  n.maybe = Leafy{f32({{"a", 3}}, {4, 4, 4}), {}, {}, 1, Kind::kOne, ""};
  n.last = scalar(5);
  return n;
}

std::vector<std::string> paths(const auto& tree) {
  std::vector<std::string> out;
  for_each_leaf(tree, [&](const std::string& path, const Array&) { out.push_back(path); });
  return out;
}

TEST_CASE("paths and order; empty arrays and absent members are no leaves") {
  Nest n = nest();
  CHECK(paths(n) ==
        std::vector<std::string>{"list/0/weight", "list/0/bias", "list/1/weight", "maybe/weight", "last"});
  CHECK(tree_leaves(n).size() == 5);
  CHECK(values<float>(tree_leaves(n)[2])[0] == 3);
  n.maybe.reset();
  CHECK(paths(n).size() == 4);
  CHECK(paths(scalar(1)) == std::vector<std::string>{""});
  const std::vector<Named> named = {{scalar(1), "q_proj"}, {scalar(2), "v_proj"}};
  CHECK(paths(named) == std::vector<std::string>{"q_proj/value", "v_proj/value"});
}

TEST_CASE("leaves are put back in the same places; the original keeps its own") {
  const Nest n = nest();
  std::vector<Array> leaves = tree_leaves(n);
  leaves[3] = scalar(9);
  const Nest other = tree_with_leaves(n, leaves);
  CHECK(values<float>(other.maybe->weight)[0] == 9);
  CHECK(n.maybe->weight.shape().count() == 3);
  CHECK(other.maybe->weight.shape().count() == 1);
  const Nest mapped = tree_map(
      n, [](const std::string& path, const Array& a) { return path == "list/1/weight" ? scalar(-1) : a; });
  CHECK(values<float>(mapped.list[1].weight)[0] == -1);
  CHECK_THROWS_AS(tree_with_leaves(n, {}), std::out_of_range);
}

TEST_CASE("the signature tells structure, shapes, tags and statics apart, and nothing else") {
  const Nest n = nest();
  const auto differs = [&](const std::function<void(Nest&)>& change) {
    Nest m = n;
    change(m);
    return tree_signature(m) != tree_signature(n);
  };
  CHECK(differs([](Nest& m) { m.last = f32({{"a", 1}}, {5}); }));
  CHECK(differs([](Nest& m) { m.last = m.last.tagged(DType::bf16); }));
  CHECK(differs([](Nest& m) { m.last = Array(); }));
  CHECK(differs([](Nest& m) { m.list.pop_back(); }));
  CHECK(differs([](Nest& m) { m.maybe.reset(); }));
  CHECK(differs([](Nest& m) { m.list[0].scale = 1.0000000000000002; }));
  CHECK(differs([](Nest& m) { m.list[0].kind = Kind::kTwo; }));
  CHECK(differs([](Nest& m) { m.list[0].names = {"embed"}; }));
  CHECK_FALSE(differs([](Nest& m) { m.last = scalar(6); }));
  CHECK_FALSE(differs([](Nest& m) { m.not_listed = 1; }));
  Leafy a, b;
  a.names = {"x,", "y"}, b.names = {"x", ",y"};
  CHECK(tree_signature(a) != tree_signature(b));
}

}  // namespace
}  // namespace ostro
