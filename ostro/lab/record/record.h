// make_record: what a lab knows, as tables (columns.h): steps, sources, stores, runs with configuration and
// chain, evaluations, fits, forecasts, hypotheses with their outcomes, registry.
#pragma once

#include "ostro/experiment/tables/database.h"
#include "ostro/lab/drive/driver.h"

namespace ostro::lab {

// The record of the steps that are done. With `measured` it has the sessions of trainings, too; without, it
// is a function of the plan and its sources. Errors: those of reading outputs.
Result<Database> make_record(io::FileSystem& fs, const Plan& plan, const LabState& state, bool measured);

// The tables evaluations and forecasts of the record alone, which cost little. Errors: as above.
Result<Database> make_forecasts(io::FileSystem& fs, const Plan& plan, const LabState& state);

// look_at(), for what is made of a whole lab. Errors: the first step that is not done or failed.
Result<LabState> finished_lab(const Context& context, const Plan& plan, bool every_byte);

}  // namespace ostro::lab
