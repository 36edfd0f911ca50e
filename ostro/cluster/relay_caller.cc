#include "ostro/cluster/relay_caller.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "ostro/base/net/host_port.h"
#include "ostro/base/sha256.h"
#include "ostro/cluster/messages/message.h"
#include "ostro/cluster/relay_request.h"
#include "ostro/cluster/wire/channel.h"

namespace ostro::cluster {
namespace {

// A reason why the coordinator refuses, and what is around it.
constexpr size_t kMostBytesOfAnswer = kMostBytesOfReason + 64;
constexpr std::chrono::seconds kMostOfAnAttempt{5};  // to connect, where there is another address
// A coordinator may be restarted, or drop some of many that call at once: then another call is made, so often
// and after rests that grow from the first to the last.
constexpr int kMostAttempts = 8;
constexpr std::chrono::milliseconds kFirstRest{50}, kMostRest{1000};

// Reads no byte behind a message: what follows the last one is the other worker's. While it rests there is no
// descriptor, and turn() is to be called again after a while.
class Call final : public dist::RelayCall {
 public:
  Call(HostPort coordinator, std::function<std::string()> address, std::string secret, RelayRequest request)
      : coordinator_(std::move(coordinator)),
        address_(std::move(address)),
        secret_(std::move(secret)),
        request_(std::move(request)) {}

  int fd() const override { return socket_.fd(); }
  bool wants_to_write() const override { return connecting_ || sent_ < out_.size(); }
  dist::Socket take() override { return std::move(socket_); }

  Result<bool> turn() override {
    if (resting_ && Clock::now() < again_) return false;
    auto joined = resting_ ? begin_again() : go_on();
    if (joined.ok()) return joined;
    if (joined.error().code() != ErrorCode::kIo || ++attempts_ >= kMostAttempts)
      return joined.error().with_context(place());
    socket_.close();
    resting_ = true;
    again_ = Clock::now() + std::min(kMostRest, kFirstRest * (1 << attempts_));
    return false;
  }

 private:
  std::string place() const {
    return "the coordinator at " + host_and_port(coordinator_.host, coordinator_.port);
  }

  // Begins to connect to the next of the coordinator's addresses.
  Status begin() {
    auto begun = dist::begin_connect(host_, std::to_string(coordinator_.port), next_);
    if (!begun.ok()) return io_error(begun.error().message());
    socket_ = std::move(begun->socket);
    connecting_ = true;
    next_ = begun->next;
    since_ = Clock::now();
    return {};
  }

  Result<bool> begin_again() {
    next_ = 0, sent_ = 0;
    host_ = address_ && attempts_ % 2 == 0 ? address_() : coordinator_.host;
    in_.clear(), out_.clear();
    greeted_ = false;
    RETURN_IF_ERROR(begin());
    resting_ = false;
    return false;
  }

  Result<bool> go_on() {
    if (connecting_) {
      pollfd there{fd(), POLLOUT, 0};
      const bool ready = ::poll(&there, 1, 0) > 0;
      const int failed = ready ? dist::connect_error(socket_) : 0;
      const bool late = !ready && Clock::now() > since_ + kMostOfAnAttempt;
      if (next_ > 0 && (failed != 0 || late)) {
        RETURN_IF_ERROR(begin());
        return false;
      }
      if (late && address_) return io_error("connecting to it: no answer");  // the next attempt is otherwise
      if (!ready) return false;
      if (failed != 0) return io_error(fmt::format("connecting to it: {}", std::strerror(failed)));
      connecting_ = false;
    }
    while (true) {
      ASSIGN_OR_RETURN(const bool all, send_some());
      if (!all) return false;
      ASSIGN_OR_RETURN(const std::optional<std::string> message, receive_message());
      if (!message) return false;
      ASSIGN_OR_RETURN(const bool joined, handle(*message));
      if (joined) return true;
    }
  }

  // Whether everything is sent.
  Result<bool> send_some() {
    while (sent_ < out_.size()) {
      const ssize_t put = ::send(fd(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put >= 0)
        sent_ += static_cast<size_t>(put);
      else if (errno == EAGAIN || errno == EWOULDBLOCK)
        return false;
      else if (errno != EINTR)
        return io_error(fmt::format("the connection broke: {}", std::strerror(errno)));
    }
    return true;
  }

  // The next whole message, when it is there.
  Result<std::optional<std::string>> receive_message() {
    while (true) {
      const std::optional<size_t> size = Channel::size_of(in_);
      if (size && (*size == 0 || *size > kMostBytesOfAnswer))
        return corrupt("it does not follow the protocol of a coordinator");
      const size_t whole = Channel::kHeader + size.value_or(0);
      if (size && in_.size() == whole) return std::optional(std::exchange(in_, "").substr(Channel::kHeader));
      std::array<char, 512> bytes;
      const ssize_t got =
          ::recv(fd(), bytes.data(), std::min(bytes.size(), whole - in_.size()), MSG_DONTWAIT);
      if (got > 0)
        in_.append(bytes.data(), static_cast<size_t>(got));
      else if (got == 0)
        return io_error("it closed the connection");
      else if (errno == EAGAIN || errno == EWOULDBLOCK)
        return std::optional<std::string>();
      else if (errno != EINTR)
        return io_error(fmt::format("the connection broke: {}", std::strerror(errno)));
    }
  }

  // Whether the other worker is there.
  Result<bool> handle(const std::string& message) {
    MessageReader reader(message);
    if (reader.kind() == Kind::kRefused) return invalid_argument(std::string(reader.text()));
    if (reader.kind() == Kind::kNoRelay) return io_error(std::string(reader.text()));  // others may leave
    const bool greets = reader.kind() == Kind::kChallenge || reader.kind() == Kind::kSecured;
    if (greets && !greeted_) {
      greeted_ = true;
      const std::string nonce(reader.text());
      if (!reader.done()) return corrupt("it does not follow the protocol of a coordinator");
      const Nonce own = new_nonce();
      request_.nonce.assign(own.data(), own.size());
      out_ = Channel::framed(relay_message(request_, secret_, nonce));
      sent_ = 0;
      return false;
    }
    if (reader.kind() == Kind::kRelayed && greeted_ && reader.done()) return true;
    return corrupt("it does not follow the protocol of a coordinator");
  }

  const HostPort coordinator_;
  const std::function<std::string()> address_;
  std::string host_;  // of this attempt
  const std::string secret_;
  RelayRequest request_;
  dist::Socket socket_;
  size_t next_ = 0;  // the number of the coordinator's address that is tried next
  Clock::time_point since_;
  bool connecting_ = true, greeted_ = false, resting_ = true;
  int attempts_ = 0;         // that have failed
  Clock::time_point again_;  // when the rest is over
  std::string in_, out_;
  size_t sent_ = 0;
};

}  // namespace

Result<std::unique_ptr<dist::RelayCall>> RelayCaller::call(const std::string& group, int64_t own,
                                                           int64_t peer) {
  const Sha256Digest name = sha256(group);
  RelayRequest request;
  request.group.assign(reinterpret_cast<const char*>(name.data()), name.size());
  request.own = own, request.peer = peer;
  auto call = std::make_unique<Call>(HostPort{host_, port_}, address_, secret_, std::move(request));
  if (const auto begun = call->turn(); !begun.ok()) return begun.error();
  return std::unique_ptr<dist::RelayCall>(std::move(call));
}

}  // namespace ostro::cluster
