// Link: a member's connection after both sides have proved the secret: its thread, its state, and its open
// requests. Private to the room; member.h is its public face.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "ostro/base/error.h"
#include "ostro/cluster/messages/epoch.h"
#include "ostro/cluster/messages/message.h"
#include "ostro/cluster/wire/channel.h"
#include "ostro/cluster/wire/socket.h"

namespace ostro::cluster {

inline constexpr const char* kAway = "the coordinator is gone, and has not come back yet";

// A connection to a coordinator that has proved the secret, and the lease that it granted.
struct Joined {
  Channel channel;
  std::chrono::milliseconds lease{0};
};

// Connects, and proves the secret. With `certificates` (null: none) only a coordinator that speaks TLS is
// taken, without only one that does not. Errors as of Member::join. `known`: its addresses so far, which are
// kept up to date. `again`: a coordinator with TLS was there before; then what is said without TLS is an
// error of kIo, since anyone may have said it.
Result<Joined> connect_and_prove(const std::string& host, int port, const std::string& secret,
                                 tls::Certificates* certificates, Clock::time_point deadline,
                                 KnownAddresses& known, bool again = false);

// Owns the connection and a thread. Thread-safe. The functions are those of Member.
class Link {
 public:
  // Makes another connection when this one is lost: the coordinator may have been started again.
  using Reconnect = std::function<Result<Joined>(Clock::time_point deadline)>;
  Link(Joined joined, Hello hello, Reconnect reconnect, std::chrono::milliseconds patience);
  ~Link();

  void send(const std::string& message);
  Result<Epoch> wait_epoch(int64_t after, std::chrono::milliseconds timeout);
  void on_end(int64_t epoch, std::function<void(const std::string&)> callback);
  void fault(int64_t epoch, const std::string& why);
  // Says that this member works in this epoch, which has replaced those before it.
  void began(int64_t epoch);
  // Sends a kSet or kGet, whose fields after the epoch `rest` adds, and waits for the answer.
  Result<std::string> request(Kind kind, int64_t epoch, const std::function<void(Message&)>& rest,
                              std::optional<std::chrono::milliseconds> timeout);
  // Remembers a value, to send it to a restarted coordinator as long as its epoch lasts (0: the job).
  void keep(int64_t epoch, const std::string& key, const std::string& value);
  bool stop_asked() const { return stop_asked_; }
  std::optional<int64_t> over() const { return over_ ? std::optional<int64_t>(status_) : std::nullopt; }
  // The address of the coordinator, in numbers: of the last one that was connected.
  std::string address();
  void report(std::function<Progress()> progress);
  void pass_on(std::function<std::string(size_t most)> said);
  void mute_for_test();

 private:
  struct Request {
    int64_t epoch = 0;
    bool sets = false;
    std::optional<Result<std::string>> answer;
  };
  using Lock = std::unique_lock<std::mutex>;

  void run();
  Status talk();
  Status turn();
  Status come_back(const Status& why);
  // These are called with the mutex held.
  Status handle(std::string_view message);
  Status handle_epoch(MessageReader& reader);
  void end_up_to(int64_t number, const std::string& reason);
  void answer_waiting(const std::function<bool(const Request&)>& which, const std::string& why);
  void push(const std::string& message);
  void push_said(size_t most);
  void call_if_ended(Lock& lock);
  bool wait_until(Lock& lock, std::optional<Clock::time_point> until, const std::function<bool()>& there);

  Channel channel_;  // the thread reads it; writing is under the mutex
  std::chrono::milliseconds lease_;
  std::string address_;
  Hello hello_;
  const bool names_its_slice_ = !hello_.slice.empty();
  const Reconnect reconnect_;
  const std::chrono::milliseconds patience_;  // for a coordinator to come back
  Waker waker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false, muted_ = false;
  bool away_ = false;  // the connection is lost, and another is being made
  std::atomic<bool> stop_asked_ = false, over_ = false;
  std::atomic<int64_t> status_ = 0;
  std::function<Progress()> progress_;            // for heartbeats
  std::function<std::string(size_t most)> said_;  // what is to be passed on
  Clock::time_point next_beat_, silent_until_;    // of the thread
  std::map<int64_t, Epoch> epochs_;               // those that have not ended
  int64_t ended_ = 0;                             // epochs up to this number have ended
  int64_t began_ = 0;                             // the last that this member works in
  std::string end_reason_;
  std::optional<Error> gone_;               // the error after which no coordinator is expected any more
  std::map<int64_t, std::string> faulted_;  // by epoch, with the reason
  std::map<std::pair<int64_t, std::string>, std::string> kept_;  // by epoch and key
  int64_t next_request_ = 1;
  std::map<int64_t, Request> requests_;
  std::function<void(const std::string&)> callback_;
  int64_t callback_epoch_ = 0;
  std::optional<std::thread::id> runner_;  // the thread that runs a callback
  std::thread thread_;
};

}  // namespace ostro::cluster
