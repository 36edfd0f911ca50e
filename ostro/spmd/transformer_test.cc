// The hard corner: a tied, scanned Llama, forward and backward, over split heads, features, vocabulary and
// positions, and with parameters in shards.
#include "ostro/grad/value_and_grad.h"
#include "ostro/models/llama.h"
#include "ostro/models/model_functions.h"
#include "ostro/spmd/parts_for_test.h"

namespace ostro::spmd {
namespace {

constexpr int64_t kVocabSize = 44;

// parameters, tokens, targets, weights -> loss, weight, gradients.
ir::Program llama(bool tied, DType compute, int64_t pos, numerics::LeafTable leaves, size_t* parameters) {
  models::LlamaOptions o;
  o.seq_len = pos;
  o.hidden_dim = 20;
  o.intermediate_dim = 28;
  o.num_layers = 2;
  o.num_heads = 4;
  o.num_kv_heads = 2;
  o.head_dim = 6;
  o.tie_word_embeddings = tied;
  o.z_loss_weight = 1e-3;
  check_ok(o.resolve());
  const models::ModelFunctions model = models::model_functions<models::Llama>(o, kVocabSize, compute);
  const size_t n = *parameters = model.shapes.size();
  std::vector<Shape> shapes = model.shapes;
  const std::vector<Axis> rows = {{"batch", 2}, {"pos", pos}};
  for (DType d : {DType::i32, DType::i32, DType::f32}) shapes.push_back({d, rows});
  ir::Program p = trace_program("leaf", shapes, [&](const Arrays& in) {
    return grad_internal::trace_value_and_grad(
        in, n,
        [&](const Arrays& a) {
          const models::Loss loss = model.loss(Arrays(a.begin(), a.begin() + static_cast<int64_t>(n)),
                                               {a[n], a[n + 1], a[n + 2], Array()});
          const Array w = cast(loss.weight, DType::f64);
          return Arrays{
              sum(w * cast(loss.per_token, DType::f64), {"batch", "pos"}, Order::kSerial, DType::f64),
              sum(w, {"batch", "pos"}, Order::kSerial, DType::f64)};
        },
        Loc::current());
  });
  p.leaves = std::move(leaves);
  p.result_names = {"loss_sum", "weight"};
  p.result_names.insert(p.result_names.end(), model.paths.begin(), model.paths.end());
  return p;
}

PartitionOptions options(const ir::Program& p, size_t parameters) {
  PartitionOptions o;
  o.params.assign(p.body.params.size(), Role::kActivation);
  o.results.assign(p.body.results.size(), Role::kActivation);
  std::fill_n(o.params.begin(), parameters, Role::kParameter);
  std::fill_n(o.results.begin() + 2, parameters, Role::kParameter);
  return o;
}

// Parameters of a size at which attention and softmax do not saturate, rows of tokens.
std::vector<runtime::Buffer> inputs(const ir::Program& p, size_t parameters) {
  std::vector<runtime::Buffer> in = test_inputs(p, kVocabSize);
  for (size_t i = 0; i < parameters; ++i)
    for (float& x : in[i].mutable_as<float>()) x *= 0.125f;
  return in;
}

// Equal NaNs and equal zeros prove nothing.
void check_alive(const ir::Program& p, const std::vector<runtime::Buffer>& in) {
  const auto engine = test_engine();
  const auto out = run_whole(*engine, p, in);
  for (size_t i = 2; i < out.size(); ++i) {
    int64_t zeros = 0;
    for (float x : out[i].as<float>()) {
      CHECK(std::isfinite(x));
      zeros += x == 0.0f ? 1 : 0;
    }
    CHECK_MESSAGE(zeros * 2 < out[i].shape().count(), p.result_names[i]);
  }
}

const ir::AxisMap kModel = {{"kv_heads", "model"}, {"mlp", "model"}, {"vocab", "model"}, {"pos", "model"}};

TEST_CASE("a transformer over two workers along model: tensor and sequence parallel") {
  for (DType compute : {DType::f32, DType::bf16}) {
    size_t n = 0;
    const ir::Program p =
        llama(true, compute, 140, {{{"kv_heads", 2}, {"mlp", 2}, {"vocab", 2}, {"pos", 2}}}, &n);
    PartitionOptions o = options(p, n);
    o.sharding.mesh.axes = {{"model", 2}};
    o.sharding.compute = kModel;
    const auto in = inputs(p, n);
    check_alive(p, in);
    const Partition replicated = check_parts(p, o, in, true);
    CHECK(count_ops(replicated.programs[0]->body, ir::OpKind::reduce_scatter_tree) > 0);
    o.sharding.parameter = {{"kv_heads", "model"}, {"mlp", "model"}, {"vocab", "model"}};
    const Partition sharded = check_parts(p, o, in, true);
    for (const auto& program : sharded.programs) {  // neither whole logits nor a whole table
      CHECK_FALSE(has_value_with(program->body, {{"vocab", kVocabSize}}));
      CHECK(count_ops(program->body, ir::OpKind::cross_entropy) == 0);
      CHECK(count_ops(program->body, ir::OpKind::all_reduce_bits) == 2);  // embedding, targets
    }
    // Control: with one leaf less somewhere the same function has other bits (in bf16 its roundings may hide
    // them).
    for (size_t axis = 0; compute == DType::f32 && axis < p.leaves.axes.size(); ++axis) {
      ir::Program other = p;
      other.leaves.axes[axis].second = 1;
      const auto engine = test_engine();
      const auto a = run_whole(*engine, p, in), b = run_whole(*engine, other, in);
      bool differ = false;
      for (size_t i = 0; i < a.size(); ++i) differ |= !same_bits(a[i], b[i]);
      CHECK_MESSAGE(differ, p.leaves.axes[axis].first);
    }
  }
}

TEST_CASE("parameters in shards along embed over two and three workers") {
  for (int64_t workers : {2, 3}) {
    size_t n = 0;
    const ir::Program p = llama(false, DType::bf16, 9, {}, &n);
    PartitionOptions o = options(p, n);
    o.sharding.mesh.axes = {{"data", workers}};
    o.sharding.parameter = {{"embed", "data"}};
    o.cells = {{"embed", 10}};
    const Partition parts = check_parts(p, o, inputs(p, n), true);
    CHECK(parts.programs[0]->body.shape(parts.programs[0]->body.params[0]).size_of("embed") < 20);
    // The stacked weights are gathered layer by layer, inside the loop.
    int64_t inside = 0;
    for (const ir::Op& op : parts.programs[0]->body.ops)
      for (const ir::Block& body : op.regions) inside += count_ops(body, ir::OpKind::all_gather);
    CHECK(inside > 0);
  }
}

TEST_CASE("slow: a mesh of data and model, four leaves over two workers") {
  size_t n = 0;
  const ir::Program p =
      llama(true, DType::bf16, 300, {{{"kv_heads", 2}, {"mlp", 4}, {"vocab", 4}, {"pos", 4}}}, &n);
  PartitionOptions o = options(p, n);
  o.sharding.mesh.axes = {{"data", 2}, {"model", 2}};
  o.sharding.compute = kModel;
  o.sharding.parameter = {{"embed", "data"}, {"mlp", "model"}, {"kv_heads", "model"}};
  o.cells = {{"embed", 5}};
  check_parts(p, o, inputs(p, n), true);
}

TEST_CASE("slow: positions alone are split (context parallel)") {
  size_t n = 0;
  const ir::Program p = llama(true, DType::bf16, 260, {{{"pos", 3}}}, &n);
  PartitionOptions o = options(p, n);
  o.sharding.mesh.axes = {{"context", 3}};
  o.sharding.compute = {{"pos", "context"}};
  check_parts(p, o, inputs(p, n), true);
}

}  // namespace
}  // namespace ostro::spmd
