// Session: what the commands about token stores share.
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

// Whether a tokenizer that the options do not name is trained where it is not there yet.
enum class MissingTokenizer { kIsAnError, kIsTrained };

// `component` as named_components takes it. `settings` are for training the tokenizer; its threads are the
// session's.
Result<Session> open_session(io::FileSystem& fs, const data::DataOptions& options, int64_t seq_len,
                             const std::string& component, MissingTokenizer missing,
                             const data::BuildSettings& settings);

}  // namespace ostro::prepare
