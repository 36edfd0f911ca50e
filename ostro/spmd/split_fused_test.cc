// Ops that join more than sums over a split axis: rows of a table, losses over a split vocabulary, gradients
// of attention over split queries.
#include "ostro/ir/program/builder.h"
#include "ostro/spmd/hand_written_for_test.h"

namespace ostro::spmd {
namespace {

using ir::OpKind;

TEST_CASE("gather from a table that is split along the axis it reads: rows are selected, bit by bit") {
  const Axis rows{"row", 9};
  for (DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i64, DType::boolean}) {
    const ir::Program p = traced(
        "gather",
        {{dtype, {kVocab, kEmbed}}, {dtype, {rows, kVocab}}, {DType::i32, {rows}}, {DType::i32, {kPos}}},
        {{{"vocab", 4}, {"pos", 2}}}, [&](const Arrays& a) {
          return Arrays{gather(a[0], "vocab", a[2]), gather(a[1], "vocab", a[2]),
                        gather(a[0], "vocab", a[3])};
        });
    auto in = test_inputs(p, kVocab.size);
    // Bits that a sum, a maximum or a float move could lose: -0, NaN with a payload, a denormal.
    if (dtype == DType::f32)
      for (size_t i = 0; i < in[0].as<uint32_t>().size(); i += 2) {
        const uint32_t odd[] = {0x80000000, 0x7fc01234, 0xff812345, 0x00000123};
        in[0].mutable_as<uint32_t>()[i] = odd[i / 2 % 4];
      }
    const int32_t some[] = {0, 43, -1, 44, 15, 16, 32, 1 << 30, 31};  // every worker's edges, and outside
    std::copy(std::begin(some), std::end(some), in[2].mutable_as<int32_t>().begin());
    for (int64_t workers : {2, 3}) {
      PartitionOptions o = model_mesh(p, workers);
      const Partition parts = check_parts(p, o, in, true);
      for (const auto& program : parts.programs) {
        CHECK(count_ops(program->body, OpKind::all_reduce_bits) == 3);
        CHECK_FALSE(has_value_with(program->body, {kVocab}));
      }
      if (dtype != DType::f32) continue;
      check_differs(p,
                    with_ops(parts,
                             [](ir::Op& op) {
                               if (op.kind != OpKind::all_reduce_bits) return;
                               op.kind = OpKind::all_reduce_tree;
                               op.attrs.set("leaves", int64_t{2});
                             }),
                    in);
    }
  }
}

TEST_CASE("the gradient of a split table stays at its worker") {
  ir::Program p;
  p.leaves.axes = {{"vocab", 2}, {"pos", 2}};
  const ir::ValueId update = p.body.add_param({DType::f32, {kBatch, kPos, kEmbed}}),
                    index = p.body.add_param({DType::i32, {kBatch, kPos}});
  ir::Builder b(p.body);
  p.body.results = {b.add(OpKind::scatter_add, {update, index, b.i64_scalar(0)},
                          {{"axis", kVocab.name}, {"size", kVocab.size}, {"position", int64_t{0}}})};
  const Partition parts = check_parts(p, model_mesh(p, 2), test_inputs(p, kVocab.size), true);
  for (const auto& program : parts.programs) {
    CHECK_FALSE(has_value_with(program->body, {kVocab}));
    for (OpKind kind : {OpKind::all_reduce_tree, OpKind::reduce_scatter_tree, OpKind::all_reduce_bits})
      CHECK(count_ops(program->body, kind) == 0);
  }
}

// logits, targets, weights -> loss, m, r, lse, dlogits.
ir::Program loss_program(int64_t leaves, double z, DType dtype) {
  ir::Program p;
  p.name = "loss";
  p.leaves.axes = {{"vocab", leaves}};
  const std::vector<Axis> row = {kBatch, {"pos", 25}};
  const ir::ValueId logits = p.body.add_param({DType::f32, {row[0], row[1], kVocab}}),
                    target = p.body.add_param({DType::i32, row}), w = p.body.add_param({DType::f32, row});
  ir::Builder b(p.body);
  const ir::ValueId zero = b.i64_scalar(0);
  ir::Attrs attrs{{"axis", std::string("vocab")}, {"z", z}};
  p.body.results = b.add_n(OpKind::cross_entropy, {logits, target, zero}, attrs);
  const auto& f = p.body.results;
  attrs.set("dtype", std::string(ir::dtype_name(dtype)));
  p.body.results.push_back(
      b.add(OpKind::cross_entropy_grad, {logits, target, f[1], f[2], f[3], w, zero}, attrs));
  p.body.results.push_back(
      b.add(OpKind::cross_entropy_sum, {logits, f[1]}, {{"axis", std::string("vocab")}}));
  return p;
}

TEST_CASE("cross-entropy over a split vocabulary: no worker has whole logits") {
  for (int64_t leaves : {2, 3, 4, 6})
    for (int64_t workers : {2, 3})
      for (double z : {0.0, 0.125}) {
        if (!fits(leaves, workers)) continue;
        const DType dtype = z == 0 ? DType::f32 : DType::bf16;
        const ir::Program p = loss_program(leaves, z, dtype);
        auto in = test_inputs(p, kVocab.size);
        const int32_t outside[] = {-1, 44, 1 << 30, 0, 43};
        std::copy(std::begin(outside), std::end(outside), in[1].mutable_as<int32_t>().begin());
        // A row whose largest logits are zeros of both signs, at different workers.
        for (int64_t i = 0; i < kVocab.size; ++i) in[0].mutable_as<float>()[static_cast<size_t>(i)] = -1;
        in[0].mutable_as<float>()[1] = -0.0f;
        in[0].mutable_as<float>()[40] = 0.0f;
        for (bool pos : {false, true}) {
          PartitionOptions o = model_mesh(p, workers);
          if (!pos) o.sharding.compute = {{"vocab", "model"}};
          const Partition parts = check_parts(p, o, in, true);
          for (const auto& program : parts.programs) {
            CHECK(count_ops(program->body, OpKind::cross_entropy) == 0);
            CHECK_FALSE(has_value_with(program->body, {kVocab}));
          }
          if (!pos && workers == 3) CHECK(another_order_shows(p, parts, in));
        }
      }
}

TEST_CASE("cross-entropy whose leaves do not fit the workers splits rows") {
  const ir::Program p =
      traced("rows", {{DType::f32, {kBatch, kPos, kVocab}}, {DType::i32, {kBatch, kPos}}}, {{{"pos", 2}}},
             [](const Arrays& a) { return Arrays{cross_entropy(a[0], a[1], "vocab")}; });
  const Partition parts = check_parts(p, model_mesh(p, 2), test_inputs(p, kVocab.size), true);
  CHECK(count_ops(parts.programs[0]->body, OpKind::cross_entropy) == 1);
}

// q, k, v, do (, segments of queries and keys, sink) -> dq, dk, dv (, dsink).
ir::Program attention_gradient(DType dtype, int64_t leaves, bool all, int64_t int8_slices = 0) {
  ir::Program p;
  p.name = "attention_grad";
  p.leaves.axes = {{"pos", leaves}};
  const Axis heads{"kv_heads", 2}, group{"group", 2}, dim{"head_dim", 8}, key{"key_pos", 300};
  const Shape q{dtype, {kBatch, kPos, heads, group, dim}}, k{dtype, {kBatch, key, heads, dim}};
  std::vector<ir::ValueId> x;
  for (const Shape& s : {q, k, k, q}) x.push_back(p.body.add_param(s));
  ir::Builder b(p.body);
  ir::Attrs attrs{{"query", std::string("pos")},
                  {"key", std::string("key_pos")},
                  {"head_dim", std::string("head_dim")},
                  {"scale", 0.3},
                  {"causal", int64_t{1}}};
  std::vector<ir::ValueId> operands{x[0], x[1], x[2], b.i64_scalar(all ? 3 : 0)};
  if (int8_slices != 0) attrs.set("int8_slices", int8_slices);
  if (all) {
    attrs.set("segments", int64_t{1});
    attrs.set("sink", int64_t{1});
    attrs.set("soft_cap", 2.0);
    operands.push_back(p.body.add_param({DType::i32, {kBatch, kPos}}));
    operands.push_back(p.body.add_param({DType::i32, {kBatch, key}}));
    operands.push_back(p.body.add_param({DType::f32, {heads, group}}));
  }
  const std::vector<ir::ValueId> f = b.add_n(OpKind::attention, operands, attrs);
  operands.insert(operands.begin() + 3, {f[0], f[1], f[2], x[3]});
  p.body.results = b.add_n(OpKind::attention_grad, operands, attrs);
  return p;
}

TEST_CASE("the gradient of attention with split queries: partials per leaf, scaled after the tree") {
  for (DType dtype : {DType::f32, DType::bf16})
    for (int64_t leaves : {2, 3, 4})
      for (int64_t workers : {2, 3}) {
        if (!fits(leaves, workers)) continue;
        const bool all = leaves != 2;
        const ir::Program p = attention_gradient(dtype, leaves, all);
        PartitionOptions o = model_mesh(p, workers);
        o.sharding.compute = {{"pos", "model"}};
        const auto in = test_inputs(p, 2);
        const Partition parts = check_parts(p, o, in, true);
        for (const auto& program : parts.programs) CHECK_FALSE(has_value_with(program->body, {kPos}));
        CHECK(count_ops(parts.programs[0]->body, OpKind::all_reduce_tree) == (all ? 3 : 2));
        if (workers == 3) CHECK(another_order_shows(p, parts, in));
        // Without the mark every partial is scaled, too.
        if (dtype == DType::f32)
          check_differs(p, with_ops(parts, [](ir::Op& op) { op.attrs.erase("partial"); }), in);
        // Keys in shards: each worker keeps its part of the sums.
        o.sharding.compute = {{"pos", "model"}, {"key_pos", "model"}};
        check_parts(p, o, in, true);
      }
}

TEST_CASE("the gradient of attention on integers with split queries") {
  for (int64_t workers : {2, 3}) {
    const int64_t leaves = workers == 2 ? 4 : 3;
    const ir::Program p = attention_gradient(DType::bf16, leaves, true, 2);
    PartitionOptions o = model_mesh(p, workers);
    o.sharding.compute = {{"pos", "model"}};
    const auto in = test_inputs(p, 2);
    const Partition parts = check_parts(p, o, in, true);
    // Products of floats are others.
    check_differs(p, with_ops(parts, [](ir::Op& op) { op.attrs.erase("int8_slices"); }), in);
    o.sharding.compute = {{"kv_heads", "model"}};
    if (workers == 2) check_parts(p, o, in, true);
  }
}

}  // namespace
}  // namespace ostro::spmd
