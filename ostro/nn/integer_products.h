// IntegerProducts, integer_product, expert_integer_product: matrix products on integers that share powers of
// two (docs/spec/numerics.md, N20), with their derivative. Called while tracing; TraceError for arrays that
// do not fit.
#pragma once

#include <cstdint>

#include "ostro/trace/ops.h"

namespace ostro::nn {

// The type of activations, and whether products of matrices, and those of attention, are computed on
// integers, or those of bf16 matrices by the rule of tensor cores. A type alone converts to it: products are
// then computed in that type.
struct Precision {
  Precision(DType type) : dtype(type) {}  // NOLINT: either stands for the other
  Precision(DType type, int64_t block) : dtype(type), int8_block(block) {}

  DType dtype;
  int64_t int8_block = 0;        // numbers that share a scale; 0: no integers
  int64_t attention_slices = 0;  // integers for each number in attention (numerics.md N21); 0: no integers
  ProductRule rule = ProductRule::kN7;  // of bf16 products outside of attention (numerics.md N23)
};

// What the dithering of gradients draws from: the key of the step, u32[word:2], and the number, an i64
// scalar, of the first example of the leaf in its batch. Empty where nothing is differentiated.
struct Draws {
  Array key, first;
};

// The options of the products with one matrix. `key` and `first` are empty where nothing is differentiated.
struct IntegerProducts {
  int64_t block = 0;
  Array key;    // of the matrix, or of all its layers: u32[word:2]
  Array first;  // Draws::first
};

// Returns x w, contracted over the axes `in`, of type `result`. The product is one of integers: x and w are
// quantised by rounding to nearest, w from the type in which it is held. The two gradients are products of
// integers too: of the cotangent with w, and of the cotangent with x. For them the cotangent is rounded to
// x's type and quantised with dithering. `layer`: the index of the matrix among those with one key, an i32
// scalar, or empty.
Array integer_product(const IntegerProducts& products, const Array& x, const Array& w, const Axes& in,
                      const Array& layer, DType result, Loc loc);

// The same for rows that choose their matrix: x times the part of w at the index `expert`, i32, along `axis`
// of w (trace/ops.h, expert_dot). x may be f32; its gradient is then f32. An expert's gradient is cut in
// blocks of its own rows.
Array expert_integer_product(const IntegerProducts& products, const Array& x, const Array& w,
                             const std::string& axis, const Array& expert, const Axes& in, const Array& layer,
                             DType result, Loc loc);

}  // namespace ostro::nn
