#include "ostro/optim/factors.h"

#include "ostro/optim/matrix/eigenbasis.h"
#include "ostro/trace/control.h"

namespace ostro::optim {

Factors::Factors(const Parameter& parameter, int64_t largest) {
  if (!is_hidden_matrix(parameter)) return;
  parts_.emplace_back(parameter);
  const auto& parts = parts_[0].parts();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].row_count <= largest) all_.push_back({i, kRows, kColumns});
    if (parts[i].column_count <= largest) all_.push_back({i, kColumns, kRows});
  }
}

std::vector<StateArray> Factors::state() const {
  std::vector<StateArray> out;
  for (const One& one : all_) {
    const auto& parts = parts_[0].parts();
    const MatrixParts::Part& part = parts[one.part];
    const bool rows = one.axis == kRows;
    const int64_t size = rows ? part.row_count : part.column_count;
    Shape shape{DType::f32, part.stack};
    shape.axes.insert(shape.axes.end(), {{one.axis, size}, {kOther, size}});
    // Of a fused weight: with the number of the map.
    const std::string number = parts.size() == 1 ? "" : "_" + std::to_string(one.part);
    for (const char* what : {"factor", "basis"})
      out.push_back({std::string(rows ? "row_" : "column_") + what + number, shape});
  }
  return out;
}

std::vector<Array> Factors::bases(const std::vector<Array>& state, const Array& started) const {
  std::vector<Array> out;
  for (size_t i = 0; i < all_.size(); ++i) {
    const Array& kept = state[2 * i + 1];
    out.push_back(select(started > 0.0f, kept, identity(all_[i].axis, kOther, kept.size(kOther))));
  }
  return out;
}

Array Factors::turned(const Array& x, const std::vector<Array>& bases, bool back) const {
  std::vector<Array> matrices = parts_[0].split_up(x);
  for (size_t i = 0; i < all_.size(); ++i) {
    const std::string& axis = all_[i].axis;
    Array& it = matrices[all_[i].part];
    it = back ? dot(bases[i], rename(it, axis, kOther), kOther)
              : rename(dot(bases[i], it, axis), kOther, axis);
  }
  return parts_[0].joined(matrices);
}

Array Factors::scaled(const Array& x, const std::vector<Array>& bases,
                      const std::vector<Array>& values) const {
  std::vector<Array> matrices = parts_[0].split_up(x);
  for (size_t i = 0; i < all_.size(); ++i) {
    Array& it = matrices[all_[i].part];
    const Array inside = dot(bases[i], it, all_[i].axis) * values[i];
    it = dot(bases[i], inside, kOther);
  }
  return parts_[0].joined(matrices);
}

// factor = beta factor + (1 - beta) G G^T, and if `refresh`, one step of orthogonal iteration of the basis
// with it.
std::vector<Array> Factors::followed(const std::vector<Array>& state, const std::vector<Array>& bases,
                                     const Array& g, double beta, const Array& refresh) const {
  std::vector<Array> out;
  const std::vector<Array> gradients = parts_[0].split_up(g);
  for (size_t i = 0; i < all_.size(); ++i) {
    const One& one = all_[i];
    const Array& its = gradients[one.part];
    const Array square = dot(its, rename(its, one.axis, kOther), one.far);
    const Array factor = state[2 * i] * rounded(beta) + square * rounded(1.0 - beta);
    const Array basis = cond<Array>(
        refresh > 0.0f, [&] { return iterated_basis(factor, bases[i], one.axis, kOther); },
        [&] { return bases[i]; });
    out.push_back(transpose(factor, state[2 * i].shape().names()));
    out.push_back(transpose(basis, state[2 * i + 1].shape().names()));
  }
  return out;
}

}  // namespace ostro::optim
