// Hand-written programs, op by op: each way an axis can be split.
#include "ostro/spmd/partition.h"

#include <algorithm>

#include "ostro/cpu/engine/engine.h"
#include "ostro/dist/loop_collectives.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/ir/text/text.h"
#include "ostro/spmd/hand_written_for_test.h"
#include "ostro/spmd/partition_block.h"
#include "ostro/trace/control.h"
#include "ostro/trace/ops.h"

namespace ostro::spmd {

std::unique_ptr<runtime::Engine> test_engine() { return interp::make_interpreter(); }

std::unique_ptr<runtime::Engine> compiled_engine() {
  cpu::CpuOptions options;
  options.threads = 2;
  options.generated_code = false;
  return cpu::make_cpu_engine(options).value();
}

RunWorkers loop_workers(const ir::Mesh& mesh) {
  return [mesh](const std::function<Status(runtime::Collectives&)>& work) {
    return dist::run_workers(mesh, work);
  };
}

namespace {

using ir::OpKind;

TEST_CASE("a contraction over a split axis: one partial per leaf, the tree, each worker keeps its part") {
  for (int64_t leaves : {2, 3, 4, 5, 6, 8})
    for (int64_t workers : {2, 3, 4})
      for (DType dtype : {DType::f32, DType::bf16}) {
        const ir::Program p = traced("mlp", {{dtype, {kBatch, kPos, kMlp}}, {dtype, {kMlp, kEmbed}}},
                                     {{{"mlp", leaves}}}, [&](const Arrays& a) {
                                       return Arrays{dot(a[0], a[1], "mlp", dtype), sum(a[0], {"mlp"}),
                                                     sum(a[0], {"mlp", "batch"}, Order::kSerial)};
                                     });
        if (!fits(leaves, workers)) {
          CHECK(partition(p, model_mesh(p, workers)).error().message().find("numerics.leaves.mlp") !=
                std::string::npos);
          continue;
        }
        const Partition parts = check_parts(p, model_mesh(p, workers), test_inputs(p), true);
        CHECK(count_ops(parts.programs[0]->body, OpKind::reduce_scatter_tree) == 3);
        CHECK(count_ops(parts.programs[0]->body, OpKind::all_gather) == 0);
      }
}

TEST_CASE("sums over split positions: gradients of weights, losses in f64, scatter-add, integers") {
  const ir::Program p = traced(
      "pos",
      {{DType::f32, {kBatch, kPos, kEmbed}}, {DType::f32, {kBatch, kPos}}, {DType::i32, {kBatch, kPos}}},
      {{{"pos", 4}, {"vocab", 2}}}, [&](const Arrays& a) {
        const Array w = dot(a[0], rename(a[0], "embed", "out"), Axes{"batch", "pos"});
        const Array loss = sum(cast(a[1], DType::f64), {"batch", "pos"}, Order::kSerial, DType::f64);
        return Arrays{w,
                      loss,
                      sum(a[2], {"pos"}),
                      max(a[0], {"pos"}),
                      min(a[0], {"pos"}),
                      sum(a[1], {"batch", "pos"}),
                      max(a[2], {"pos", "batch"})};
      });
  const Partition parts = check_parts(p, model_mesh(p, 2), test_inputs(p), true);
  CHECK(count_ops(parts.programs[0]->body, OpKind::all_reduce_tree) == 3);
  CHECK(count_ops(parts.programs[0]->body, OpKind::all_reduce_int) == 1);
  CHECK(count_ops(parts.programs[0]->body, OpKind::all_reduce_max) == 2);
}

TEST_CASE("an op on two mapped axes splits the first in the map and gathers the other") {
  // x is split along pos, w along kv_heads: x is gathered, the product is split along kv_heads.
  const ir::Program p = traced("qkv",
                               {{DType::f32, {kBatch, kPos, kEmbed}},
                                {DType::f32, {kEmbed, {"kv_heads", 4}, {"head_dim", 5}}},
                                {DType::f32, {{"kv_heads", 4}, {"head_dim", 5}, kEmbed}}},
                               {{{"kv_heads", 4}, {"pos", 2}}}, [&](const Arrays& a) {
                                 const Array q = dot(a[0], a[1], "embed");
                                 return Arrays{dot(q, a[2], Axes{"kv_heads", "head_dim"}), q,
                                               dot(q, a[0], Axes{"batch", "pos"})};
                               });
  const Partition parts = check_parts(p, model_mesh(p, 2), test_inputs(p), true);
  CHECK(count_ops(parts.programs[0]->body, OpKind::all_gather) == 1);
  CHECK(count_ops(parts.programs[0]->body, OpKind::reduce_scatter_tree) == 1);
  const auto& q = parts.programs[1]->body;
  CHECK(q.shape(q.results[1]).size_of("kv_heads") == 2);
  CHECK(q.shape(q.results[1]).size_of("pos") == 300);
  CHECK(q.shape(q.results[0]).size_of("pos") == 44);  // leaves of 256 and 44
}

TEST_CASE("ops that read the global index get the shard's origin") {
  const ir::Program p =
      traced("origins", {{DType::u32, {{"word", 2}}}, {DType::f32, {kPos, kEmbed}}, {DType::i32, {kPos}}},
             {{{"pos", 2}, {"vocab", 2}}}, [&](const Arrays& a) {
               const Array normal = random_normal(a[0], {kEmbed, kPos});
               return Arrays{iota(kPos) * 3,
                             normal,
                             fingerprint(a[1]),
                             fingerprint(rename(a[1], "embed", "mlp")),
                             gather(rename(a[1], "pos", "vocab"), "vocab", a[2]),
                             argmax(normal, "pos"),
                             sort(normal, "pos").second,
                             reverse(a[1], "pos"),
                             slice(a[1], "pos", 7, 200),
                             concat({a[1], a[1]}, "pos")};
             });
  check_parts(p, model_mesh(p, 2), test_inputs(p, 300), true);
}

TEST_CASE("attention: heads are parallel; split queries keep their position against gathered keys") {
  const Axis heads{"kv_heads", 2}, group{"group", 2}, head_dim{"head_dim", 8}, key{"key_pos", 300};
  for (DType dtype : {DType::f32, DType::bf16}) {
    const ir::Program p = traced("attention",
                                 {{dtype, {kBatch, kPos, heads, group, head_dim}},
                                  {dtype, {kBatch, key, heads, head_dim}},
                                  {dtype, {kBatch, key, heads, head_dim}}},
                                 {{{"kv_heads", 2}, {"pos", 2}}}, [&](const Arrays& a) {
                                   return Arrays{flash_attention(a[0], a[1], a[2], {})};
                                 });
    PartitionOptions o = model_mesh(p, 2);
    check_parts(p, o, test_inputs(p), true);
    o.sharding.compute = {{"pos", "model"}};
    const Partition parts = check_parts(p, o, test_inputs(p), true);
    CHECK(count_ops(parts.programs[0]->body, OpKind::all_gather) == 0);
  }
}

TEST_CASE("two mesh axes; leaves of a contraction over two cut axes nest, the outer is joined over workers") {
  const ir::Program p =
      traced("two", {{DType::f32, {kBatch, kPos, kMlp}}, {DType::f32, {kMlp, kEmbed}}},
             {{{"mlp", 4}, {"pos", 2}}}, [&](const Arrays& a) {
               return Arrays{sum(a[0], {"pos", "mlp"}), dot(a[0], a[1], "mlp"), max(a[0], {"pos", "mlp"}),
                             fingerprint(transpose(a[0], {"pos", "mlp", "batch"}))};
             });
  PartitionOptions o = model_mesh(p, 2);
  o.sharding.mesh.axes = {{"context", 2}, {"model", 2}};
  o.sharding.compute = {{"mlp", "model"}, {"pos", "context"}};
  check_parts(p, o, test_inputs(p), true);
  o.sharding.compute = {{"pos", "model"}, {"mlp", "context"}};
  check_parts(p, o, test_inputs(p), true);
}

TEST_CASE("a conditional and a custom function") {
  const ir::Program p = traced(
      "cond", {{DType::f32, {kPos, kEmbed}}, {DType::f32, {kEmbed}}}, {{{"pos", 2}}}, [](const Arrays& a) {
        const Array y =
            custom_vjp_arrays([](const Arrays& x) { return Arrays{x[0] * 3.0}; },
                              [](const Arrays& x) { return std::pair<Arrays, Arrays>({x[0] * 3.0}, {}); },
                              [](const Arrays&, const Arrays& ct) { return Arrays{ct[0]}; }, {a[0]})[0];
        return Arrays{cond<Array>(
            sum(a[1], {"embed"}) > 0.0, [&] { return sum(y, {"pos"}); }, [&] { return max(y, {"pos"}); })};
      });
  check_parts(p, model_mesh(p, 2), test_inputs(p), true);
}

TEST_CASE("cells: sums of squares and updates on each worker's own cells, spread evenly") {
  const Axis layers{"layers", 3};
  // 16 cells of 3, 14 of which hold something; 16, the last one short; 13, the last one short.
  for (int64_t size : {40, 46, 37}) {
    const Axis embed{"embed", size};
    const ir::Program p =
        traced("update", {{DType::f32, {layers, embed, kMlp}}, {DType::f32, {layers, embed, kMlp}}}, {},
               [&](const Arrays& a) {
                 const Array boxes = box_sumsq(a[1], {"layers", "embed"}, {3, 16});
                 const Array norm = cast(tree_sum(boxes, {"layers", "embed"}), DType::f32);
                 const Array next = a[0] - broadcast_to(norm, a[0].shape().axes) * a[1];
                 return Arrays{next, norm, fingerprint(next), boxes};
               });
    for (int64_t workers : {2, 3, 5, 7}) {
      PartitionOptions o = model_mesh(p, workers);
      o.sharding.mesh.axes = {{"data", workers}};
      o.sharding.parameter = {{"embed", "data"}};
      o.cells = {{"embed", 16}};
      o.values = Role::kParameter;
      o.params = {Role::kParameter, Role::kParameter};
      o.results = {Role::kParameter, Role::kActivation, Role::kActivation, Role::kActivation};
      const Partition parts = check_parts(p, o, test_inputs(p), true);
      for (const auto& program : parts.programs) CHECK_FALSE(has_value_with(program->body, {embed, kMlp}));
    }
  }
}

TEST_CASE("cells are spread so that no worker has two more than another") {
  Placement placement;
  placement.cells = {{"embed", 16}};
  for (int64_t workers : {3, 5, 7, 16}) {
    placement.sharding.mesh.axes = {{"data", workers}};
    for (int64_t size : {16, 48, 46}) {
      const Split s = placement.split(Role::kParameter, "embed", size, "data");
      CHECK_FALSE(s.leaves_some_empty());
      const std::vector<int64_t> boxes = box_bounds(s, size, 16);
      REQUIRE(static_cast<int64_t>(boxes.size()) == workers + 1);
      for (size_t c = 1; c < boxes.size(); ++c) {
        CHECK(boxes[c] - boxes[c - 1] >= 16 / workers);
        CHECK(boxes[c] - boxes[c - 1] <= (16 + workers - 1) / workers);
      }
    }
    // Leaves are not spread: each coordinate holds a whole subtree.
    placement.leaves.axes = {{"mlp", 3}};
    if (workers == 3)
      CHECK(placement.split(Role::kActivation, "mlp", 24, "data").leaves == std::vector<int64_t>{0, 1, 2, 3});
  }
}

TEST_CASE("control: a part with a short last box must be told how long the boxes are") {
  const Axis embed{"embed", 13};  // boxes of 4, 4, 4 and 1: the second worker has 5 indices in two boxes
  const ir::Program p = traced("boxes", {{DType::f32, {embed, kMlp}}}, {},
                               [&](const Arrays& a) { return Arrays{box_sumsq(a[0], {"embed"}, {4})}; });
  PartitionOptions o = model_mesh(p, 2);
  o.sharding.parameter = {{"embed", "model"}};
  o.cells = {{"embed", 4}};
  o.values = Role::kParameter;
  o.params = {Role::kParameter};
  const Partition parts = check_parts(p, o, test_inputs(p), true);
  check_differs(p, with_ops(parts, [](ir::Op& op) { op.attrs.erase("lengths"); }), test_inputs(p));
}

TEST_CASE("the text of a partitioned program round-trips") {
  const ir::Program p =
      traced("mlp", {{DType::f32, {kPos, kMlp}}, {DType::f32, {kMlp, kEmbed}}}, {{{"mlp", 4}}},
             [&](const Arrays& a) { return Arrays{dot(a[0], a[1], "mlp")}; });
  const Partition parts = partition(p, model_mesh(p, 2)).value();
  const std::string text = ir::print(*parts.programs[1]);
  CHECK(ir::print(ir::parse_program(text).value()) == text);
  CHECK(partition(*parts.programs[1], model_mesh(*parts.programs[1], 2)).error().message().find("already") !=
        std::string::npos);
}

TEST_CASE("controls that must fail: ring order over workers, other leaves") {
  const auto sums = [](int64_t leaves) {
    return traced("mlp", {{DType::f32, {kPos, kMlp}}}, {{{"mlp", leaves}}},
                  [](const Arrays& a) { return Arrays{sum(a[0], {"mlp"})}; });
  };
  const ir::Program p = sums(3);
  PartitionOptions o = model_mesh(p, 3);
  o.sharding.compute = {{"mlp", "model"}};
  const auto in = test_inputs(p);
  const auto engine = test_engine();
  const Partition parts = check_parts(p, o, in, true);
  const auto whole = run_whole(*engine, p, in);
  auto ring = run_parts(*engine, parts, in, [&](const std::function<Status(runtime::Collectives&)>& work) {
    return dist::run_workers(parts.mesh, [&](runtime::Collectives& c) {
      Rotated rotated(c);
      return work(rotated);
    });
  });
  REQUIRE(ring.ok());
  CHECK_FALSE(same_bits((*ring)[0], whole[0]));
  CHECK_FALSE(same_bits(run_whole(*engine, sums(2), in)[0], whole[0]));
}

TEST_CASE("workers that disagree are found") {
  const ir::Mesh mesh{{{"model", 2}}};
  const Shape s{DType::f32, {{"a", 3}}};
  CHECK_FALSE(join(mesh, Layout(1), s, {test_input(s, 1), test_input(s, 2)}).ok());
  CHECK(join(mesh, Layout(1), s, {test_input(s, 1), test_input(s, 1)}).ok());
}

}  // namespace
}  // namespace ostro::spmd
