// UpdateParts: the optimizer's update, cut into a part on which all workers must agree and parts that each
// can do alone.
#pragma once

#include <vector>

#include "ostro/spmd/partition.h"
#include "ostro/train/programs/programs.h"

namespace ostro::fleet {

// The parameters and results of the parts, beside train::UpdateMeasures and train::UpdateReport.
template <typename T>
struct MeasureParams {
  std::vector<T> gradients;
  T loss_sum{}, weight{};

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(train::per_trained("gradient/"), s.gradients...);
    v(train::one("loss_sum", ir::DType::f64), s.loss_sum...);
    v(train::one("weight", ir::DType::f64), s.weight...);
  }
};

template <typename T>
struct ApplyParams {
  std::vector<T> params, optimizer, gradients;
  T weight{};
  std::vector<T> scalars;
  train::UpdateMeasures<T> measures;

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(train::per_parameter(""), s.params...);
    v(train::optimizer_arrays(), s.optimizer...);
    v(train::per_trained("gradient/"), s.gradients...);
    v(train::one("weight", ir::DType::f64), s.weight...);
    v(train::rest(ir::scalar(ir::DType::f32)), s.scalars...);
    train::UpdateMeasures<T>::visit(v, s.measures...);
  }
};

template <typename T>
struct ApplyResults {
  std::vector<T> params, optimizer;

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(train::per_parameter(""), s.params...);
    v(train::optimizer_arrays(), s.optimizer...);
  }
};

template <typename T>
struct ReportParams {
  std::vector<T> params;

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    v(train::per_parameter(""), s.params...);
  }
};

template <typename T>
struct ReportResults {
  train::UpdateReport<T> report;
  std::vector<T> expert_loads;  // train::expert_loads, whole

  template <typename Visitor, typename... Self>
  static void visit(Visitor&& v, Self&... s) {
    train::UpdateReport<T>::visit(v, s.report...);
    v(train::rest(), s.expert_loads...);
  }
};

template <template <typename> class Params, template <typename> class Results>
struct Part {
  ir::Program program;
  Params<size_t> params;
  Results<size_t> results;
};

// The update program, cut into three programs. Together they give the same bits.
struct UpdateParts {
  // Workers exchange values here, because a norm is that of gradients of all workers. A worker that knows the
  // measures can finish the step without the others.
  Part<MeasureParams, train::UpdateMeasures> measure;
  // For most optimizers this is element by element, and no worker needs another one. For the others, workers
  // exchange values here, too (UpdatePartitions::joint).
  Part<ApplyParams, ApplyResults> apply;
  Part<ReportParams, ReportResults> report;
};

UpdateParts update_parts(const train::CanonicalPrograms& programs);

// The parts, each partitioned over all axes of the mesh. The parameters of `apply` are the cells that a
// worker owns.
struct UpdatePartitions {
  spmd::Partition measure, apply, report;
  // The positions of their parameters and results, which are the same on every worker.
  train::UpdateMeasures<size_t> measures;
  ApplyParams<size_t> apply_params;
  ApplyResults<size_t> applied;
  ReportResults<size_t> reported;
  // `apply` contains collectives, so new cells go to separate buffers, and replace the old ones when every
  // worker has finished.
  bool joint = false;
};

// `options` says what is split; this function sets its roles. Errors: as of partition().
Result<UpdatePartitions> partition_update(const UpdateParts& parts, spmd::PartitionOptions options);

// The roles of a program's parameters or results: `role` for those that are cut as parameters are; the others
// are whole.
template <template <typename> class Io>
std::vector<spmd::Role> roles_of(const Io<size_t>& places, spmd::Role role) {
  return train::as_list(train::map_fields<spmd::Role>(places, [role](const train::Field& field, size_t) {
    return field.like_parameter() ? role : spmd::Role::kActivation;
  }));
}

}  // namespace ostro::fleet
