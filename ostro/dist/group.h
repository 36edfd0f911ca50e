// Group: the connections of one worker to the other workers, which another thread can end.
#pragma once

#include <string>

#include "ostro/runtime/collectives.h"

namespace ostro::dist {

// The functions of Collectives are called by one thread; abort() by any.
class Group : public runtime::Collectives {
 public:
  // Ends every exchange, present and future, with an error that carries `reason`. Any thread; returns at
  // once. The first reason wins.
  void abort(const std::string& reason) override = 0;
  // True: exchanges wait as long as the group lasts, for a peer that may take any time. False: they fail when
  // nothing moves for the limit that the group was connected with.
  virtual void wait_for_ever(bool on) = 0;
};

}  // namespace ostro::dist
