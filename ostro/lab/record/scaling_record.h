// add_fit, add_forecasts: what a scaling plan gave, as tables of a record: fits with their runs and curves,
// and forecasts with what was registered and what came out.
#pragma once

#include "ostro/experiment/registry/registry.h"
#include "ostro/experiment/tables/database.h"
#include "ostro/lab/drive/driver.h"

namespace ostro::lab {

// Writes a fit to the tables fits, fit_runs and fit_curves. A curve has the losses of the fit for the mean
// operations of the runs of one declared step, its series.
Status add_fit(Database& record, io::FileSystem& fs, const std::string& name, const std::string& folder);

// Writes all forecasts that are done. The verdict is "open" until all runs that check it are evaluated, and
// in a sanity run; then "inside" or "outside" of its interval, by the mean of their losses.
Status add_forecasts(Database& record, io::FileSystem& fs, const Plan& plan, const LabState& state,
                     const Registry& registry, const Journal& journal);

// A line for people about each forecast of a record.
Result<std::vector<std::string>> forecast_lines(const Database& record);

}  // namespace ostro::lab
