// same_operands, division_hint: operations in a SELECT that give no value of its columns: a number divided by
// itself, or compared with itself, is 1 whatever it is, and a division by 0 is NULL. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "ostro/sql/tokens.h"

namespace ostro::sql {

// "loss / loss", where the token at `place` is "/", "-", "%", a comparison or IS between two operands that
// are the same, which are names, calls or what stands in parentheses: the operation gives the same number
// whatever the operands are. Names are the same however they are quoted, and with their table or, in a query
// with one SELECT, without. "" elsewhere, and where one of the two is only a part of an operand (b * loss -
// loss).
std::string same_operands(const std::vector<Token>& tokens, size_t place);

// What to say behind "gives no value (NULL)": "" if the query does not divide, nor asks for a remainder.
std::string division_hint(const std::string& query);

}  // namespace ostro::sql
