// The leaves of a batch in rounds over workers that hold parameters in shards: the sums that the owners get
// equal those of one process, bit for bit, and no worker ever holds a parameter or gradient of all layers.
#include <map>

#include "ostro/dist/loop_collectives.h"
#include "ostro/numerics/tree.h"
#include "ostro/spmd/llama_for_test.h"

namespace ostro::spmd {
namespace {

using runtime::Buffer;
using Buffers = std::vector<Buffer>;

Buffer add(const Buffer& a, const Buffer& b) {
  REQUIRE(a.shape() == b.shape());
  Buffer sum = Buffer::empty(a.shape());
  for (size_t i = 0; i < a.as<float>().size(); ++i)
    sum.mutable_as<float>()[i] = a.as<float>()[i] + b.as<float>()[i];
  return sum;
}

// The inputs of a leaf: the same parameters, other tokens.
Buffers leaf_inputs(const ir::Program& p, size_t n, int64_t leaf) {
  Buffers in = llama_inputs(p, n);
  for (size_t i = n; i < in.size(); ++i)
    in[i] = test_input(in[i].shape(), static_cast<uint32_t>(100 * (leaf + 1)) + static_cast<uint32_t>(i),
                       kLlamaVocab);
  return in;
}

// The largest subtrees of the tree over [first, first + count) that lie in [begin, end).
void subtrees(int64_t first, int64_t count, int64_t begin, int64_t end, LeafExchange& out) {
  if (first + count <= begin || first >= end) return;
  if (first >= begin && first + count <= end) {
    out.firsts.push_back(first - begin);
    out.counts.push_back(count);
    return;
  }
  const int64_t left = numerics::tree_split(count);
  subtrees(first, left, begin, end, out);
  subtrees(first + left, count - left, begin, end, out);
}

// Index i of the axis `at` of x, without it.
Buffer pick_part(const Buffer& x, size_t at, int64_t i) {
  Layout layout(x.shape().axes.size());
  const int64_t n = x.shape().axes[at].size;
  layout[at].mesh_axis = "index";
  for (int64_t k = 0; k <= n; ++k) layout[at].bounds.push_back(k);
  return shard({{{"index", n}}}, i, layout, x).with_shape(x.shape().without("part"));
}

// By (first leaf, leaves): the sum of a subtree.
using Sums = std::map<std::pair<int64_t, int64_t>, Buffer>;

Buffer join_sums(const Sums& sums, int64_t first, int64_t count) {
  if (const auto at = sums.find({first, count}); at != sums.end()) return at->second;
  REQUIRE(count > 1);
  const int64_t left = numerics::tree_split(count);
  return add(join_sums(sums, first, left), join_sums(sums, first + left, count - left));
}

// A weight or a gradient of all layers, not cut over the workers.
bool all_layers(const ir::Shape& s) {
  return s.has("layers") && s.has("embed") && s.size_of("embed") == 20 && !s.has("pos");
}

int64_t count_values(const ir::Block& block, bool (*match)(const ir::Shape&)) {
  std::vector<char> made(block.values.size(), 0);
  for (const ir::Op& op : block.ops)
    for (ir::ValueId v : op.results) made[static_cast<size_t>(v)] = 1;
  for (ir::ValueId v : block.params) made[static_cast<size_t>(v)] = 1;
  int64_t n = 0;
  for (size_t v = 0; v < made.size(); ++v) n += made[v] != 0 && match(block.values[v]) ? 1 : 0;
  for (const ir::Op& op : block.ops)
    for (const ir::Block& region : op.regions) n += count_values(region, match);
  return n;
}

void check_memory(const Partition& parts, const ir::Program& p, size_t n) {
  int64_t stacked = 0;
  for (size_t i = 0; i < n; ++i) stacked += p.body.shape(p.body.params[i]).has("layers") ? 1 : 0;
  REQUIRE(stacked > 0);
  for (const auto& program : parts.programs) {
    CHECK(count_values(program->body, all_layers) == 0);
    int64_t scans = 0, inside = 0;
    for (const ir::Op& op : program->body.ops) {
      if (op.kind != ir::OpKind::scan) continue;
      ++scans;  // forward and backward, each gathers its layer's weights
      CHECK(count_ops(op.regions[0], ir::OpKind::all_gather) >= stacked - 2);
      inside += count_ops(op.regions[0], ir::OpKind::exchange_leaves);
    }
    CHECK(scans == 2);
    CHECK(inside == stacked);
    CHECK(count_ops(program->body, ir::OpKind::exchange_leaves) == static_cast<int64_t>(n));
  }
}

struct Case {
  ir::Program program;
  size_t n = 0;                     // parameters
  PartitionOptions options;         // without the exchange
  std::vector<Buffers> whole = {};  // the gradients of each leaf, by one process
  std::vector<Buffers> inputs = {};
};

Case make_case(ir::Program p, size_t n, PartitionOptions o, int64_t leaves) {
  Case c{std::move(p), n, std::move(o)};
  std::fill_n(c.options.results.begin() + 2, n, Role::kGradient);
  const auto engine = compiled_engine();
  const auto executable = engine->compile(c.program).value();
  for (int64_t leaf = 0; leaf < leaves; ++leaf) {
    c.inputs.push_back(leaf_inputs(c.program, n, leaf));
    Buffers out = executable->run(c.inputs.back()).value();
    c.whole.emplace_back(out.begin() + 2, out.end());
  }
  return c;
}

// Runs the leaves in rounds and returns, by worker and gradient, the sums of their subtrees.
std::vector<std::vector<Sums>> run_rounds(runtime::Engine& engine, const Case& c, int64_t leaves,
                                          int64_t workers) {
  const auto ranks = static_cast<size_t>(c.options.sharding.mesh.size());
  std::vector<std::vector<Sums>> sums(ranks, std::vector<Sums>(c.n));
  std::string axes;
  for (const std::string& a : c.options.leaf_axes) axes += (axes.empty() ? "" : "*") + a;
  for (int64_t begin = 0; begin < leaves; begin += workers) {
    PartitionOptions options = c.options;
    LeafExchange round;
    subtrees(0, leaves, begin, std::min(leaves, begin + workers), round);
    options.exchange = round;
    auto made = partition(c.program, options);
    REQUIRE_MESSAGE(made.ok(), (made.ok() ? "" : made.error().message()));
    const Partition& parts = *made;
    check_memory(parts, c.program, c.n);
    std::vector<Buffers> out(ranks);
    const Status status = dist::run_workers(parts.mesh, [&](runtime::Collectives& group) -> Status {
      const int64_t rank = group.rank();
      const auto peers = group.peers(axes);
      const int64_t leaf = begin + (std::find(peers.begin(), peers.end(), rank) - peers.begin());
      Buffers mine;  // a worker without a leaf runs some other one
      const Buffers& in = c.inputs[static_cast<size_t>(leaf < leaves ? leaf : 0)];
      for (size_t i = 0; i < in.size(); ++i) mine.push_back(shard(parts.mesh, rank, parts.params[i], in[i]));
      ASSIGN_OR_RETURN(auto executable, engine.compile(*parts.programs[static_cast<size_t>(rank)]));
      ASSIGN_OR_RETURN(out[static_cast<size_t>(rank)], executable->run(std::move(mine), {&group}));
      return Status();
    });
    REQUIRE_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message()));
    for (size_t rank = 0; rank < ranks; ++rank)
      for (size_t k = 0; k < c.n; ++k) {
        const Buffer& g = out[rank][k + 2];
        CHECK(g.shape() == local_shape(parts.mesh, static_cast<int64_t>(rank), parts.results[k + 2],
                                       parts.result_shapes[k + 2]));
        const auto at = static_cast<size_t>(g.shape().find("part"));
        for (size_t i = 0; i < round.firsts.size(); ++i)
          sums[rank][k][{begin + round.firsts[i], round.counts[i]}] =
              pick_part(g, at, static_cast<int64_t>(i));
      }
  }
  return sums;
}

