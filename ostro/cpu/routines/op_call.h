// OpCall, op_routine: the routines of the CPU engine for single ops of a Plan, and the argument that each of
// them takes.
//
// A routine writes the results of one execution of an op. It is called by one thread and shares the work with
// those of call.pool. Errors: kInvalidArgument when the op does not fit to the run (its workers, or how an
// axis is cut), and those of runtime::Collectives; everything else was checked when the plan was made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/compile/plan/axes.h"
#include "ostro/compile/plan/plan.h"
#include "ostro/machine/isa.h"
#include "ostro/machine/thread_pool.h"
#include "ostro/runtime/engine.h"

namespace ostro::cpu {

// Elements of a value in memory: data points at the element with all indices 0.
struct Array {
  const compile::View* view = nullptr;
  char* data = nullptr;

  const ir::Shape& shape() const { return view->shape; }
  ir::DType dtype() const { return view->shape.dtype; }
  int64_t count() const { return view->shape.count(); }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

// The value of a scalar of the type i32, u32 or i64.
int64_t integer_of(const Array& scalar);

using compile::axes_named, compile::axes_without, compile::count_of;

class Flights;

// Everything is borrowed for the duration of the call. Operands are dense unless
// cpu_target().reads_views(kind); results are dense.
struct OpCall {
  ir::OpKind kind;
  const ir::Attrs& attrs;
  std::span<const Array> in;
  std::span<const Array> out;
  const numerics::LeafTable& leaves;
  const runtime::RunContext& context;
  machine::ThreadPool& pool;
  machine::Isa isa;
  Flights& flights;    // exchanges that are on their way
  bool go_on = false;  // dot_int8: adds to its result (compile::Step::goes_on)
};

using OpRoutine = Status (*)(const OpCall&);

// The routine of an op; nullptr for those that become other steps (layout, control) or need preparation
// (dot).
OpRoutine op_routine(ir::OpKind kind);

// The properties of these routines that lowering depends on.
compile::Target cpu_target();

// elementwise.cc
Status run_elementwise(const OpCall& call);
// layout.cc
// Copies the elements of `from` to `to`. They have the same shape; each may have any strides.
void copy_view(const Array& from, const Array& to, machine::ThreadPool& pool);
Status run_concat(const OpCall& call);  // concat, stack
Status run_pad(const OpCall& call);
Status run_dynamic_slice(const OpCall& call);
Status run_dynamic_update_slice(const OpCall& call);
// sources.cc
Status run_iota(const OpCall& call);
Status run_random(const OpCall& call);
Status run_fold_in(const OpCall& call);
// reduce.cc
Status run_reduction(const OpCall& call);  // sum, reduce_max, reduce_min, argmax, tree_sum
// indexed.cc
Status run_gather(const OpCall& call);
Status run_scatter_add(const OpCall& call);
Status run_sort(const OpCall& call);  // sort, top_k
// dequantize.cc
Status run_dequantize(const OpCall& call);
// integers/integer_products.cc
Status run_quantize(const OpCall& call);
Status run_dot_int8(const OpCall& call);
// integers/expert_integers.cc
Status run_expert_dot_int8(const OpCall& call);
Status run_expert_outer_int8(const OpCall& call);
// expert.cc
Status run_expert_dot(const OpCall& call);
Status run_expert_outer(const OpCall& call);
// attention.cc
Status run_attention(const OpCall& call);
Status run_attention_grad(const OpCall& call);
// paged.cc
Status run_paged_write(const OpCall& call);
Status run_paged_attention(const OpCall& call);
// cross_entropy.cc
Status run_cross_entropy(const OpCall& call);
Status run_cross_entropy_sum(const OpCall& call);
Status run_cross_entropy_grad(const OpCall& call);
// Runs a cross_entropy and the cross_entropy_grad of the same logits together, row by row.
Status run_cross_entropy_both(const OpCall& loss, const OpCall& gradient);
// state.cc
Status run_box_sumsq(const OpCall& call);
Status run_fingerprint(const OpCall& call);
// Runs a pointwise kernel piece by piece, and after each piece the fingerprints in Step::epilogues. `in` and
// `out` are the operands and results of the step, `operands` those of the kernel.
Status run_with_fingerprints(const compile::Step& step, machine::FunctionRef<void(int64_t, int64_t)> kernel,
                             std::span<const Array> operands, std::span<const std::vector<Array>> in,
                             std::span<const std::vector<Array>> out, machine::ThreadPool& pool,
                             machine::Isa isa);
// collective.cc
Status run_collective(const OpCall& call);
// exchange.cc
Status run_exchange_leaves(const OpCall& call);

// Calls f with a value of the type that elementwise ops compute a dtype in: float for f32 and bf16, uint8_t
// for bool.
template <typename F>
decltype(auto) with_element_type(ir::DType dtype, F&& f) {
  switch (dtype) {
    case ir::DType::f32:
    case ir::DType::bf16: return f(float{});
    case ir::DType::f64: return f(double{});
    case ir::DType::i32: return f(int32_t{});
    case ir::DType::i64: return f(int64_t{});
    case ir::DType::u32: return f(uint32_t{});
    case ir::DType::i8: return f(int8_t{});
    case ir::DType::boolean: break;
  }
  return f(uint8_t{});
}

}  // namespace ostro::cpu
