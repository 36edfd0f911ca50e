#include "ostro/http/server.h"

#include <fmt/format.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "ostro/http/connection_watch.h"
#include "ostro/http/listening_socket.h"
#include "ostro/http/micro_exchange.h"

namespace ostro::http {
namespace {

constexpr std::chrono::seconds kMostToEnd{5};  // of all connections when the server stops

using SharedExchange = std::shared_ptr<MicroExchange>;

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

Response not_allowed() {
  return {MHD_HTTP_METHOD_NOT_ALLOWED,
          "text/plain; charset=utf-8",
          "this server is read-only: GET and HEAD\n",
          {{"Allow", "GET, HEAD"}}};
}

class MicroServer final : public Server {
 public:
  MicroServer(Service service, const Limits& limits, const Address& address)
      : service_(std::move(service)),
        limits_(limits),
        address_(address),
        watch_((std::min(limits.connections, limits.connections_of_address) + 1) / 2) {}
  // Connections must not be suspended when the daemon stops.
  ~MicroServer() override {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
      for (MicroExchange* one : open_) one->leave();
    }
    if (daemon_ == nullptr) return;
    if (address_.is_unix()) ::unlink(address_.host.c_str());  // before another server can take the path
    const MHD_socket listening = MHD_quiesce_daemon(daemon_);
    end_connections();
    MHD_stop_daemon(daemon_);
    if (listening != MHD_INVALID_SOCKET) ::close(listening);
  }

  bool run(int socket) {
    port_ = port_of(socket);
    const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
                           (address_.socket.ss_family == AF_INET6 ? static_cast<unsigned>(MHD_USE_IPv6) : 0U);
    daemon_ = MHD_start_daemon(
        flags, 0, nullptr, nullptr, &MicroServer::on_request, this, MHD_OPTION_LISTEN_SOCKET, socket,
        MHD_OPTION_NOTIFY_CONNECTION, &MicroServer::on_connection, this, MHD_OPTION_NOTIFY_COMPLETED,
        &MicroServer::on_completed, this, MHD_OPTION_CONNECTION_LIMIT, limits_.connections,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, limits_.connections_of_address, MHD_OPTION_CONNECTION_TIMEOUT,
        static_cast<unsigned>(limits_.idle.count()), MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits_.memory,
        MHD_OPTION_END);
    return daemon_ != nullptr;
  }
  int port() const override { return port_; }
  bool wait_until_answered(std::chrono::milliseconds limit) override {
    std::unique_lock lock(mutex_);
    return answered_.wait_for(lock, limit, [this] { return open_.empty(); });
  }

 private:
  // A daemon of libmicrohttpd 0.9.75 that is being stopped answers no faulty request: it reads an answer that
  // is not there, and the process dies. So its connections end before.
  void end_connections() {
    const auto until = std::chrono::steady_clock::now() + kMostToEnd;
    while (!watch_.shut_down_all() && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  static void on_connection(void* self, MHD_Connection* connection, void**,
                            MHD_ConnectionNotificationCode code) {
    auto& server = *static_cast<MicroServer*>(self);
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
      server.watch_.expect(socket_of(connection), server.limits_.header);
    else
      server.watch_.end(socket_of(connection));
  }

  static void on_completed(void* self, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
    if (*state == nullptr) return;
    auto* exchange = static_cast<SharedExchange*>(*state);
    auto& server = *static_cast<MicroServer*>(self);
    {
      const std::lock_guard lock(server.mutex_);
      server.open_.erase(exchange->get());
      if (server.open_.empty()) server.answered_.notify_all();
    }
    (*exchange)->closed();
    delete exchange;
    *state = nullptr;
  }

  // Called when a header is whole, for each piece of the body, at its end, and after a connection was
  // resumed.
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                               const char*, const char* bytes, size_t* size, void** state) {
    auto& server = *static_cast<MicroServer*>(self);
    if (*state == nullptr) return server.header(connection, path, method, state);
    MicroExchange& exchange = **static_cast<SharedExchange*>(*state);
    if (*size > 0) {
      exchange.take_body({bytes, *size});
      *size = 0;
      return MHD_YES;
    }
    return server.whole(*static_cast<SharedExchange*>(*state), connection);
  }

  MHD_Result header(MHD_Connection* connection, const char* path, const char* method, void** state) {
    Request request;
    request.path = path;
    request.method = method;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, &add_header, &request.headers);
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &add_query, &request.query);
    const bool known =
        limits_.body > 0 || request.method == MHD_HTTP_METHOD_GET || request.method == MHD_HTTP_METHOD_HEAD;
    const auto on_all = [this, socket = socket_of(connection)](size_t bytes) {
      const auto more = std::chrono::seconds(bytes / std::max<size_t>(1, limits_.answer_rate));
      watch_.answer(socket, limits_.answer_time + more);
    };
    auto exchange = std::make_unique<SharedExchange>(
        std::make_shared<MicroExchange>(std::move(request), connection, limits_, on_all));
    {
      const std::lock_guard lock(mutex_);
      if (stops_) return MHD_NO;
      open_.insert(exchange->get());
    }
    MicroExchange& made = **exchange;
    *state = exchange.release();
    watch_.expect(socket_of(connection), limits_.body_time);
    if (known) return MHD_YES;
    (void)made.is_dispatched();
    made.answer(not_allowed());
    return made.go_on(connection) ? MHD_YES : MHD_NO;
  }

  MHD_Result whole(const SharedExchange& exchange, MHD_Connection* connection) {
    if (!exchange->is_dispatched()) {
      watch_.wait(socket_of(connection), [weak = std::weak_ptr(exchange)] {
        if (const auto left = weak.lock()) left->leave();
      });
      service_(exchange);
    }
    return exchange->go_on(connection) ? MHD_YES : MHD_NO;
  }

  const Service service_;
  const Limits limits_;
  const Address address_;
  std::mutex mutex_;
  std::condition_variable answered_;
  bool stops_ = false;
  std::set<MicroExchange*> open_;
  ConnectionWatch watch_;
  MHD_Daemon* daemon_ = nullptr;
  int port_ = 0;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::start(const Address& address, Handler handler, const Limits& limits) {
  return start_service(
      address,
      [handler = std::move(handler)](const std::shared_ptr<Exchange>& exchange) {
        exchange->answer(handler(exchange->request()));
      },
      limits);
}

Result<std::unique_ptr<Server>> Server::start_service(const Address& address, Service service,
                                                      const Limits& limits) {
  ASSIGN_OR_RETURN(const int socket, listening_socket(address));
  auto server = std::make_unique<MicroServer>(std::move(service), limits, address);
  if (!server->run(socket)) {
    ::close(socket);
    return io_error(fmt::format("{}: the server does not start", address_text(address, address.port)));
  }
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace ostro::http
