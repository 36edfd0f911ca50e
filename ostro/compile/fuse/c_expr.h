// C expressions for elementwise ops, over values in registers. bf16 values are f32 registers that hold a
// bf16.
#pragma once

#include <string>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::compile {

const char* register_type(ir::DType dtype);  // float for bf16
const char* memory_type(ir::DType dtype);    // u16 for bf16
std::string load_expr(ir::DType dtype, const std::string& element);
std::string store_expr(ir::DType dtype, const std::string& value);
// A constant the compiler does not fold with; `bytes` is one element.
std::string literal_expr(ir::DType dtype, const std::byte* bytes);

// `from`: dtypes of the operands, `to`: of the result.
std::string op_expr(ir::OpKind kind, const std::vector<ir::DType>& from, ir::DType to,
                    const std::vector<std::string>& args);

// Costs more than a handful of instructions: worth keeping instead of computing twice.
bool is_expensive(ir::OpKind kind);

}  // namespace ostro::compile
