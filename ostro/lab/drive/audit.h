// Audit: steps that would be skipped and are done again, to compare: which of them, and the comparison.
// Private to the sub-room.
#pragma once

#include "ostro/lab/drive/make_step.h"

namespace ostro::lab {

// Whether an audit of this share, from 0 to 1, does the step again. It follows from the fingerprint and the
// journal's head, which each audit moves: no person chooses it, and the next audit draws others.
bool is_drawn(const std::string& journal_head, const std::string& fingerprint, double share);

// The folder in which a step is done again: beside the outputs. begin_audit() makes it new and empty.
std::string audit_folder(const OpenLab& lab, const StepState& state);
Status begin_audit(OpenLab& lab, const StepState& state);

// Compares content and files with those of the journal, and writes that into it, with the name of who did
// it (empty: none). Equal outputs are removed.
// Errors: an alarm that two outputs have one fingerprint, with both folders; why the step could not be done.
Status end_audit(OpenLab& lab, const std::map<std::string, Made>& made, StepState& state,
                 const Performed& performed, const std::string& by);

}  // namespace ostro::lab
