// begin_step, end_step: doing one step, around perform(): the folder before it, and afterwards the checks,
// the manifest and the journal. Between them the output is made, in this process or in a child. Private to
// the sub-room.
#pragma once

#include "ostro/experiment/journal/output.h"
#include "ostro/lab/drive/decide.h"
#include "ostro/lab/places/performed.h"

namespace ostro::lab {

// Makes the folder ready in which the output of a step of action kRun or kResume is made.
Status begin_step(OpenLab& lab, const StepState& state);

// Takes what was made in the folder: writes manifest and journal, and sets the final state. Errors: why the
// step failed, for instance that a source was changed while it was read, or that this fingerprint has given
// another content before. `made` are the steps before it; `sandboxed` is is_sandboxed() of where it was done.
Status end_step(OpenLab& lab, const std::map<std::string, Made>& made, StepState& state,
                const Performed& performed, const Status& sandboxed);

// Of a step `run` all files are its output, and of a model for others. Other steps leave files beside it.
OutputFiles output_files(const StepKind& kind);

// Records a step whose output the journal has under another name, or a source.
Status record_step(OpenLab& lab, const StepState& state);

// An error when a source that the step reads has other bytes than before it was done. Every byte is read
// again.
Status check_sources(OpenLab& lab, const std::map<std::string, Made>& made, const Step& step);

}  // namespace ostro::lab
