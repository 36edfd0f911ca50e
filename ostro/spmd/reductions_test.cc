// How many collectives a partitioned transformer has: no more than the algebra needs.
#include "ostro/ir/text/text.h"
#include "ostro/spmd/llama_for_test.h"

namespace ostro::spmd {
namespace {

int64_t reductions(const ir::Block& block) {
  return count_ops(block, ir::OpKind::all_reduce_tree) + count_ops(block, ir::OpKind::reduce_scatter_tree);
}

// The bodies of the two loops over layers: forward, backward.
std::vector<const ir::Block*> loops(const ir::Program& program) {
  std::vector<const ir::Block*> out;
  for (const ir::Op& op : program.body.ops)
    if (op.kind == ir::OpKind::scan) out.push_back(&op.regions[0]);
  REQUIRE(out.size() == 2);
  return out;
}

struct TestCase {
  ir::Program program;
  size_t n = 0;
  PartitionOptions options;
};

TestCase tensor_parallel(bool sequence) {
  TestCase c;
  c.program =
      test_llama(false, DType::f32, 140, {{{"kv_heads", 2}, {"mlp", 2}, {"vocab", 2}, {"pos", 2}}}, &c.n);
  c.options = llama_options(c.program, c.n);
  c.options.sharding.mesh.axes = {{"model", 2}};
  c.options.sharding.compute = {{"kv_heads", "model"}, {"mlp", "model"}, {"vocab", "model"}};
  c.options.sharding.parameter = c.options.sharding.compute;
  if (sequence) c.options.sharding.compute.emplace_back("pos", "model");
  return c;
}

TEST_CASE(
    "tensor parallelism: one reduction per projection's output, and one per projection's input gradient") {
  const TestCase c = tensor_parallel(false);
  const auto parts = partition(c.program, c.options);
  REQUIRE_MESSAGE(parts.ok(), (parts.ok() ? "" : parts.error().message()));
  for (const auto& program : parts->programs) {
    const auto bodies = loops(*program);
    CHECK(reductions(*bodies[0]) == 2);  // the outputs of o and down
    CHECK(reductions(*bodies[1]) == 2);  // the input gradients of qkv and gate_up
    // The sum of cross-entropy, and the input gradient of the head. No gradient of a parameter is reduced.
    CHECK(reductions(program->body) == 4 + 2);
  }
}

TEST_CASE("with positions split, too: one reduction more for each parameter that a position reads whole") {
  const TestCase c = tensor_parallel(true);
  const auto parts = partition(c.program, c.options);
  REQUIRE_MESSAGE(parts.ok(), (parts.ok() ? "" : parts.error().message()));
  for (const auto& program : parts->programs) {
    const auto bodies = loops(*program);
    CHECK(reductions(*bodies[0]) == 2);
    CHECK(reductions(*bodies[1]) == 2 + 2);  // and the gradients of both norms' scales
  }
}

TEST_CASE(
    "leaves in rounds: every parameter is gathered once where it is used, its gradient exchanged once") {
  TestCase c = tensor_parallel(false);
  c.options.sharding.mesh.axes = {{"data", 2}, {"model", 2}};
  c.options.sharding.parameter.emplace_back("embed", "data");
  c.options.cells = {{"embed", 10}};
  c.options.leaf_axes = {"data"};
  std::fill_n(c.options.results.begin() + 2, c.n, Role::kGradient);
  c.options.exchange = LeafExchange{{0}, {2}};
  const auto parts = partition(c.program, c.options);
  REQUIRE_MESSAGE(parts.ok(), (parts.ok() ? "" : parts.error().message()));
  int64_t stacked = 0;
  for (size_t k = 0; k < c.n; ++k)
    stacked += c.program.body.shape(c.program.body.params[k]).has("layers") ? 1 : 0;
  for (const auto& program : parts->programs) {
    const auto bodies = loops(*program);
    CHECK(count_ops(program->body, ir::OpKind::exchange_leaves) == static_cast<int64_t>(c.n));
    CHECK(count_ops(*bodies[1], ir::OpKind::exchange_leaves) == stacked);
    CHECK(count_ops(*bodies[0], ir::OpKind::all_gather) == stacked);
    CHECK(count_ops(*bodies[1], ir::OpKind::all_gather) == stacked);
    CHECK(reductions(*bodies[1]) == 2);
  }
}

TEST_CASE("the program of one worker alone is the one that it has among all") {
  TestCase c = tensor_parallel(true);
  const auto all = partition(c.program, c.options);
  REQUIRE(all.ok());
  c.options.only = 1;
  const auto one = partition(c.program, c.options);
  REQUIRE(one.ok());
  CHECK(one->programs[0] == nullptr);
  CHECK(ir::print(*one->programs[1]) == ir::print(*all->programs[1]));
}

}  // namespace
}  // namespace ostro::spmd
