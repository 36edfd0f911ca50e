// Linear, Embedding, LowRank: structs of parameters with a call operator. Called while tracing or on concrete
// arrays (trace/array.h); TraceError for arrays that do not fit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ostro/nn/integer_products.h"
#include "ostro/trace/ops.h"
#include "ostro/trace/tree.h"

namespace ostro::nn {

// The matrices that one weight holds: consecutive ranges of one of its output axes. Their names are those of
// configurations ("q_proj"). A weight that is one matrix has one part and no axis.
struct Fused {
  struct Part {
    std::string name;
    int64_t count = 1;  // indices of the axis
  };
  std::string axis;
  std::vector<Part> parts;

  std::string text() const;
};

// The axis of stacked parameters, which is their first.
inline constexpr const char* kLayersAxis = "layers";

// The inner axis of an adapter.
inline constexpr const char* kRankAxis = "rank";

// The first axis, behind that of layers, of the factors of several adapters that lie side by side: each row
// then has one of them or none (AdapterOfRow).
inline constexpr const char* kAdaptersAxis = "adapters";

// A low-rank addition to one of the matrices of a Linear (LoRA): scale * (x a) b.
struct LowRank {
  Array a;           // [in..., rank], or [adapters, in..., rank]
  Array b;           // [rank, out...]; of a fused weight, its part of the axis; or [adapters, rank, out...]
  std::string name;  // Fused::Part::name
  double scale = 1;
  OSTRO_FIELDS(a, b)
  OSTRO_STATICS(name, scale)
  std::string ostro_name() const { return name; }
};

// The axis of scales that stands for the axes of a stored matrix over which a product sums.
inline constexpr const char* kScaleGroupsAxis = "scale_groups";

// y = x w (+ bias), contracted over the named input axes (in this order: it is part of the result).
struct Linear {
  Array weight;  // [in..., out...]
  Array bias;    // [out...] or empty
  Axes in;
  Fused fused;                // the matrices of the weight; may be left out
  std::vector<LowRank> lora;  // at most one for each part (adapters.h)
  Array scales;               // of an i8 weight: [scale_groups, out...] (trace/ops.h, dequantize), else empty
  std::optional<IntegerProducts> integers;  // compute() in policy.h sets it, and layer
  Array layer;                              // with integers: the index of each stacked matrix, i32 [layers]
  ProductRule rule = ProductRule::kN7;      // compute() sets it, too: of the product and those of adapters
  OSTRO_FIELDS(weight, scales, bias, lora, layer)
  auto ostro_statics() const {
    return std::tuple(in, fused.text(), integers ? integers->block : 0, static_cast<int>(rule));
  }

  // x [..., in...] gives [..., out...]. x is cast to the weight's compute dtype; the result has that dtype
  // too. The product of an adapter also has it, and is scaled and added in f32 (numerics.md N1).
  Array operator()(const Array& x, Loc loc = Loc::current()) const { return to(dtype(), x, loc); }
  // As the call, with another dtype of the result and of the adapters' products.
  Array to(DType result, const Array& x, Loc loc = Loc::current()) const;
  DType dtype() const;
};

// The dtype in which a parameter is read, an i8 one (with `scales`, else empty) after it was dequantised.
DType read_dtype(const Array& parameter, const Array& scales = {});
// The matrix that products read: the parameter, or if it has scales, its dequantised value.
Array read_matrix(const Array& parameter, const Array& scales, const Axes& over, Loc loc = Loc::current());

// The matrix that integer products read: as it is held, or dequantised.
Array held_matrix(const Array& parameter, const Array& scales, const Axes& over, Loc loc = Loc::current());

// Returns x cast to the dtype in which the parameter is read.
Array cast_like(const Array& x, const Array& parameter, Loc loc = Loc::current());

// Returns x w, contracted over the axes `in`, of type `result`. The product is computed in the parameter's
// compute dtype, summed by `rule`, or with `integers` on integers. `scales` and `layer` are those of Linear.
Array product(const Array& x, const Array& parameter, const Array& scales, const Axes& in,
              const std::optional<IntegerProducts>& integers, const Array& layer, ProductRule rule,
              DType result, Loc loc);

// The table of token vectors.
struct Embedding {
  Array weight;                             // [vocab, embed]
  std::optional<IntegerProducts> integers;  // for attend(), as in Linear
  ProductRule rule = ProductRule::kN7;      // likewise
  OSTRO_FIELDS(weight)

  // Looks up rows of the table: ids [...] i32 -> [..., embed] in the compute dtype.
  Array operator()(const Array& ids, Loc loc = Loc::current()) const {
    return gather(weight, "vocab", ids, loc);
  }
  // The tied head: x [..., embed] -> f32 logits [..., vocab].
  Array attend(const Array& x, Loc loc = Loc::current()) const {
    return product(cast_like(x, weight, loc), weight, Array(), {"embed"}, integers, Array(), rule, DType::f32,
                   loc);
  }
};

}  // namespace ostro::nn
