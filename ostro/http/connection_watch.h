// ConnectionWatch: ends connections that do not bring a request in time, or are too many of that kind, or do
// not read their answer in time, and says when a client has left.
//
// libmicrohttpd has only a limit for idle connections, which a client that sends or reads a byte now and then
// never reaches; it does not look at a connection that waits for its answer; and where all connections that
// it may have are there, it accepts none. Thread-safe; it has a thread of its own, which calls what it was
// given.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace ostro::http {

class ConnectionWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // Of connections without a whole request at most `most_expected` are kept.
  explicit ConnectionWatch(size_t most_expected);
  ~ConnectionWatch();
  ConnectionWatch(const ConnectionWatch&) = delete;
  ConnectionWatch& operator=(const ConnectionWatch&) = delete;

  // The first call is for a new connection, the second when its header is there. The connection is shut down
  // unless a later call is made for the socket within `limit`, or if there are too many: of those without a
  // header the oldest, then of all.
  void expect(int socket, std::chrono::milliseconds limit);
  // The request is there. `left` is called once, when the client has closed its side; perhaps at once.
  void wait(int socket, std::function<void()> left);
  // All of the answer is there. The connection is shut down unless end() is called within `limit`.
  void answer(int socket, std::chrono::milliseconds limit);
  // The socket is about to be closed. Nothing is called for it any more, but a call may be on its way.
  void end(int socket);
  // Shuts down all connections that there are. Returns whether there are none.
  bool shut_down_all();

 private:
  struct Watched {
    uint64_t number = 0;  // tells a socket from an earlier one of the same number
    Clock::time_point due = Clock::time_point::max();
    bool has_header = false, has_request = false;
    std::function<void()> left;
    bool closed = false;  // by the client
  };

  void watch();
  void wake() const;
  void shut_down(int socket, Watched& watched);
  void shut_down_oldest();  // where there are too many
  // Shuts down what is due. Returns the milliseconds to the next time; -1: none.
  int shut_down_late_ones();

  const size_t most_expected_;
  int epoll_, event_;
  std::mutex mutex_;
  bool over_ = false;
  uint64_t last_number_ = 0;
  std::map<int, Watched> sockets_;
  std::thread thread_;
};

}  // namespace ostro::http
