// Collectives on arrays that are cut in every way, with both engines, and what they send: small arrays whole,
// large ones in parts.
#include "ostro/dist/loop_collectives.h"
#include "ostro/ir/program/builder.h"
#include "ostro/ir/rules/collective_parts.h"
#include "ostro/numerics/tree.h"
#include "ostro/spmd/parts_for_test.h"

namespace ostro::spmd {
namespace {

using ir::OpKind;
using runtime::Buffer;

struct Collective {
  OpKind kind;
  int64_t workers = 1;
  ir::Shape whole;   // of all_gather the result, else the operand
  std::string axis;  // that is cut; "": none
  std::vector<int64_t> bounds;

  ir::Shape held(int64_t rank) const {
    ir::Shape s = whole;
    if (kind == OpKind::all_gather) s.axes[s.find(axis)].size = bounds[rank + 1] - bounds[rank];
    return s;
  }
  ir::Program program(int64_t rank) const {
    ir::Attrs attrs{{"mesh_axis", std::string("m")}};
    if (axis.empty()) attrs.set("workers", workers);
    if (!axis.empty()) {
      attrs.set("axis", axis), attrs.set("bounds", bounds);
      attrs.set("size", kind == OpKind::all_gather ? bounds.back() : bounds[rank + 1] - bounds[rank]);
    }
    if (kind == OpKind::all_reduce_tree || kind == OpKind::reduce_scatter_tree) attrs.set("leaves", workers);
    ir::Program p;
    p.name = "collective";
    p.body.add_param(held(rank));
    p.body.results = {ir::Builder(p.body).add(kind, {0}, attrs)};
    return p;
  }
};

struct Run {
  std::vector<Buffer> in, out;  // by worker
  std::vector<int64_t> sent;
};

Run run(runtime::Engine& engine, const Collective& c) {
  Run r;
  for (int64_t w = 0; w < c.workers; ++w)
    r.in.push_back(test_input(c.held(w), 11 + static_cast<uint32_t>(w)));
  r.out.resize(r.in.size());
  r.sent.resize(r.in.size());
  const Status status = dist::run_workers({{{"m", c.workers}}}, [&](runtime::Collectives& group) -> Status {
    const auto rank = static_cast<size_t>(group.rank());
    ASSIGN_OR_RETURN(auto executable, engine.compile(c.program(group.rank())));
    ASSIGN_OR_RETURN(auto results, executable->run({r.in[rank]}, {&group}));
    r.out[rank] = results[0];
    r.sent[rank] = group.bytes_sent();
    return Status();
  });
  REQUIRE_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message()));
  return r;
}

void check_both(const Collective& c) {
  CAPTURE(ir::op_name(c.kind));
  CAPTURE(c.workers);
  CAPTURE(c.whole.str());
  CAPTURE(c.axis);
  const Run plain = run(*test_engine(), c), fast = run(*compiled_engine(), c);
  for (int64_t w = 0; w < c.workers; ++w) {
    const auto i = static_cast<size_t>(w);
    CHECK(same_bits(plain.out[i], fast.out[i]));
    CHECK(fast.sent[i] == ir::sent_bytes(c.program(w).body.ops[0], c.held(w), w));
  }
}

std::vector<int64_t> uneven(int64_t size, int64_t workers) {
  std::vector<int64_t> bounds{0};
  for (int64_t w = 1; w <= workers; ++w)
    bounds.push_back(w == workers ? size : size * w * w / (workers * workers));
  return bounds;
}

TEST_CASE("gathered and scattered along the first and along another axis, in parts of different sizes") {
  for (const int64_t workers : {1, 2, 3, 5})
    for (const int64_t size : {25, 300})
      for (const std::string axis : {"a", "b"})
        for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter_tree}) {
          const ir::Shape whole{ir::DType::f32, {{"one", 1}, {"a", size}, {"b", size}}};
          check_both({kind, workers, whole, axis, uneven(size, workers)});
        }
  const ir::Shape bf16{ir::DType::bf16, {{"a", 30}, {"b", 50}}};
  check_both({OpKind::all_gather, 3, bf16, "b", uneven(50, 3)});
}

TEST_CASE("reduced whole and in parts, of every dtype") {
  for (const int64_t workers : {1, 2, 3, 5})
    for (const int64_t size : {7, 40'003}) {
      const auto all = [&](OpKind kind, std::initializer_list<ir::DType> dtypes) {
        for (const ir::DType dtype : dtypes) check_both({kind, workers, {dtype, {{"a", size}}}, "", {}});
      };
      using enum ir::DType;
      all(OpKind::all_reduce_tree, {f32, f64});
      all(OpKind::all_reduce_max, {f32, f64, i32});
      all(OpKind::all_reduce_int, {i32, i64, u32});
      all(OpKind::all_reduce_bits, {f32, bf16, i64, boolean});
    }
}

// The control: a chain over the workers, as a ring adds, differs, and so does the tree of another order.
TEST_CASE("a sum over workers is the tree, and other orders give other bits") {
  constexpr int64_t kWorkers = 5, kSize = 40'000;
  const Run r =
      run(*compiled_engine(), {OpKind::all_reduce_tree, kWorkers, {ir::DType::f32, {{"a", kSize}}}, "", {}});
  bool chain_differs = false, order_differs = false;
  for (size_t i = 0; i < kSize; ++i) {
    std::vector<float> column;
    for (const Buffer& b : r.in) column.push_back(b.as<float>()[i]);
    REQUIRE(r.out[0].as<float>()[i] == numerics::tree_sum(std::span<const float>(column)));
    float chain = column[0];
    for (size_t w = 1; w < column.size(); ++w) chain += column[w];
    chain_differs = chain_differs || chain != r.out[0].as<float>()[i];
    std::swap(column[1], column[2]);
    order_differs =
        order_differs || numerics::tree_sum(std::span<const float>(column)) != r.out[0].as<float>()[i];
  }
  CHECK(chain_differs);
  CHECK(order_differs);
}

TEST_CASE("programs that name other parts than there are do not verify") {
  ir::Block block;
  const ir::ValueId x = block.add_param({ir::DType::f32, {{"a", 4}}});
  ir::Builder builder(block);
  const auto error = [&](OpKind kind, ir::Attrs attrs) {
    attrs.set("mesh_axis", std::string("m"));
    const auto made = builder.try_add(kind, {x}, attrs);
    return made.ok() ? "made" : made.error().message();
  };
  const std::string axis = "a";
  using Bounds = std::vector<int64_t>;
  CHECK(error(OpKind::all_gather, {{"axis", axis}, {"size", int64_t{8}}, {"bounds", Bounds{0, 4, 9}}})
            .find("bounds [0, 4, 9] do not cut an axis of 8") != std::string::npos);
  CHECK(error(OpKind::all_gather, {{"axis", axis}, {"size", int64_t{8}}, {"bounds", Bounds{0, 3, 8}}})
            .find("no part of the bounds [0, 3, 8] has 4 indices") != std::string::npos);
  CHECK(
      error(OpKind::reduce_scatter_tree, {{"axis", axis}, {"size", int64_t{2}}, {"bounds", Bounds{0, 3, 4}}})
          .find("no part of the bounds [0, 3, 4] has 2 indices") != std::string::npos);
  CHECK(error(OpKind::all_reduce_max, {{"workers", int64_t{0}}}).find("workers are 1 or more, not 0") !=
        std::string::npos);
}

}  // namespace
}  // namespace ostro::spmd
