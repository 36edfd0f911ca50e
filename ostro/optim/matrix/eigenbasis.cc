#include "ostro/optim/matrix/eigenbasis.h"

#include <algorithm>

#include "ostro/trace/control.h"

namespace ostro::optim {
namespace {

Axes others(const Array& x, const Axes& axes) {
  Axes out;
  for (const Axis& a : x.shape().axes)
    if (std::find(axes.begin(), axes.end(), a.name) == axes.end()) out.push_back(a.name);
  return out;
}

}  // namespace

Array identity(const std::string& side, const std::string& other, int64_t size) {
  return select(iota({side, size}) == iota({other, size}), 1.0f, zeros({{side, size}, {other, size}}));
}

// A scan over the columns, in f64. Step i normalises column i and subtracts its part from all columns, so
// that a later column is orthogonal to all before it when its turn comes.
Array orthonormal(const Array& x, const std::string& along, const std::string& vectors) {
  const std::string number = "number";
  const int64_t n = x.size(vectors);
  Axes order{vectors};
  for (const std::string& name : others(x, {along, vectors})) order.push_back(name);
  order.push_back(along);
  // Right-looking: all columns lose their parts along a finished one at once, also those before it, which are
  // not read again.
  const auto step = [&](const Arrays& carry, const Arrays& i) -> std::pair<Arrays, Arrays> {
    const Array& rest = carry[0];
    const Array v = gather(rest, vectors, i[0]);
    const Array q = v / sqrt(sum(v * v, {along}, Order::kStriped, DType::f64));
    const Array parts = sum(rest * q, {along}, Order::kStriped, DType::f64);
    return {{rest - parts * q}, {q}};
  };
  const Arrays found =
      scan_arrays(number, {cast(transpose(x, order), DType::f64)}, {iota({number, n})}, n, step).second;
  return transpose(rename(cast(found[0], DType::f32), number, vectors), x.shape().names());
}

// (a + damping I) basis, then its Q. For a fixed `a`, repeated steps converge to the eigenvectors by falling
// eigenvalue; with `a` changing slowly, one step now and then keeps the basis near them.
Array iterated_basis(const Array& a, const Array& basis, const std::string& side, const std::string& other) {
  const std::string third = "matrix_third";
  const int64_t n = a.size(side);
  const Array trace = sum(a * identity(side, other, n), {side, other});
  // The constant keeps vectors where all gradients were zero.
  const Array damping = trace * static_cast<float>(kDamping / static_cast<double>(n)) + 1e-30f;
  const Array moved =
      rename(dot(a, rename(basis, Axes{side, other}, Axes{other, third}), other), third, other);
  const Array damped = moved + basis * damping;
  return transpose(orthonormal(damped, side, other), basis.shape().names());
}

}  // namespace ostro::optim
