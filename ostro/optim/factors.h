// Shampoo's two factors of a hidden matrix, the means of G G^T and of G^T G, and the bases in which they are
// diagonal: what SOAP and Shampoo share.
#pragma once

#include <string>
#include <vector>

#include "ostro/optim/matrix_parts.h"

namespace ostro::optim {

class Factors {
 public:
  // Of a parameter that is no hidden matrix: none. A side longer than `largest` has no factor; its basis is
  // the identity.
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

  // Of each in turn; `started` is 0 in the first step, when they are the identity.
  std::vector<Array> bases(const std::vector<Array>& state, const Array& started) const;
  // x, with the parameter's axes, in these bases; or back from them.
  Array turned(const Array& x, const std::vector<Array>& bases, bool back) const;
  // The same, each vector multiplied by its value in between: Q diag(values) Q^T x on every side.
  Array scaled(const Array& x, const std::vector<Array>& bases, const std::vector<Array>& values) const;
  // What state() becomes with this gradient. Where `refresh` is above 0, the bases follow the new factors.
  std::vector<Array> followed(const std::vector<Array>& state, const std::vector<Array>& bases,
                              const Array& g, double beta, const Array& refresh) const;

  static constexpr const char* kOther = "matrix_other";

 private:
  std::vector<MatrixParts> parts_;  // one, or none
  std::vector<One> all_;
};

}  // namespace ostro::optim
