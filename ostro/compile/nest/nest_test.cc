// The text form of a nest, by an example that shows every part of it.
#include <doctest/doctest.h>

#include "ostro/compile/plan/plan.h"
#include "ostro/ir/program/builder.h"

namespace ostro::compile {

using ir::Builder;
using ir::OpKind;
using ir::ValueId;

TEST_CASE("the text form of a softmax says its loops, accesses, ops and passes") {
  const ir::Shape table{ir::DType::f32, {{"a", 6}, {"b", 48}}};
  ir::Program p;
  const ValueId x = p.body.add_param(table);
  Builder b(p.body);
  const auto rows = [&](ValueId v) { return b.broadcast(v, table.axes); };
  const ir::Attrs over{{"axes", std::vector<std::string>{"b"}}};
  const ValueId twice = b.add(OpKind::mul, {x, b.splat(2.0, table)});
  const ValueId e =
      b.add(OpKind::exp, {b.add(OpKind::sub, {twice, rows(b.add(OpKind::reduce_max, {twice}, over))})});
  p.body.results = {b.add(OpKind::div, {e, rows(b.sum(e, {"b"}, "striped"))})};
  const auto module = lower(p, {});
  REQUIRE(module.ok());
  REQUIRE(module->nests.size() == 1);
  CHECK(module->nests[0].str() ==
        "rows outer [given] inner 48 summed [] tile 0\n"
        "x0: load f32 strides [48, 1]\n"
        "y1: store f32 strides [48, 1]\n"
        "c0: f32 0x40000000\n"
        "v0: f32 mul x0 c0\n"
        "v1: f32 reduce_max v0 row\n"
        "v2: f32 sub v0 v1\n"
        "v3: f32 exp v2 saved in pass 1\n"
        "v4: f32 sum v3 row\n"
        "v5: f32 div v3 v4 -> y1\n"
        "pass: rows [] ops [0] stores [] reductions [1]\n"
        "pass: rows [] ops [0, 2, 3] stores [] reductions [4]\n"
        "pass: rows [] ops [3, 5] stores [5] reductions []\n"
        "pass: rows [] ops [] stores [] reductions []\n");
}

}  // namespace ostro::compile
