#include "ostro/http/server.h"

#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

namespace ostro::http {
namespace {

using Clock = std::chrono::steady_clock;

// Ends connections whose header does not come in time. libmicrohttpd has only a limit for idle ones, which a
// client that sends a byte now and then never reaches.
class HeaderDeadline {
 public:
  explicit HeaderDeadline(std::chrono::milliseconds limit) : limit_(limit), thread_([this] { watch(); }) {}
  ~HeaderDeadline() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void begin(int socket) {
    const std::lock_guard lock(mutex_);
    due_[socket] = Clock::now() + limit_;
    changed_.notify_one();
  }
  // The header is there, or the connection is about to be closed.
  void end(int socket) {
    const std::lock_guard lock(mutex_);
    due_.erase(socket);
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!over_) {
      Clock::time_point next = Clock::now() + std::chrono::hours(1);
      for (auto one = due_.begin(); one != due_.end();) {
        if (one->second <= Clock::now()) {
          ::shutdown(one->first, SHUT_RDWR);  // the server closes it then
          one = due_.erase(one);
        } else {
          next = std::min(next, one->second);
          ++one;
        }
      }
      changed_.wait_until(lock, next);
    }
  }

  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::map<int, Clock::time_point> due_;  // by socket
  std::thread thread_;
};

int socket_of(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

MHD_Result add_header(void* to, MHD_ValueKind, const char* name, const char* value) {
  std::string small(name);
  for (char& c : small) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  (*static_cast<std::map<std::string, std::string>*>(to))[small] = value == nullptr ? "" : value;
  return MHD_YES;
}

MHD_Result add_query(void* to, MHD_ValueKind, const char* name, const char* value) {
  (*static_cast<std::map<std::string, std::string>*>(to))[name] = value == nullptr ? "" : value;
  return MHD_YES;
}

MHD_Result send_response(MHD_Connection* connection, const Response& response) {
  MHD_Response* out = MHD_create_response_from_buffer(
      response.body.size(), const_cast<char*>(response.body.data()), MHD_RESPMEM_MUST_COPY);
  if (out == nullptr) return MHD_NO;
  for (const auto& [name, value] : {std::pair{"Content-Type", response.type.c_str()},
                                    {"Connection", "close"},
                                    {"Cache-Control", "no-store"},
                                    {"Referrer-Policy", "no-referrer"},
                                    {"X-Content-Type-Options", "nosniff"},
                                    {"X-Frame-Options", "DENY"}})
    MHD_add_response_header(out, name, value);
  if (response.status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(out, "Allow", "GET, HEAD");
  const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(response.status), out);
  MHD_destroy_response(out);
  return queued;
}

// A socket that listens. Made here, because libmicrohttpd does not say why it could not make one.
Result<int> listening_socket(const Address& address) {
  const auto failed = [&](int socket) {
    const int error = errno;
    if (socket >= 0) ::close(socket);
    return io_error(fmt::format("cannot listen at {}: {}", host_and_port(address.host, address.port),
                                std::strerror(error)));
  };
  constexpr int kBacklog = 128;
  const int socket = ::socket(address.socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address.socket), address.size) != 0 ||
      ::listen(socket, kBacklog) != 0)
    return failed(socket);
  return socket;
}

int port_of(int socket) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(name).sin_port);
}

class MicroServer final : public Server {
 public:
  MicroServer(Handler handler, const Limits& limits)
      : handler_(std::move(handler)), deadline_(limits.header) {}
  ~MicroServer() override {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);  // closes the socket
  }

  bool run(int socket, bool ipv6, const Limits& limits) {
    port_ = port_of(socket);
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | (ipv6 ? static_cast<unsigned>(MHD_USE_IPv6) : 0U);
    daemon_ = MHD_start_daemon(
        flags, 0, nullptr, nullptr, &MicroServer::on_request, this, MHD_OPTION_LISTEN_SOCKET, socket,
        MHD_OPTION_NOTIFY_CONNECTION, &MicroServer::on_connection, this, MHD_OPTION_CONNECTION_LIMIT,
        limits.connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT, limits.connections_of_address,
        MHD_OPTION_CONNECTION_TIMEOUT, static_cast<unsigned>(limits.idle.count()),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits.memory, MHD_OPTION_END);
    return daemon_ != nullptr;
  }
  int port() const override { return port_; }

 private:
  static void on_connection(void* self, MHD_Connection* connection, void**,
                            MHD_ConnectionNotificationCode code) {
    HeaderDeadline& deadline = static_cast<MicroServer*>(self)->deadline_;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
      deadline.begin(socket_of(connection));
    else
      deadline.end(socket_of(connection));
  }

  // Called when a header is whole.
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                               const char*, const char*, size_t*, void**) {
    auto& server = *static_cast<MicroServer*>(self);
    server.deadline_.end(socket_of(connection));
    if (std::strcmp(method, MHD_HTTP_METHOD_GET) != 0 && std::strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
      return send_response(connection, {MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain; charset=utf-8",
                                        "this server is read-only: GET and HEAD\n"});
    Request request;
    request.path = path;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, &add_header, &request.headers);
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &add_query, &request.query);
    return send_response(connection, server.handler_(request));
  }

  const Handler handler_;
  HeaderDeadline deadline_;
  MHD_Daemon* daemon_ = nullptr;
  int port_ = 0;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const Address& address, Handler handler, const Limits& limits) {
  ASSIGN_OR_RETURN(const int socket, listening_socket(address));
  auto server = std::make_unique<MicroServer>(std::move(handler), limits);
  if (!server->run(socket, address.socket.ss_family == AF_INET6, limits)) {
    ::close(socket);
    return io_error(fmt::format("{}: the server does not start", host_and_port(address.host, address.port)));
  }
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace ostro::http
