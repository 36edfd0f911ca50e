// watch_until_end: draws what a command watches, in a terminal or as lines of a log, until it ends.
#pragma once

#include <functional>
#include <string>

#include "ostro/io/files/file_system.h"
#include "ostro/page/numbers/history.h"
#include "ostro/page/terminal/canvas.h"

namespace ostro::cli {

struct Picture {
  std::string screen;  // for a terminal: lines that fit
  std::string line;    // for a log
  bool goes_on = true;
  int64_t progress = 0;  // a log gets a line when this is another number than before
};

// Calls `look` about once a second in a terminal, every ten seconds otherwise, more rarely where looking
// takes long; until there is no more to see, or a signal comes. The last picture stays on the screen. Errors:
// those of `look`.
Status watch_until_end(bool ascii,
                       const std::function<Result<Picture>(const page::Terminal& terminal, int rows)>& look);

// The numbers of a run for a terminal; empty while there are none.
page::History history_for(io::FileSystem& fs, const std::string& run_directory,
                          const page::Terminal& terminal);

}  // namespace ostro::cli
