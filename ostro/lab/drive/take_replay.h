// take_replay: takes a statement of others, that they replayed a run of the lab, into its journal.
#pragma once

#include "ostro/lab/drive/driver.h"

namespace ostro::lab {

// The step whose run it was, and what was replayed by whom, for people.
struct TakenReplay {
  std::string step, who, verified;
  bool is_new = false;  // the journal did not have it
};

// `text`: a statement (attest/replay_statement.h); `where` is what messages call it. Errors: one that is none
// or is forged, or of a run that no step of the plan has made; another process works on the lab.
Result<TakenReplay> take_replay(const Context& context, const Plan& plan, const std::string& text,
                                const std::string& where);

}  // namespace ostro::lab
