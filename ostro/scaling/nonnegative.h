// NonnegativeSolver: least squares over three columns with coefficients of at least 0, in closed form: every
// set of columns is solved by Gram and Schmidt, and the best solution without a negative coefficient is
// taken. Plain doubles in a fixed order: the same bits on every machine. One thread uses it.
#pragma once

#include <array>
#include <span>
#include <vector>

namespace ostro::scaling {

class NonnegativeSolver {
 public:
  // `size` is the length of all columns.
  explicit NonnegativeSolver(size_t size);

  using Columns = std::array<std::span<const double>, 3>;
  // Minimises the sum of (y - columns * coefficients)^2. Afterwards the members below have the solution.
  void solve(const Columns& columns, std::span<const double> y);
  // The part of `x` that no combination of the columns in use can make, in place.
  void project(std::span<double> x) const;

  std::array<double, 3> coefficients{};  // 0 of columns that are not in use
  double objective = 0;                  // the sum of squares
  std::vector<double> residual;          // y - columns * coefficients

 private:
  // Solves over the columns whose bits are in `set`. False: they are dependent, or a coefficient is negative.
  bool solve_set(const Columns& columns, std::span<const double> y, unsigned set);

  struct Basis {
    std::array<std::vector<double>, 3> vectors;
    size_t size = 0;
  };
  Basis basis_, best_basis_;
  std::vector<double> rest_;
  std::array<double, 3> found_{};
  double sum_ = 0;
};

}  // namespace ostro::scaling
