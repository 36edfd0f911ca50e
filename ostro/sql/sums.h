// add_exact_sums: sum, avg and total of SQL with exact sums, in place of SQLite's own.
#pragma once

struct sqlite3;

namespace ostro::sql {

// As in SQL they pass over NULL; sum and avg of nothing are NULL, total is 0.0; the sum of integers is one,
// or an error where it does not fit, as is a sum beyond the largest double. A text is an error.
void add_exact_sums(sqlite3* db);

}  // namespace ostro::sql