void check_rounds(runtime::Engine& engine, const Case& c, int64_t leaves, int64_t workers) {
  const Placement placement{c.options.sharding, c.options.cells, c.program.leaves, c.options.leaf_axes};
  const auto sums = run_rounds(engine, c, leaves, workers);
  bool order_matters = false;
  for (size_t k = 0; k < c.n; ++k) {
    Sums single;
    for (int64_t leaf = 0; leaf < leaves; ++leaf) single[{leaf, 1}] = c.whole[static_cast<size_t>(leaf)][k];
    const Buffer expected = join_sums(single, 0, leaves);
    Buffer chain = single[{leaves - 1, 1}];
    for (int64_t leaf = leaves - 1; leaf-- > 0;) chain = add(single[{leaf, 1}], chain);
    order_matters |= !same_bits(chain, expected);
    const Layout owned = placement.layout(Role::kParameter, expected.shape());
    for (size_t rank = 0; rank < sums.size(); ++rank)
      CHECK_MESSAGE(same_bits(join_sums(sums[rank][k], 0, leaves),
                              shard(c.options.sharding.mesh, static_cast<int64_t>(rank), owned, expected)),
                    c.program.result_names[k + 2], ": ", leaves, " leaves, ", workers, " workers, worker ",
                    rank);
  }
  CHECK(order_matters);
}

