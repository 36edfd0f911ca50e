#include "ostro/kernels/losses/cross_entropy.h"

#include "ostro/base/aligned.h"
#include "ostro/base/check.h"
#include "ostro/kernels/losses/kernels/cross_entropy_kernels.h"

namespace ostro::kernels {
namespace {

const CrossEntropyKernels& table_of(machine::Isa isa) {
  OSTRO_CHECK(machine::has_isa(isa), "cross-entropy kernels for {} on a machine without it",
              machine::isa_name(isa));
  switch (isa) {
    case machine::Isa::kGeneric: return cross_entropy_generic();
    case machine::Isa::kAvx2: return cross_entropy_avx2();
    default: return cross_entropy_avx512();
  }
}

void check_forward(const CrossEntropyForward& args) {
  OSTRO_CHECK(args.vocab >= 1, "cross-entropy over {} classes", args.vocab);
  OSTRO_CHECK(args.vocab_leaf_ends.empty() || args.vocab_leaf_ends.back() == args.vocab,
              "the last vocab leaf ends at {}, vocab is {}", args.vocab_leaf_ends.back(), args.vocab);
}

}  // namespace

void cross_entropy_forward(const CrossEntropyForward& args, machine::Isa isa, machine::ThreadPool& pool) {
  check_forward(args);
  const CrossEntropyKernels& table = table_of(isa);
  pool.parallel_for(args.rows, [&](int64_t begin, int64_t end) { table.forward(args, begin, end); });
}

void cross_entropy_sum(const CrossEntropyForward& args, const float* m, float* sums, machine::Isa isa,
                       machine::ThreadPool& pool) {
  check_forward(args);
  const CrossEntropyKernels& table = table_of(isa);
  pool.parallel_for(args.rows, [&](int64_t begin, int64_t end) { table.sum(args, m, sums, begin, end); });
}

void cross_entropy_both(const CrossEntropyForward& forward, const CrossEntropyBackward& backward,
                        machine::Isa isa, machine::ThreadPool& pool) {
  check_forward(forward);
  OSTRO_CHECK(backward.logits == forward.logits && backward.m == forward.m && backward.z == forward.z,
              "a gradient of another cross-entropy");
  const CrossEntropyKernels& table = table_of(isa);
  pool.parallel_for(forward.rows, [&](int64_t begin, int64_t end) {
    const auto scratch = allocate_aligned(static_cast<size_t>(forward.vocab) * sizeof(float));
    table.both(forward, backward, begin, end, reinterpret_cast<float*>(scratch.get()));
  });
}

void cross_entropy_backward(const CrossEntropyBackward& args, machine::Isa isa, machine::ThreadPool& pool) {
  const CrossEntropyKernels& table = table_of(isa);
  pool.parallel_for(args.rows, [&](int64_t begin, int64_t end) { table.backward(args, begin, end); });
}

}  // namespace ostro::kernels
