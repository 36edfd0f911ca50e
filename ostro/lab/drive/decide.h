// open_lab, decide_step: whether a step of a lab is skipped, resumed or done, and why. Deciding changes
// nothing but lab.lock, where a source is used for the first time. Private to the sub-room.
#pragma once

#include "ostro/experiment/journal/file_hashes.h"
#include "ostro/experiment/journal/journal.h"
#include "ostro/experiment/journal/pins.h"
#include "ostro/experiment/registry/gate.h"
#include "ostro/lab/drive/lab_state.h"

namespace ostro::lab {

// A lab that is open, for one thread.
struct OpenLab {
  const Context& context;
  const Services& services;
  const Plan& plan;
  bool works;             // may write
  std::string directory;  // of the lab
  Journal journal;
  Pins pins;
  FileHashes hashes;
  Gate gate;

  Work work(const Step& step, const std::map<std::string, Made>& made) const {
    return {context, services, plan, step, made, gate.seeds()};
  }
};

// Opens a lab; what it refers to must outlive it. With `every_byte` no hash of a file is taken from earlier.
// Errors: its journal, registry or lab.lock is damaged.
Result<OpenLab> open_lab(const Context& context, const Services& services, const Plan& plan, bool works,
                         bool every_byte);

// Recipe, fingerprint, action and reason of a step whose inputs are in `made`. Of a source also `out`, its
// files. Errors: why the step cannot be done.
Status decide_step(OpenLab& lab, const std::map<std::string, Made>& made, StepState& state, Made& out);

// The pins' name of a source.
std::string pin_name(const Plan& plan, const std::string& step);

// decide_step() for a source: it is done when its files are what lab.lock says. Its content are their names
// and hashes. In a sanity run (Plan::sanity) its files are their first rows, which are written where the lab
// works.
Status decide_source(OpenLab& lab, StepState& state, Made& out);

}  // namespace ostro::lab
