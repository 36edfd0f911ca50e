// test_llama, llama_inputs: a small Llama for the tests of partitioned programs: the program of a leaf of the
// batch, and its inputs.
#pragma once

#include "ostro/grad/value_and_grad.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/models/model_functions.h"
#include "ostro/spmd/parts_for_test.h"

namespace ostro::spmd {

inline constexpr int64_t kLlamaVocab = 44;

// parameters, tokens, targets, weights -> loss, weight, gradients. Widths are small; layers, kinds and tying
// are those of `o`.
inline ir::Program test_decoder(models::DecoderOptions o, DType compute, int64_t pos,
                                numerics::LeafTable leaves, size_t* parameters) {
  o.seq_len = pos;
  o.hidden_dim = 20;
  o.intermediate_dim = 28;
  o.num_heads = 4;
  o.num_kv_heads = 2;
  o.head_dim = 6;
  o.z_loss_weight = 1e-3;
  check_ok(o.resolve());
  const models::ModelFunctions model = models::model_functions<models::Decoder>(o, kLlamaVocab, compute);
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

inline ir::Program test_llama(bool tied, DType compute, int64_t pos, numerics::LeafTable leaves,
                              size_t* parameters) {
  models::DecoderOptions o;
  o.num_layers = 2;
  o.tie_word_embeddings = tied;
  return test_decoder(o, compute, pos, std::move(leaves), parameters);
}

inline PartitionOptions llama_options(const ir::Program& p, size_t parameters) {
  PartitionOptions o;
  o.params.assign(p.body.params.size(), Role::kActivation);
  o.results.assign(p.body.results.size(), Role::kActivation);
  std::fill_n(o.params.begin(), parameters, Role::kParameter);
  std::fill_n(o.results.begin() + 2, parameters, Role::kParameter);
  return o;
}

// Parameters of a size at which attention and softmax do not saturate, rows of tokens.
inline std::vector<runtime::Buffer> llama_inputs(const ir::Program& p, size_t parameters) {
  std::vector<runtime::Buffer> in = test_inputs(p, kLlamaVocab);
  for (size_t i = 0; i < parameters; ++i)
    for (float& x : in[i].mutable_as<float>()) x *= 0.125f;
  return in;
}

inline const ir::AxisMap kModel = {
    {"kv_heads", "model"}, {"mlp", "model"}, {"vocab", "model"}, {"pos", "model"}};

}  // namespace ostro::spmd
