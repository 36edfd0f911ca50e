// adopt: makes a run or a token store that was made outside of the lab the output of a step, when it is what
// the step's fingerprint says.
#pragma once

#include "ostro/lab/drive/lab_state.h"

namespace ostro::lab {

struct AdoptRequest {
  std::string step;    // of kind train or tokens, that was never done, and whose inputs are there
  std::string folder;  // of the run or the store; it is copied, and stays as it is
  int64_t count = 3;   // steps that are replayed, or documents that are encoded again; at least 1
};

struct Adopted {
  std::string content;
  std::string verified;  // for people: which part was done again
};

// Compares configuration, programs, data and texts with the step's recipe, copies the folder, then does again
// a part that the journal's head draws. The journal gets a line that names the step as adopted, and what was
// verified. After an error the lab is as before. Errors: what differs; a step of another kind, one that is
// done or begun, and one whose result a hypothesis uses, which may not be known before.
Result<Adopted> adopt(const Context& context, const Services& services, const Plan& plan,
                      const AdoptRequest& request);

}  // namespace ostro::lab
