// Who is in a job, and which epoch goes on: the coordinator's decisions, without its sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/cluster/epoch.h"
#include "ostro/cluster/event.h"
#include "ostro/cluster/values.h"

namespace ostro::cluster {

using Time = std::chrono::steady_clock::time_point;

// How large epochs may be.
struct Sizes {
  int64_t least = 1, most = 1;
  int64_t multiple = 1;  // of which the size must be one
};

// Members are numbered by order of joining. It is not thread-safe, and `send` must not call it.
//
// An epoch *goes on* until a member of it is lost or says that it cannot go on. Then the next one begins as
// soon as all who are left know of the end. Or the next one is *planned* beside it, because a worker has come
// that can help, or one wants to leave; it takes the place of the first when its members say so.
class Roster {
 public:
  using Send = std::function<void(int64_t member, const std::string& message)>;
  Roster(const Sizes& sizes, int64_t last_epoch, Send send, std::optional<Hello> expected = {});

  // The number of a new member, or of one that has lost its connection and says where it was. Errors:
  // kInvalidArgument when it differs from what is expected, or else from the oldest of those who are there.
  Result<int64_t> add(const Hello& hello, Time now);
  // Tells it what it must know; after add(), when send() reaches it.
  void greet(int64_t member);
  void remove(int64_t member, std::string_view why);
  // A member says that it knows what is trained: it can be taken in beside an epoch.
  void ready(int64_t member, Time now);
  // It wants to leave without a loss to the others.
  void leaves(int64_t member);
  // A member says that it knows of the end of an epoch; that a planned epoch has taken over; that an epoch
  // cannot go on; that the run is over.
  void end_seen(int64_t member, int64_t number);
  void began(int64_t member, int64_t number);
  void fault(int64_t member, int64_t number, std::string_view why);
  void done(int64_t status);
  // Asks all members to stop with their state saved.
  void stop();

  // Requests of a member about an epoch that it is in, or about the job (epoch 0); each is answered once,
  // get() perhaps later.
  void set(int64_t member, int64_t request, int64_t number, const std::string& key, std::string_view value);
  void get(int64_t member, int64_t request, int64_t number, const std::string& key);
  void cancel(int64_t member, int64_t request);

  // Whether an epoch can begin or be planned.
  bool can_begin(Time now) const { return !chosen(now).empty(); }
  void begin(Time now);
  // When to ask again although nothing happens.
  std::optional<Time> next_look(Time now) const;
  // To be called before can_begin(). Ends an epoch whose members did not all come back to a new coordinator.
  void expire(Time now);

  int64_t epoch() const { return last_; }
  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  bool has(int64_t member) const { return members_.count(member) != 0; }
  // The exit status of a run that is over.
  std::optional<int64_t> over() const { return over_; }
  // A member; whether it has gone as it wanted; the epoch that goes on with all its members, 0 when there is
  // none, and these by rank.
  Event::Worker worker(int64_t member) const;
  bool may_go(int64_t member) const;
  int64_t whole_epoch() const { return expected_ > 0 ? 0 : current_; }
  std::vector<Event::Worker> in_epoch() const;
  // For those who watch: the epoch that goes on (0: none), a member's rank in it (-1: not in it), why the
  // last one ended, what a member said of itself, and whether its going is no loss.
  int64_t current() const { return current_; }
  int64_t rank(int64_t member) const { return members_.at(member).rank; }
  const std::string& last_end() const { return last_end_; }
  const Hello& hello(int64_t member) const { return members_.at(member).hello; }

 private:
  struct Entry {
    Hello hello;
    int64_t rank = -1;         // in the epoch that goes on; -1: not in it
    int64_t next_rank = -1;    // in the planned one
    int64_t was = -1;          // its rank in the last epoch that it was in
    int64_t end_not_seen = 0;  // an epoch of whose end it has been told; 0: none
    bool ready = false, leaving = false;
    bool works = false;  // in the epoch that goes on: it has said that this has begun
  };
  using Members = std::vector<int64_t>;

  // The members of the epoch that can begin or be planned now, by rank; empty: none.
  Members chosen(Time now) const;
  Members fitting(Members candidates) const;
  static bool stays(const Entry& entry);
  Members in_order(const std::function<bool(const Entry&)>& which) const;
  void tell_epoch(int64_t member, int64_t number, int64_t rank, const Members& members);
  void end(std::string_view reason);
  void drop_planned(std::string_view reason);
  void promote();
  bool planned_is_due() const;
  // Why a member's request about an epoch must fail; "" when it need not.
  std::string stale(int64_t member, int64_t number) const;
  void reply(int64_t member, int64_t request, const Error& error);
  void reply(int64_t member, int64_t request, std::string_view value);

  const Sizes sizes_;
  Send send_;
  const std::optional<Hello> expected_hello_;
  std::map<int64_t, Entry> members_;
  int64_t next_member_ = 1;
  int64_t last_;          // number of the last epoch that began or was planned
  int64_t current_ = 0;   // the one that goes on; 0: none
  int64_t restored_;      // an epoch that an earlier coordinator began, and that may go on; 0: none
  int64_t planned_ = 0;   // the one that is planned beside it; 0: none
  int64_t expected_ = 0;  // size of the current one, while members of it may still come back; 0: all are here
  Time expected_until_;
  Time last_added_, last_ready_;
  Time last_ended_;  // when it was first looked at after the end of an epoch
  bool just_ended_ = false;
  bool stops_ = false;
  std::optional<int64_t> over_;
  std::string last_end_ = "it has ended";
  std::map<int64_t, Values> values_;  // by epoch; 0: of the job
};

}  // namespace ostro::cluster
