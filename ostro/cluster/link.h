// A member's connection after both sides have proved the secret: its thread, its state, and who waits for
// what. member.h is what others see of it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "ostro/base/error.h"
#include "ostro/cluster/epoch.h"
#include "ostro/cluster/message.h"
#include "ostro/cluster/wire/channel.h"
#include "ostro/cluster/wire/socket.h"

namespace ostro::cluster {

// A connection that knows the coordinator, and the lease that this gave.
struct Joined {
  Channel channel;
  std::chrono::milliseconds lease{0};
};

// Connects, and proves the secret. Errors as of Member::join.
Result<Joined> connect_and_prove(const std::string& host, int port, const std::string& secret,
                                 Clock::time_point deadline);

class Link {
 public:
  explicit Link(Joined joined);
  ~Link();

  void send(const std::string& message);
  Result<Epoch> wait_epoch(int64_t after, std::chrono::milliseconds timeout);
  void on_end(int64_t epoch, std::function<void(const std::string&)> callback);
  void fault(int64_t epoch, const std::string& why);
  // Sends a kSet or kGet, whose fields after the epoch `rest` adds, and waits for the answer.
  Result<std::string> request(Kind kind, int64_t epoch, const std::function<void(Message&)>& rest,
                              std::optional<std::chrono::milliseconds> timeout);
  void report(std::function<Progress()> progress);
  void mute_for_test();

 private:
  struct Request {
    int64_t epoch = 0;
    std::optional<Result<std::string>> answer;
  };
  using Lock = std::unique_lock<std::mutex>;

  void run();
  Status turn();
  // These are called with the mutex held.
  Status handle(std::string_view message);
  void end_up_to(int64_t number, const std::string& reason);
  void push(const std::string& message);
  void call_if_ended(Lock& lock);
  bool wait_until(Lock& lock, std::optional<Clock::time_point> until, const std::function<bool()>& there);

  Channel channel_;  // the thread reads it; writing is under the mutex
  const std::chrono::milliseconds lease_;
  Waker waker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false, muted_ = false;
  std::function<Progress()> progress_;          // for heartbeats
  Clock::time_point next_beat_, silent_until_;  // of the thread
  Epoch epoch_;                                 // the last that began
  int64_t ended_ = 0;                           // epochs up to this number have ended
  std::string end_reason_;
  std::optional<Error> gone_;  // the coordinator, for this member
  int64_t faulted_ = 0;
  int64_t next_request_ = 1;
  std::map<int64_t, Request> requests_;
  std::function<void(const std::string&)> callback_;
  int64_t callback_epoch_ = 0;
  std::optional<std::thread::id> runner_;  // the thread that runs a callback
  std::thread thread_;
};

}  // namespace ostro::cluster
