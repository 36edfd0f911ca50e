// Jobs: the steps that are done side by side, each in a child process. One thread uses it.
#pragma once

#include <utility>

#include "ostro/lab/drive/child.h"

namespace ostro::lab {

class Jobs {
 public:
  // `most` at a time, which share `threads`.
  Jobs(int most, int threads) : most_(most), threads_(threads) {}

  bool is_full() const { return static_cast<int>(steps_.size()) == most_; }
  // The steps that are being done, by number.
  const std::vector<size_t>& steps() const { return steps_; }
  // Begins perform(work, folder) for a step. What it prints goes to a file of the folder `logs`.
  Status start(size_t step, const Work& work, const std::string& folder, const std::string& logs);
  // Begins what waits for a step that is done elsewhere. What both print is behind what the file `log` has.
  Status start_waiting(size_t step, const std::function<Performed()>& waits, const std::string& log);
  // A step that has ended, with what it gave; nothing if none does within a moment.
  std::optional<std::pair<size_t, Performed>> wait();
  // Asks all to save and end; of several calls the first does it.
  void stop();

 private:
  int most_, threads_;
  std::vector<size_t> steps_;  // of children_
  std::vector<Child> children_;
  bool is_stopping_ = false;
};

}  // namespace ostro::lab
