// Factors: Shampoo's two factors of a hidden matrix, the means of G G^T and of G^T G, and the bases in which
// they are diagonal. Used by SOAP and Shampoo.
#pragma once

#include <string>
#include <vector>

#include "ostro/optim/matrix_parts.h"

namespace ostro::optim {

// A value; its functions are called while tracing.
class Factors {
 public:
  // A parameter that is no hidden matrix has no factors. A side longer than `largest` has no factor; its
  // basis is the identity.
  Factors(const Parameter& parameter, int64_t largest);

  // A side of a map that has a factor.
  struct One {
    size_t part;  // of MatrixParts
    std::string axis,
        far;  // its axis of the matrix, and the other one; a factor is [stack..., axis, matrix_other]
  };
  const std::vector<One>& all() const { return all_; }
  // Two arrays for each: its factor, and its basis.
  std::vector<StateArray> state() const;

  // The basis of each factor, in their order; `started` is 0 in the first step, when they are the identity.
  std::vector<Array> bases(const std::vector<Array>& state, const Array& started) const;
  // Returns x, with the parameter's axes, in the coordinates of these bases; with `back`, from them.
  Array turned(const Array& x, const std::vector<Array>& bases, bool back) const;
  // Returns x with Q diag(values) Q^T applied on every side.
  Array scaled(const Array& x, const std::vector<Array>& bases, const std::vector<Array>& values) const;
  // Returns the new arrays of state() after gradient g. If `refresh` is above 0, the bases follow the new
  // factors.
  std::vector<Array> followed(const std::vector<Array>& state, const std::vector<Array>& bases,
                              const Array& g, double beta, const Array& refresh) const;

  static constexpr const char* kOther = "matrix_other";

 private:
  std::vector<MatrixParts> parts_;  // one, or none
  std::vector<One> all_;
};

}  // namespace ostro::optim
