// print, parse_program, program_hash: the text form of a Program. parse_program(print(p)) prints the same
// text. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"

namespace ostro::ir {

struct PrintOptions {
  // True: print the canonical form, whose SHA-256 is the program hash (numerics.md N15). It leaves out what
  // does not change the result: scopes, labels, locations, names of parameters and results.
  bool canonical = false;
};

// The program as text.
std::string print(const Program& program, const PrintOptions& options = {});

// Reads the text form and checks the shapes of results against the shape rules. Errors: kInvalidArgument; it
// names the line and what was expected; kUnsupported for an op or a dtype that this version does not have.
Result<Program> parse_program(std::string_view text);

// 64 hex digits: SHA-256 of the canonical text.
std::string program_hash(const Program& program);

}  // namespace ostro::ir
