// C expressions for elementwise ops, over values in registers. A bf16 value is held in an f32 register,
// exactly.
#pragma once

#include <string>
#include <vector>

#include "ostro/ir/program/program.h"

namespace ostro::compile {

const char* register_type(ir::DType dtype);  // float for bf16
const char* memory_type(ir::DType dtype);    // u16 for bf16
std::string load_expr(ir::DType dtype, const std::string& element);
std::string store_expr(ir::DType dtype, const std::string& value);
// A constant that the C compiler cannot fold into other arithmetic; `bytes` is one element.
std::string literal_expr(ir::DType dtype, const std::byte* bytes);

// `from`: dtypes of the operands, `to`: of the result.
std::string op_expr(ir::OpKind kind, const std::vector<ir::DType>& from, ir::DType to,
                    const std::vector<std::string>& args);

// True for ops that cost more than a few instructions: their result is better kept than computed twice.
bool is_expensive(ir::OpKind kind);

}  // namespace ostro::compile
