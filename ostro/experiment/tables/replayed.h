// ask_record: a SELECT over a whole record, whose answer is of the class *replayed* where all that it stands
// on was done again with equal bits. Pure functions of the record.
#pragma once

#include <set>
#include <string>

#include "ostro/experiment/tables/database.h"

namespace ostro::lab {

// As Database::select. A recorded answer is replayed when each table that it reads is of results of steps,
// and each of these steps, with all that they need but sources, has a row of the table `replays` that is
// whole. Whole tables count, since no row of them can be told from those that an answer stands on.
Result<Rows> ask_record(const Database& record, const std::string& sql);

// The steps that answers over these tables stand on, without sources; nothing where a table is not of
// results of steps.
Result<std::set<std::string>> steps_under(const Database& record, const std::set<std::string>& tables);

}  // namespace ostro::lab
