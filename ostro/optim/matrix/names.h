// Axis names of matrices that optimizers work on whole. They are in no map of a mesh: what has them is whole
// on every worker.
#pragma once

namespace ostro::optim {

inline constexpr const char* kRows = "matrix_rows";
inline constexpr const char* kColumns = "matrix_columns";

}  // namespace ostro::optim
