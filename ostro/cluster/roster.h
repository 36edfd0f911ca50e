// Roster: the coordinator's decisions, without its sockets: the members of a job, and the epoch that they
// work in. For the room, and for the simulator, which gives it a virtual clock.
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
#include "ostro/cluster/epoch_sizes.h"
#include "ostro/cluster/event.h"
#include "ostro/cluster/messages/epoch.h"
#include "ostro/cluster/messages/values.h"

namespace ostro::cluster {

class Message;
using Time = std::chrono::steady_clock::time_point;

inline constexpr int64_t kMostFruitless = 20;

// Members are numbered by order of joining. Not thread-safe, and `send` must not call it.
//
// At most one epoch is *current*. It lasts until a member of it is lost or reports a fault. Then the next one
// begins as soon as all remaining members have confirmed the end. Or the next one is *planned* beside it,
// because a worker has joined that makes it larger, or one asks to leave; the planned epoch becomes the
// current one when its members report that it has begun.
class Roster {
 public:
  using Send = std::function<void(int64_t member, const std::string& message)>;
  Roster(const Sizes& sizes, int64_t last_epoch, Send send, std::optional<Hello> expected = {});

  // Adds a new member, or one that has lost its connection and states the epoch that it was in; returns its
  // number. Errors: kInvalidArgument when its values differ from the expected ones, or else from those of the
  // oldest member.
  Result<int64_t> add(const Hello& hello, Time now);
  // Sends a new member the end of its old epoch, a stop or the end of the run, if there was one. Call it
  // after add(), when send() reaches the member.
  void greet(int64_t member);
  // Removes a member that is lost or has left; ends its epoch.
  void remove(int64_t member, std::string_view why);
  // Take the messages of members: kReady, kLeave, kEndSeen, kBegan, kFault and kDone (message.h).
  void ready(int64_t member, Time now);
  void leaves(int64_t member);
  void end_seen(int64_t member, int64_t number);
  void began(int64_t member, int64_t number);
  void fault(int64_t member, int64_t number, std::string_view why);
  void done(int64_t status);
  // Takes the names of slices that were found by measuring, from the first member of the epoch: they are of
  // members that have none, and of later ones on the same machines. True when they are taken.
  bool slices(int64_t member, int64_t number, const FoundNames& found);
  // Asks all members to stop with their state saved.
  void stop();
  // Tells the number of steps that were done. When kMostFruitless epochs in a row end by a fault, although no
  // step was done and no member was lost, the run is over with status 1: the next epoch would be no better.
  void steps(int64_t done);

  // Requests of a member about an epoch that it is in, or about the job (epoch 0); each is answered once,
  // get() and get_all() possibly later, when the keys are set. get_all() is about the keys 0 to count - 1 of
  // a group (values.h).
  void set(int64_t member, int64_t request, int64_t number, const std::string& key, std::string_view value);
  void get(int64_t member, int64_t request, int64_t number, const std::string& key);
  void get_all(int64_t member, int64_t request, int64_t number, const std::string& group, int64_t count);
  void cancel(int64_t member, int64_t request);

  // True when an epoch can begin or be planned; begin() then does it.
  bool can_begin(Time now) const { return !chosen(now).empty(); }
  void begin(Time now);
  // The time at which can_begin() may change although nothing happens.
  std::optional<Time> next_look(Time now) const;
  // Must be called before can_begin(). Ends an epoch whose members did not all return to a restarted
  // coordinator.
  void expire(Time now);

