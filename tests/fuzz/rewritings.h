// rewritings: the programs that the compiler's passes make of a program, for comparing them bit for bit.
#pragma once

#include <string>
#include <vector>

#include "compare.h"
#include "ostro/base/error.h"

namespace ostro::fuzz {

// Some values in loops are labelled x.
inline constexpr const char* kRematPolicies[] = {"keep", "none", "all", "save:x"};

// The program after each pass alone, and after all of them; rematerialisation by each policy.
// The error names the pass whose program is not legal.
Result<std::vector<Rewriting>> rewritings(const ir::Program& program);

// The policies whose program after all passes is that of no other one.
std::vector<std::string> lone_policies(const std::vector<Rewriting>& rewritings);

}  // namespace ostro::fuzz
