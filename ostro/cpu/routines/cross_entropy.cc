// cross_entropy and its gradient on the kernels of cross_entropy.h. Dense operands.
#include "ostro/kernels/losses/cross_entropy.h"

#include "ostro/cpu/routines/op_call.h"

namespace ostro::cpu {
namespace {

// Targets counted from the first index of these logits.
struct Targets {
  std::vector<int32_t> shifted;
  const int32_t* data;
};
Targets targets_of(const Array& targets, int64_t origin) {
  Targets t{{}, targets.as<int32_t>()};
  if (origin == 0) return t;
  for (int64_t i = 0; i < targets.count(); ++i) {
    const int64_t local = t.data[i] - origin;
    t.shifted.push_back(local < 0 || local > INT32_MAX ? -1 : static_cast<int32_t>(local));
  }
  t.data = t.shifted.data();
  return t;
}

std::vector<int64_t> leaf_ends(const OpCall& call) {
  const ir::Axis& vocab = call.in[0].shape().axes.back();
  std::vector<int64_t> ends = numerics::leaf_ends(vocab.name, vocab.size, call.leaves.count(vocab.name));
  if (ends.size() == 1) ends.clear();
  return ends;
}

kernels::CrossEntropyForward forward_of(const OpCall& call, const Targets& targets,
                                        std::span<const int64_t> ends) {
  kernels::CrossEntropyForward f;
  f.rows = call.in[1].count();
  f.vocab = f.row_stride = call.in[0].shape().axes.back().size;
  f.logits = call.in[0].as<float>();
  f.targets = targets.data;
  f.z = static_cast<float>(call.attrs.f64("z", 0.0));
  f.vocab_leaf_ends = ends;
  f.loss = call.out[0].as<float>();
  f.m = call.out[1].as<float>();
  f.r = call.out[2].as<float>();
  f.lse = call.out[3].as<float>();
  return f;
}

kernels::CrossEntropyBackward backward_of(const OpCall& call, const Targets& targets) {
  kernels::CrossEntropyBackward b;
  b.rows = call.in[1].count();
  b.vocab = b.row_stride = b.dlogits_stride = call.in[0].shape().axes.back().size;
  b.logits = call.in[0].as<float>();
  b.targets = targets.data;
  b.z = static_cast<float>(call.attrs.f64("z", 0.0));
  b.m = call.in[2].as<float>();
  b.r = call.in[3].as<float>();
  b.lse = call.in[4].as<float>();
  b.w = call.in[5].as<float>();
  b.dlogits = call.out[0].data;
  b.dlogits_type =
      call.out[0].dtype() == ir::DType::bf16 ? machine::FloatType::kBf16 : machine::FloatType::kF32;
  // The rows have one stride: they are dense, or as far apart as the rows of the logits that they overwrite.
  const compile::View& out = *call.out[0].view;
  for (size_t i = 0; i + 1 < out.strides.size(); ++i)
    if (out.shape.axes[i].size > 1) b.dlogits_stride = out.strides[i];
  return b;
}

}  // namespace

Status run_cross_entropy(const OpCall& call) {
  const Targets targets = targets_of(call.in[1], integer_of(call.in[2]));
  const std::vector<int64_t> ends = leaf_ends(call);
  kernels::cross_entropy_forward(forward_of(call, targets, ends), call.isa, call.pool);
  return Status();
}

Status run_cross_entropy_sum(const OpCall& call) {
  const std::vector<int64_t> ends = leaf_ends(call);
  kernels::CrossEntropyForward f;
  f.rows = call.in[1].count();
  f.vocab = f.row_stride = call.in[0].shape().axes.back().size;
  f.logits = call.in[0].as<float>();
  f.vocab_leaf_ends = ends;
  kernels::cross_entropy_sum(f, call.in[1].as<float>(), call.out[0].as<float>(), call.isa, call.pool);
  return Status();
}

Status run_cross_entropy_grad(const OpCall& call) {
  const Targets targets = targets_of(call.in[1], integer_of(call.in[6]));
  kernels::cross_entropy_backward(backward_of(call, targets), call.isa, call.pool);
  return Status();
}

Status run_cross_entropy_both(const OpCall& loss, const OpCall& gradient) {
  const Targets targets = targets_of(loss.in[1], integer_of(loss.in[2]));
  const std::vector<int64_t> ends = leaf_ends(loss);
  kernels::cross_entropy_both(forward_of(loss, targets, ends), backward_of(gradient, targets), loss.isa,
                              loss.pool);
  return Status();
}

}  // namespace ostro::cpu
