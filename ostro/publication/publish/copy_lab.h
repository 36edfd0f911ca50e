// copy_plan, copy_lab: the files of a lab that belong into a publication, under the paths that they have
// beside the plan. Private to the sub-room.
//
// Left out are texts: the files of sources, and the rows that extract makes of pages. Errors: those of
// reading and writing.
#pragma once

#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/lab/drive/lab_state.h"

namespace ostro::publication {

// Copies the plan, what it includes, configurations, the report's text, the files of programs and lab.lock
// into the directory `place`. A file that does not lie below the plan's folder is left out; a line in
// `remarks` says so.
Status copy_plan(io::FileSystem& fs, const lab::Plan& plan, const std::string& place,
                 std::vector<std::string>& remarks);

// Copies journal, registry, frozen plans, and the outputs of all steps: of a token store its ledger, of a run
// its record without states.
Status copy_lab(const Context& context, const lab::Plan& plan, const lab::LabState& state,
                const std::string& place);

}  // namespace ostro::publication
