#include "ostro/cluster_check/link_probe.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ostro/base/net/host_port.h"

namespace ostro::cluster_check {
namespace {

using cluster::Clock;

constexpr size_t kKeyBytes = 64, kCountBytes = 8, kProbePiece = 1 << 18;
constexpr char kAcknowledged = 'k';
// Both sides begin at about the same time.
constexpr std::chrono::seconds kConnectPatience{10}, kAcceptPatience{15};

// Waits until the socket is ready; false at the deadline.
bool is_ready(const cluster::Socket& socket, short events, Clock::time_point until) {
  while (true) {
    pollfd wait{socket.fd(), events, 0};
    const int ready = ::poll(&wait, 1, cluster::poll_milliseconds(until));
    if (ready > 0) return true;
    if (ready == 0 && Clock::now() >= until) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

Status send_all(const cluster::Socket& socket, const char* data, size_t count, Clock::time_point until) {
  while (count > 0) {
    const ssize_t sent = ::send(socket.fd(), data, count, MSG_NOSIGNAL);
    if (sent > 0) {
      data += sent, count -= static_cast<size_t>(sent);
    } else if (errno != EAGAIN && errno != EINTR) {
      return io_error(fmt::format("the connection broke: {}", std::strerror(errno)));
    } else if (!is_ready(socket, POLLOUT, until)) {
      return io_error("the other side takes no bytes");
    }
  }
  return {};
}

Status receive_all(const cluster::Socket& socket, char* data, size_t count, Clock::time_point until) {
  while (count > 0) {
    const ssize_t got = ::recv(socket.fd(), data, count, 0);
    if (got > 0) {
      data += got, count -= static_cast<size_t>(got);
    } else if (got == 0) {
      return io_error("the other side closed the connection");
    } else if (errno != EAGAIN && errno != EINTR) {
      return io_error(fmt::format("the connection broke: {}", std::strerror(errno)));
    } else if (!is_ready(socket, POLLIN, until)) {
      return io_error("no bytes came");
    }
  }
  return {};
}

}  // namespace

Result<LinkListener> LinkListener::open(const dist::Reach& reach, const std::string& key) {
  if (key.size() != kKeyBytes)
    return invalid_argument(fmt::format("a key has {} characters, not {}", kKeyBytes, key.size()));
  LinkListener out;
  constexpr int kMostWaiting = 64;
  ASSIGN_OR_RETURN(dist::Listener listener, dist::listen_at(reach, kMostWaiting));
  ASSIGN_OR_RETURN(out.place_,
                   parse_host_port(host_and_port(listener.host, std::atoi(listener.port.c_str()))));
  out.socket_ = cluster::Socket(listener.socket.release());
  out.key_ = key;
  return out;
}

Status LinkListener::take(std::chrono::milliseconds patience) {
  const auto until = cluster::deadline_after(patience);
  const auto come_until = std::min(until, cluster::deadline_after(kAcceptPatience));
  while (is_ready(socket_, POLLIN, come_until)) {
    auto connection = cluster::accept_from(socket_);
    if (!connection.ok()) continue;
    std::array<char, kKeyBytes + kCountBytes> head{};
    // A stranger who sends nothing may not hold up the one that is waited for.
    constexpr std::chrono::milliseconds kHeadPatience{2000};
    const auto head_until = std::min(come_until, cluster::deadline_after(kHeadPatience));
    if (!receive_all(*connection, head.data(), head.size(), head_until).ok() ||
        std::string_view(head.data(), kKeyBytes) != key_)
      continue;
    int64_t left = 0;
    std::memcpy(&left, head.data() + kKeyBytes, kCountBytes);
    if (left < 0 || left > kMostProbeBytes) return io_error("the other side sends too many bytes");
    std::vector<char> piece(kProbePiece);
    while (left > 0) {
      const auto count = static_cast<size_t>(std::min<int64_t>(left, kProbePiece));
      RETURN_IF_ERROR(receive_all(*connection, piece.data(), count, until));
      left -= static_cast<int64_t>(count);
    }
    return send_all(*connection, &kAcknowledged, 1, until);
  }
  return io_error("no connection came");
}

Result<double> probe_link(const std::string& address, int port, const std::string& key, int64_t bytes,
                          std::chrono::milliseconds patience, const std::string& advice) {
  const auto until = cluster::deadline_after(patience);
  cluster::KnownAddresses known;
  auto connected = cluster::connect_to(
      address, port, std::min(until, cluster::deadline_after(kConnectPatience)), &known, "listener");
  if (!connected.ok())
    return io_error(fmt::format("no connection to {} in {} s ({}){}{}", host_and_port(address, port),
                                kConnectPatience.count(), connected.error().message(),
                                known.list && !advice.empty() ? "; " : "", known.list ? advice : ""));
  std::string head = key;
  head.append(reinterpret_cast<const char*>(&bytes), kCountBytes);
  RETURN_IF_ERROR(send_all(*connected, head.data(), head.size(), until));
  const std::vector<char> piece(kProbePiece, 'o');
  const auto begin = Clock::now();
  for (int64_t left = bytes; left > 0; left -= kProbePiece)
    RETURN_IF_ERROR(
        send_all(*connected, piece.data(), static_cast<size_t>(std::min<int64_t>(left, kProbePiece)), until));
  char acknowledged = 0;
  RETURN_IF_ERROR(receive_all(*connected, &acknowledged, 1, until));
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace ostro::cluster_check
