// op_expr, load_expr, store_expr, literal_expr: expressions of a dialect for elementwise ops, over values in
// registers.
//
// A bf16 value is held in an f32 register, exactly. Pure functions; the caller gives elementwise ops only.
#pragma once

#include <string>
#include <vector>

#include "ostro/compile/text/dialect.h"
#include "ostro/ir/program/program.h"

namespace ostro::compile {

const char* register_type(ir::DType dtype);  // float for bf16
const char* memory_type(ir::DType dtype);    // u16 for bf16
std::string load_expr(ir::DType dtype, const std::string& element);
std::string store_expr(ir::DType dtype, const std::string& value);
// A constant that the compiler cannot fold into other arithmetic; `bits` are those of one element in memory.
std::string literal_expr(ir::DType dtype, uint64_t bits);

// The expression of an elementwise op over the registers `args`. `from` are the dtypes of the operands, `to`
// is that of the result.
std::string op_expr(ir::OpKind kind, const std::vector<ir::DType>& from, ir::DType to,
                    const std::vector<std::string>& args, const Dialect& dialect);

}  // namespace ostro::compile
