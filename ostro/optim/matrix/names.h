// kRows, kColumns: axis names of matrices that optimizers work on whole. No mesh maps them, so arrays with
// these axes are whole on every worker.
#pragma once

namespace ostro::optim {

inline constexpr const char* kRows = "matrix_rows";
inline constexpr const char* kColumns = "matrix_columns";

}  // namespace ostro::optim
