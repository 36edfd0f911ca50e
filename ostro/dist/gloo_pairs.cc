#include "ostro/dist/gloo_pairs.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <utility>

#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/tcp/loop.h>

namespace ostro::dist {
namespace {

namespace tcp = gloo::transport::tcp;

// Gloo connects to the one of two that has the lower address.
constexpr const char* kLower = "127.0.0.1";
constexpr const char* kHigher = "127.0.0.2";
// Of Gloo's waits that are given no other limit: to connect within this process.
constexpr std::chrono::seconds kTimeout{30};

sockaddr_in name_of(int fd, int (*get)(int, sockaddr*, socklen_t*)) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  if (get(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0 || name.sin_family != AF_INET) return {};
  return name;
}

bool same_place(const sockaddr_in& a, const sockaddr_in& b) {
  return a.sin_family == AF_INET && b.sin_family == AF_INET && a.sin_port == b.sin_port &&
         a.sin_addr.s_addr == b.sin_addr.s_addr;
}

// This process's end of a connection within it; -1: the other end is another process's.
int other_end_of(const Socket& accepted) {
  const sockaddr_in wanted = name_of(accepted.fd(), ::getpeername);
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::atoi(entry.path().filename().c_str());
    if (fd != accepted.fd() && same_place(name_of(fd, ::getsockname), wanted) &&
        same_place(name_of(fd, ::getpeername), name_of(accepted.fd(), ::getsockname)))
      return fd;
  }
  return -1;
}

// A pair that is connected within this process: the descriptor that Gloo has for it, and the other end, whose
// closing would end the pair.
struct Looped {
  int fd = -1;
  Socket other_end;
};

Looped connect_to_self(gloo::transport::Pair& pair, const Listener& listener) {
  const sockaddr_in at = name_of(listener.socket.fd(), ::getsockname);
  pair.connect(tcp::Address(reinterpret_cast<const sockaddr*>(&at), sizeof at).bytes());
  while (true) {
    pollfd there{listener.socket.fd(), POLLIN, 0};
    if (::poll(&there, 1, 10'000) <= 0) throw std::runtime_error("this process does not reach itself");
    Socket accepted = accept_from(listener);
    if (!accepted.open()) continue;
    if (const int fd = other_end_of(accepted); fd >= 0) return {fd, std::move(accepted)};
  }
}

// On Gloo's thread, so that it does not look at the descriptor meanwhile.
void replace(tcp::Device& device, gloo::transport::Pair& pair, int fd, const Socket& by) {
  auto* handler = dynamic_cast<tcp::Handler*>(&pair);
  if (handler == nullptr) throw std::runtime_error("not a pair of Gloo's TCP");
  device.unregisterDescriptor(fd, handler);
  if (::dup3(by.fd(), fd, O_CLOEXEC) < 0) throw std::runtime_error("the system has no descriptor left");
  device.registerDescriptor(fd, EPOLLIN, handler);
}

}  // namespace

std::shared_ptr<gloo::transport::Device> make_gloo_device() {
  gloo::transport::tcp::attr address(kHigher);
  return tcp::CreateDevice(address);
}

GlooPairs connect_pairs(const std::shared_ptr<gloo::transport::Device>& device, GlooLoop& loop, int rank,
                        std::vector<Socket> sockets) {
  auto tcp_device = std::dynamic_pointer_cast<tcp::Device>(device);
  if (tcp_device == nullptr) throw std::runtime_error("not Gloo's TCP");
  auto listener = listen_at(kLower, 16);
  if (!listener.ok()) throw std::runtime_error(listener.error().message());
  GlooPairs out{device->createContext(rank, static_cast<int>(sockets.size())),
                std::vector<int>(sockets.size(), -1)};
  out.context->setTimeout(kTimeout);
  std::vector<Looped> looped(sockets.size());
  for (size_t i = 0; i < sockets.size(); ++i)
    if (sockets[i].open()) {
      looped[i] = connect_to_self(*out.context->createPair(static_cast<int>(i)), *listener);
      out.descriptors[i] = looped[i].fd;
    }
  std::promise<void> done;
  loop.run([&] {
    try {
      for (size_t i = 0; i < sockets.size(); ++i)
        if (sockets[i].open())
          replace(*tcp_device, *out.context->getPair(static_cast<int>(i)), out.descriptors[i], sockets[i]);
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());
    }
  });
  done.get_future().get();
  return out;
}

}  // namespace ostro::dist
