// with_data_session: runs a command about token stores, with the configuration's tokenizer and components.
#pragma once

#include <functional>
#include <string>

#include "ostro/prepare/tokenizer/session.h"
#include "ostro/shell/words/args.h"

namespace ostro::cli {

// Opens a session for the configuration of `args`, runs `work` on it and returns the exit status; errors are
// printed. `component` is the value of --component, or empty. `missing` says what to do when there is no
// tokenizer yet.
int with_data_session(const Args& args, const std::string& component,
                      const std::function<Status(const prepare::Session&)>& work,
                      prepare::MissingTokenizer missing = prepare::MissingTokenizer::kIsAnError);

}  // namespace ostro::cli
