// LeafParams, LeafResults, EvalResults: the parameters and results of the programs that compute losses
// (signature.h).
#pragma once

#include <vector>

#include "ostro/train/programs/signature.h"

namespace ostro::train {

// The parameters of the leaf program, the evaluation program and the reference program.
template <typename T>
struct LeafParams {
  std::vector<T> params;
  // Rows of data: tokens, targets, loss_mask; segments if documents are masked from each other; the reference
  // f64 [batch, side] if the objective compares with one. The leaf program with integer products also takes
  // draw_key u32 [batch, word], the key of the step, and example i32 [batch], the number of each example in
  // its batch.
  std::vector<T> batch;

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(per_parameter(""), s.params...);
    v(rest(), s.batch...);
  }
};

template <typename T>
struct LeafResults {
  T loss_sum{}, weight{};       // f64, of the leaf's rows
  std::vector<T> gradients;     // of the trained parameters
  std::vector<T> fingerprints;  // of the gradients, with chain.leaf_gradients
  std::vector<T> measures;      // other measured sums (measure_names), f64

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(one("loss_sum", ir::DType::f64), s.loss_sum...);
    v(one("weight", ir::DType::f64), s.weight...);
    v(per_trained("gradient/"), s.gradients...);
    v(per_trained("fingerprint/", ir::Shape{ir::DType::i64, {{"lane", 2}}}), s.fingerprints...);
    v(each("measure/", ir::scalar(ir::DType::f64)), s.measures...);
  }
};

// Sums over the rows of a batch, f64.
template <typename T>
struct LossSums {
  T loss_sum{}, weight{};
  std::vector<T> measures;

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(one("loss_sum", ir::DType::f64), s.loss_sum...);
    v(one("weight", ir::DType::f64), s.weight...);
    v(each("measure/", ir::scalar(ir::DType::f64)), s.measures...);
  }
};

// The results of the evaluation program (make_eval_program).
template <typename T>
struct EvalResults {
  T rows{};  // "per_token": the loss of each token, f32 [batch, pos]; for pairs "margin", f64 [batch]
  LossSums<T> sums;

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(Field{Field::Kind::kOne, "", {}}, s.rows...);
    LossSums<T>::visit(v, s.sums...);
  }
};

}  // namespace ostro::train
