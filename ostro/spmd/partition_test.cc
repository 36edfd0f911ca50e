// Hand-written programs, op by op: each way an axis can be split.
#include "ostro/spmd/partition.h"

#include <algorithm>

#include "ostro/cpu/engine/engine.h"
#include "ostro/dist/loop_collectives.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/ir/text/text.h"
#include "ostro/spmd/parts_for_test.h"
#include "ostro/trace/control.h"
#include "ostro/trace/frame.h"
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

PartitionOptions model_mesh(const ir::Program& p, int64_t workers) {
  PartitionOptions o;
  o.sharding.mesh.axes = {{"model", workers}};
  for (const char* axis : {"kv_heads", "mlp", "vocab", "pos"}) o.sharding.compute.emplace_back(axis, "model");
  o.params.assign(p.body.params.size(), Role::kActivation);
  o.results.assign(p.body.results.size(), Role::kActivation);
  return o;
}

ir::Program traced(const char* name, const std::vector<Shape>& shapes, numerics::LeafTable leaves,
                   const std::function<Arrays(const Arrays&)>& f) {
  ir::Program p = trace_program(name, shapes, f);
  p.leaves = std::move(leaves);
  return p;
}

const Axis kBatch{"batch", 2}, kPos{"pos", 300}, kMlp{"mlp", 100}, kEmbed{"embed", 12}, kVocab{"vocab", 44};

bool fits(int64_t leaves, int64_t workers) {
  for (int64_t s = 1; s <= leaves; s *= 2)
    if ((leaves + s - 1) / s == workers) return true;
  return false;
}

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

TEST_CASE("cells: sums of squares and updates on each worker's own cells") {
  const Axis embed{"embed", 40}, layers{"layers", 3};
  const ir::Program p =
      traced("update", {{DType::f32, {layers, embed, kMlp}}, {DType::f32, {layers, embed, kMlp}}}, {},
             [&](const Arrays& a) {
               const Array boxes = box_sumsq(a[1], {"layers", "embed"}, {3, 16});
               const Array norm = cast(tree_sum(boxes, {"layers", "embed"}), DType::f32);
               const Array next = a[0] - broadcast_to(norm, a[0].shape().axes) * a[1];
               return Arrays{next, norm, fingerprint(next)};
             });
  for (int64_t workers : {2, 3, 5}) {
    PartitionOptions o = model_mesh(p, workers);
    o.sharding.mesh.axes = {{"data", workers}};
    o.sharding.parameter = {{"embed", "data"}};
    o.cells = {{"embed", 16}};
    o.values = Role::kParameter;
    o.params = {Role::kParameter, Role::kParameter};
    o.results = {Role::kParameter, Role::kActivation, Role::kActivation};
    const Partition parts = check_parts(p, o, test_inputs(p), true);
    CHECK(parts.programs[0]->body.shape(parts.programs[0]->body.params[0]).size_of("embed") < 40);
  }
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

// The same group with the workers in another order.
class Rotated final : public runtime::Collectives {
 public:
  explicit Rotated(runtime::Collectives& base) : base_(base) {}
  int64_t rank() const override { return base_.rank(); }
  int64_t size() const override { return base_.size(); }
  int64_t bytes_sent() const override { return base_.bytes_sent(); }
  std::vector<int64_t> peers(std::string_view axis) const override {
    std::vector<int64_t> p = base_.peers(axis);
    std::rotate(p.begin(), p.begin() + 1, p.end());
    return p;
  }
  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    return base_.exchange(peers, send, receive);
  }

 private:
  runtime::Collectives& base_;
};

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