  int64_t epoch() const { return last_; }
  // Whether an epoch has begun with this coordinator.
  bool began_any() const { return last_ > first_; }
  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  bool has(int64_t member) const { return members_.count(member) != 0; }
  // The exit status of a run that is over.
  std::optional<int64_t> over() const { return over_; }
  // A member for events. may_go: it may leave without a loss to the others. whole_epoch: the number of the
  // current epoch when all its members are connected, else 0. in_epoch: the members of that epoch, by rank.
  Event::Worker worker(int64_t member) const;
  bool may_go(int64_t member) const;
  int64_t whole_epoch() const { return expected_ > 0 ? 0 : current_; }
  std::vector<Event::Worker> in_epoch() const;
  // For observers: the current epoch (0: none), a member's rank in it (-1: not in it), the reason for the end
  // of the last one, a member's Hello.
  int64_t current() const { return current_; }
  int64_t rank(int64_t member) const { return members_.at(member).rank; }
  const std::string& last_end() const { return last_end_; }
  const Hello& hello(int64_t member) const { return members_.at(member).hello; }

 private:
  struct Entry {
    Hello hello;
    int64_t rank = -1;         // in the current epoch; -1: not in it
    int64_t next_rank = -1;    // in the planned one
    int64_t was = -1;          // its rank in the last epoch that it was in
    int64_t end_not_seen = 0;  // an epoch whose end it has not confirmed yet; 0: none
    bool ready = false, leaving = false;
    bool works = false;  // it has reported that the current epoch has begun
    bool found = false;  // its slice was found by measuring
    int64_t cells = -1;  // that it holds since the last epoch, as cells_of() numbers them; -1: none
  };
  // The slice of a machine, and whether the link between two workers of it was there to be measured.
  struct MachineSlice {
    std::string slice;
    bool paired = false;
  };
  using Members = std::vector<int64_t>;
  using Guesses = std::map<int64_t, std::string>;

  // The members of the epoch that can begin or be planned now, by rank; empty: none.
  Members chosen(Time now) const;
  Members fitting(Members candidates) const;
  Members in_equal_slices(const Members& candidates) const;
  bool are_equal_slices(const Members& members) const;
  void know_slice(int64_t member);
  Guesses guesses(const Members& members) const;
  const std::string& slice_of(int64_t member, const Guesses& guesses) const;
  Members by_slice(const Members& members, const Guesses& guesses) const;
  static bool stays(const Entry& entry);
  Members in_order(const std::function<bool(const Entry&)>& which) const;
  void tell_epoch(int64_t member, int64_t number, int64_t rank, const Message& workers);
  void end(std::string_view reason);
  void drop_planned(std::string_view reason);
  bool cut(int64_t number, const std::string& reason);
  void note_cells();
  void promote();
  bool planned_is_due() const;
  // The reason why a member's request about an epoch must fail; "" when it may succeed.
  std::string stale(int64_t member, int64_t number) const;
  void reply(int64_t member, int64_t request, const Error& error);
  void reply(int64_t member, int64_t request, std::string_view value);

  const Sizes sizes_;
  Send send_;
  const std::optional<Hello> expected_hello_;
  std::map<int64_t, Entry> members_;
  int64_t next_member_ = 1;
  const int64_t first_;   // the last epoch of earlier coordinators
  int64_t last_;          // number of the last epoch that began or was planned
  int64_t current_ = 0;   // 0: none
  int64_t restored_;      // an epoch that an earlier coordinator began, and that may continue; 0: none
  int64_t planned_ = 0;   // the one that is planned beside the current one; 0: none
  int64_t expected_ = 0;  // size of the current one, while members of it may still return; 0: all are here
  int64_t current_size_ = 0, planned_size_ = 0;  // with those who are lost
  Time expected_until_;
  Time last_added_, last_ready_;
  Time last_ended_;  // the time of the first expire() after the end of an epoch
  bool just_ended_ = false;
  bool stops_ = false;
  int64_t steps_ = 0, fruitless_ = 0;  // done; epochs that ended by a fault since the last step or loss
  std::optional<int64_t> over_;
  std::string last_end_ = "it has ended";
  std::map<int64_t, Values> values_;              // by epoch; 0: of the job
  std::map<std::string, MachineSlice> machines_;  // whose slices are known
  SliceRates rates_;
};

}  // namespace ostro::cluster
