// Orthogonal iteration: the bits of docs/reference/optimizers.md, and that it finds eigenvectors.
#include "ostro/optim/matrix/eigenbasis.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/jit.h"

namespace ostro::optim {
namespace {

using namespace test;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;

Floats waves(size_t n, int seed) {
  Floats out;
  for (size_t i = 0; i < n; ++i)
    out.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i * i % 1013) + seed)));
  return out;
}

// numerics.md N4 in f64.
double striped_sum(const Doubles& x) {
  Doubles lane(64, 0.0);
  for (size_t i = 0; i < x.size(); ++i) lane[i % 64] += x[i];
  for (size_t i = 0; i < 16; ++i) lane[i] = (lane[i] + lane[16 + i]) + (lane[32 + i] + lane[48 + i]);
  for (size_t width = 8; width >= 1; width /= 2)
    for (size_t i = 0; i < width; ++i) lane[i] += lane[i + width];
  return lane[0];
}

Array orthonormal_columns(Array x) { return orthonormal(x, "side", "other"); }

Array iterated(Array a, Array basis) { return iterated_basis(a, basis, "side", "other"); }

double product(const Doubles& a, const Doubles& b) {
  Doubles each;
  for (size_t i = 0; i < a.size(); ++i) each.push_back(a[i] * b[i]);
  return striped_sum(each);
}

TEST_CASE("columns are made orthonormal one by one, in f64") {
  DefaultInterpreter use;
  const int64_t rows = 70, columns = 5, layers = 2;
  const std::vector<Axis> axes{{"layers", layers}, {"side", rows}, {"other", columns}};
  const Floats x = waves(static_cast<size_t>(layers * rows * columns), 3);
  Floats want(x.size());
  for (int64_t l = 0; l < layers; ++l) {
    const auto at = [&](int64_t i, int64_t j) { return static_cast<size_t>((l * rows + i) * columns + j); };
    std::vector<Doubles> column(columns);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) column[j].push_back(x[at(i, j)]);
    for (int64_t j = 0; j < columns; ++j) {
      const double length = std::sqrt(product(column[j], column[j]));
      for (double& v : column[j]) v = v / length;
      for (int64_t other = j + 1; other < columns; ++other) {
        const double part = product(column[other], column[j]);
        for (int64_t i = 0; i < rows; ++i) column[other][i] = column[other][i] - part * column[j][i];
      }
      for (int64_t i = 0; i < rows; ++i) want[at(i, j)] = static_cast<float>(column[j][i]);
    }
  }
  const auto run = jit(orthonormal_columns);
  CHECK(same_bits(run(f32(axes, x)), f32(axes, want)));
}

TEST_CASE(
    "the basis goes to the eigenvectors, the largest eigenvalue first, and keeps its vectors without "
    "gradients") {
  DefaultInterpreter use;
  const int64_t n = 6;
  const std::vector<Axis> axes{{"side", n}, {"other", n}};
  const auto iterate = jit(iterated);
  Floats start(n * n, 0.0f);
  for (int64_t i = 0; i < n; ++i) start[i * n + i] = 1;
  Array basis = f32(axes, start);
  CHECK(same_bits(iterate(f32(axes, Floats(n * n, 0.0f)), basis), basis));

  const Floats vectors = values<float>(jit(orthonormal_columns)(f32(axes, waves(n * n, 1))));
  Floats matrix(n * n, 0.0f);  // eigenvalues 1, 1/4, 1/16, ...
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t k = 0; k < n; ++k)
        matrix[i * n + j] += vectors[i * n + k] * vectors[j * n + k] * static_cast<float>(std::pow(0.25, k));
  for (int i = 0; i < 30; ++i) basis = iterate(f32(axes, matrix), basis);
  const Floats found = values<float>(basis);
  for (int64_t k = 0; k < n; ++k) {
    double cosine = 0;
    for (int64_t i = 0; i < n; ++i) cosine += double{found[i * n + k]} * vectors[i * n + k];
    CHECK(std::abs(cosine) > 0.9999);
  }
}

}  // namespace
}  // namespace ostro::optim
