// Session: the inputs that the commands about token stores share. A value.
#pragma once

#include <string>
#include <vector>

#include "ostro/data/arrays/build_settings.h"
#include "ostro/data/options/options.h"
#include "ostro/io/files/file_system.h"
#include "ostro/tokenizer/model/tokenizer.h"

namespace ostro::prepare {

struct Session {
  io::FileSystem& fs;
  data::DataOptions options;
  tokenizer::Tokenizer tokenizer;
  std::vector<data::Component> components;  // the one that was named, or all
  int64_t seq_len = 0;                      // of the model
  int threads = 1;
};

// What happens when the options name no tokenizer and none was trained yet.
enum class MissingTokenizer { kIsAnError, kIsTrained };

// Opens the tokenizer, training it if `missing` says so, and finds the components. `component` is as in
// named_components. `settings` are for training the tokenizer; the session has the same number of threads.
// Errors: those of make_tokenizer, open_tokenizer and named_components.
Result<Session> open_session(io::FileSystem& fs, const data::DataOptions& options, int64_t seq_len,
                             const std::string& component, MissingTokenizer missing,
                             const data::BuildSettings& settings);

}  // namespace ostro::prepare
