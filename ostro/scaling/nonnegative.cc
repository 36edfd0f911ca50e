#include "ostro/scaling/nonnegative.h"

#include <utility>

#include "ostro/numerics/functions.h"

namespace ostro::scaling {
namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void subtract(std::span<double> from, double factor, std::span<const double> what) {
  for (size_t i = 0; i < from.size(); ++i) from[i] -= factor * what[i];
}

// A column of which less than this share is left when the others are taken out of it depends on them.
constexpr double kDependent = 1e-9;
constexpr unsigned kSets[] = {7, 6, 5, 3, 4, 2, 1};  // all columns first

}  // namespace

NonnegativeSolver::NonnegativeSolver(size_t size) : residual(size), rest_(size) {
  for (Basis* basis : {&basis_, &best_basis_})
    for (std::vector<double>& vector : basis->vectors) vector.resize(size);
}

void NonnegativeSolver::solve(const Columns& columns, std::span<const double> y) {
  coefficients = {};
  objective = dot(y, y);
  residual.assign(y.begin(), y.end());
  best_basis_.size = 0;
  for (const unsigned set : kSets) {
    if (!solve_set(columns, y, set) || !(sum_ < objective)) continue;
    coefficients = found_;
    objective = sum_;
    std::swap(residual, rest_);
    std::swap(best_basis_, basis_);
    if (set == kSets[0]) return;  // no other set can be better
  }
}

bool NonnegativeSolver::solve_set(const Columns& columns, std::span<const double> y, unsigned set) {
  std::array<size_t, 3> used{};
  std::array<std::array<double, 3>, 3> r{};
  basis_.size = 0;
  for (size_t k = 0; k < columns.size(); ++k) {
    if ((set >> k & 1) == 0) continue;
    const size_t j = basis_.size++;
    used[j] = k;
    std::vector<double>& q = basis_.vectors[j];
    q.assign(columns[k].begin(), columns[k].end());
    for (size_t i = 0; i < j; ++i) {
      r[i][j] = dot(basis_.vectors[i], q);
      subtract(q, r[i][j], basis_.vectors[i]);
    }
    const double left = dot(q, q), whole = dot(columns[k], columns[k]);
    if (!(left > kDependent * kDependent * whole)) return false;
    r[j][j] = numerics::sqrt_f64(left);
    for (double& x : q) x /= r[j][j];
  }
  rest_.assign(y.begin(), y.end());
  std::array<double, 3> z{};
  for (size_t j = 0; j < basis_.size; ++j) {
    z[j] = dot(basis_.vectors[j], rest_);
    subtract(rest_, z[j], basis_.vectors[j]);
  }
  found_ = {};
  for (size_t j = basis_.size; j-- > 0;) {
    double value = z[j];
    for (size_t i = j + 1; i < basis_.size; ++i) value -= r[j][i] * found_[used[i]];
    found_[used[j]] = value / r[j][j];
    if (found_[used[j]] < 0) return false;
  }
  sum_ = dot(rest_, rest_);
  return true;
}

void NonnegativeSolver::project(std::span<double> x) const {
  for (size_t j = 0; j < best_basis_.size; ++j)
    subtract(x, dot(best_basis_.vectors[j], x), best_basis_.vectors[j]);
}

}  // namespace ostro::scaling
