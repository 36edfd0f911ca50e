// UpdateParams, UpdateResults: the parameters and results of the update program (signature.h).
//
// A new result is declared in UpdateMeasures, when it follows from the gradients, or in UpdateReport, when it
// follows from the new parameters; programs.cc traces it. All ways of running a step carry it along.
#pragma once

#include <vector>

#include "ostro/runtime/buffer.h"
#include "ostro/train/programs/signature.h"

namespace ostro::train {

template <typename T>
struct UpdateParams {
  std::vector<T> params, optimizer;
  std::vector<T> gradients;  // of the trained parameters, summed over all leaves
  T loss_sum{}, weight{};    // f64, of the whole batch
  std::vector<T> scalars;    // the optimizer's, f32 (optim::Optimizer::scalars)

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(per_parameter(""), s.params...);
    v(optimizer_arrays(), s.optimizer...);
    v(per_trained("gradient/"), s.gradients...);
    v(one("loss_sum", ir::DType::f64), s.loss_sum...);
    v(one("weight", ir::DType::f64), s.weight...);
    v(rest(ir::scalar(ir::DType::f32)), s.scalars...);
  }
};

// The values that a step measures before it changes the state. All are scalars.
template <typename T>
struct UpdateMeasures {
  T loss{};                    // f32, the mean
  T gradient_norm{};           // f64
  T ok{};                      // bool: both are finite; if not, the state stays as it is
  std::vector<T> group_norms;  // f64, of parameters that are clipped by themselves (optim clip_sets)
  std::vector<T> watched;      // f64, norms for the metrics (watch.h)

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(one("loss", ir::DType::f32), s.loss...);
    v(one("gradient_norm", ir::DType::f64), s.gradient_norm...);
    v(one("ok", ir::DType::boolean), s.ok...);
    v(each("gradient_norm/", ir::scalar(ir::DType::f64)), s.group_norms...);
    v(each("watch/", ir::scalar(ir::DType::f64)), s.watched...);
  }
};

// The values that a step reports of the new parameters.
template <typename T>
struct UpdateReport {
  std::vector<T> fingerprints;  // i64 [lane]
  std::vector<T> watched;       // f64, norms for the metrics (watch.h)

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(per_parameter("fingerprint/", ir::Shape{ir::DType::i64, {{"lane", 2}}}), s.fingerprints...);
    v(each("watch/", ir::scalar(ir::DType::f64)), s.watched...);
  }
};

template <typename T>
struct UpdateResults {
  std::vector<T> params, optimizer;
  UpdateMeasures<T> measures;
  UpdateReport<T> report;

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(per_parameter(""), s.params...);
    v(optimizer_arrays(), s.optimizer...);
    UpdateMeasures<T>::visit(v, s.measures...);
    UpdateReport<T>::visit(v, s.report...);
  }
};

// The measures as numbers: each value is exact in a double; ok is 0 or 1. numbers_of reads them from any
// memory; its errors are those of the memory.
using Measured = UpdateMeasures<double>;
Result<Measured> numbers_of(const UpdateMeasures<runtime::Buffer>& measures);
UpdateMeasures<runtime::Buffer> buffers_of(const Measured& measured);

}  // namespace ostro::train
