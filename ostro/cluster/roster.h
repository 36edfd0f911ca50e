// Who is in a job, and which epoch goes on: the coordinator's decisions, without its sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/cluster/epoch.h"
#include "ostro/cluster/values.h"

namespace ostro::cluster {

// Members are numbered by order of joining. It is not thread-safe, and `send` must not call it.
class Roster {
 public:
  using Send = std::function<void(int64_t member, const std::string& message)>;
  Roster(int64_t workers, int64_t last_epoch, Send send);

  // The number of a new member. Errors: kInvalidArgument when it differs from the oldest of those who are
  // there.
  Result<int64_t> add(const Hello& hello);
  void remove(int64_t member, std::string_view why);
  // A member says that it knows of the end of an epoch.
  void end_seen(int64_t member, int64_t number);
  void fault(int64_t member, int64_t number, std::string_view why);
  // Requests of a member; each is answered once, get() perhaps later.
  void set(int64_t member, int64_t request, int64_t number, const std::string& key, std::string_view value);
  void get(int64_t member, int64_t request, int64_t number, const std::string& key);
  void cancel(int64_t member, int64_t request);

  // Whether an epoch can begin: none goes on, enough members are there, and each has seen the end of its last
  // epoch. So a member that hangs, and has not been found out yet, does not spoil the next one; and one that
  // takes long to answer is not replaced by a spare.
  bool can_begin() const;
  // Begins it, with the oldest members.
  void begin();

  int64_t epoch() const { return epoch_; }
  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  // For those who watch: the epoch that goes on (0: none), a member's rank in it (-1: not in it), why the
  // last one ended, and what a member said of itself.
  int64_t current() const { return goes_on_ ? epoch_ : 0; }
  int64_t rank(int64_t member) const { return members_.at(member).rank; }
  const std::string& last_end() const { return last_end_; }
  const Hello& hello(int64_t member) const { return members_.at(member).hello; }

 private:
  struct Entry {
    Hello hello;
    int64_t rank = -1;         // in the epoch that goes on; -1: not in it
    int64_t end_not_seen = 0;  // an epoch of whose end it has been told; 0: none
  };
  void end(std::string_view reason);
  // Why a member's request about an epoch must fail; "" when it need not.
  std::string stale(int64_t member, int64_t number) const;
  void reply(int64_t member, int64_t request, const Error& error);
  void reply(int64_t member, int64_t request, std::string_view value);

  int64_t workers_;
  Send send_;
  std::map<int64_t, Entry> members_;
  int64_t next_member_ = 1;
  int64_t epoch_;         // the last that began
  bool goes_on_ = false;  // whether it has not ended
  std::string last_end_ = "it has ended";
  Values values_;
};

}  // namespace ostro::cluster