TEST_CASE("four to eight leaves in rounds over two, three and four workers") {
  size_t n = 0;
  ir::Program p = test_llama(false, DType::bf16, 9, {}, &n);
  PartitionOptions o = llama_options(p, n);
  o.sharding.parameter = {{"embed", "data"}};
  o.cells = {{"embed", 10}};
  o.leaf_axes = {"data"};
  Case c = make_case(std::move(p), n, o, 8);
  const auto engine = compiled_engine();
  for (int64_t workers : {2, 3, 4}) {
    c.options.sharding.mesh.axes = {{"data", workers}};
    for (int64_t leaves = 4; leaves <= 8; ++leaves) check_rounds(*engine, c, leaves, workers);
  }
  c.options.sharding.mesh.axes = {{"data", 3}};
  check_rounds(*test_engine(), c, 5, 3);
  c.options.leaf_axes = {"replica", "data"};
  c.options.sharding.mesh.axes = {{"replica", 2}, {"data", 2}};
  check_rounds(*engine, c, 7, 4);
  // Controls: without the exchange a worker holds the gradients of all layers; leaves in another order give
  // other sums.
  c.options.leaf_axes = {"data"};
  c.options.sharding.mesh.axes = {{"data", 2}};
  CHECK(count_values(partition(c.program, c.options)->programs[0]->body, all_layers) > 0);
  const auto right = run_rounds(*engine, c, 5, 2);
  std::swap(c.inputs[1], c.inputs[2]);
  const auto swapped = run_rounds(*engine, c, 5, 2);
  bool differ = false;
  for (size_t k = 0; k < n; ++k)
    differ |= !same_bits(join_sums(right[0][k], 0, 5), join_sums(swapped[0][k], 0, 5));
  CHECK(differ);
}

TEST_CASE("a mesh of data and model: leaves over data, tensor and sequence parallel over model") {
  size_t n = 0;
  ir::Program p =
      test_llama(true, DType::f32, 140, {{{"kv_heads", 2}, {"mlp", 2}, {"vocab", 2}, {"pos", 2}}}, &n);
  PartitionOptions o = llama_options(p, n);
  o.sharding.mesh.axes = {{"data", 2}, {"model", 2}};
  o.sharding.compute = kModel;
  o.sharding.parameter = {{"embed", "data"}, {"mlp", "model"}, {"kv_heads", "model"}};
  o.cells = {{"embed", 5}};
  o.leaf_axes = {"data"};
  const Case c = make_case(std::move(p), n, o, 3);
  check_rounds(*compiled_engine(), c, 3, 2);
}

TEST_CASE("exchanges that cannot be are refused") {
  size_t n = 0;
  const ir::Program p = test_llama(false, DType::bf16, 9, {}, &n);
  PartitionOptions o = llama_options(p, n);
  std::fill_n(o.results.begin() + 2, n, Role::kGradient);
  o.sharding.mesh.axes = {{"replica", 2}, {"data", 2}};
  o.sharding.parameter = {{"embed", "data"}};
  o.exchange = LeafExchange{{0}, {4}};
  const auto message = [&] {
    const auto made = partition(p, o);
    return made.ok() ? std::string() : made.error().message();
  };
  CHECK(message().find("no axis has leaves") != std::string::npos);
  o.leaf_axes = {"replica", "data"};
  CHECK(message().empty());
  o.exchange = LeafExchange{{0}, {5}};
  CHECK(message().find("not within 4 peers") != std::string::npos);
  o.exchange = LeafExchange{{0}, {4}};
  o.sharding.parameter = {{"embed", "data"}, {"mlp", "replica"}};
  CHECK(message().find("split over 2 mesh axes that carry leaves") != std::string::npos);
}

}  // namespace
}  // namespace ostro::spmd
