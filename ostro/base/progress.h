// Progress: an interface through which long work reports how far it has come.
#pragma once

#include <string>

namespace ostro {

// Not thread-safe. The command line draws a line (shell/shared/progress.h); NoProgress says nothing.
class Progress {
 public:
  virtual ~Progress() = default;
  // `done` is the finished part of the work, from 0 to 1; `what` names the work ("importing").
  virtual void show(const std::string& what, double done) = 0;
  // The work is over, with or without success.
  virtual void end() = 0;
};

// Shows nothing.
class NoProgress final : public Progress {
 public:
  void show(const std::string&, double) override {}
  void end() override {}
};

}  // namespace ostro
