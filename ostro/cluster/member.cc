#include "ostro/cluster/member.h"

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>

#include "ostro/base/open_files.h"
#include "ostro/cluster/link.h"
#include "ostro/cluster/messages/message.h"
#include "ostro/cluster/messages/values.h"

namespace ostro::cluster {

// Not in an anonymous namespace: Member::State has some.
class EpochStore : public dist::KeyValue {
 public:
  EpochStore(Link& link, int64_t epoch) : link_(link), epoch_(epoch) {}

  Status set(const std::string& key, std::string_view value) override {
    static constexpr size_t kMostPair = kMostBytes - 1024;  // leaves room for the other fields
    if (key.size() + value.size() > kMostPair) {
      return invalid_argument(fmt::format("key '{}': {} bytes; {} is the most", shortened(key, 100),
                                          key.size() + value.size(), kMostPair));
    }
    const auto fields = [&](Message& message) { message.text(key).text(value); };
    link_.keep(epoch_, key, std::string(value));
    const Result<std::string> answer = link_.request(Kind::kSet, epoch_, fields, std::nullopt);
    if (!answer.ok()) return named(answer.error(), key);
    return {};
  }

  Result<std::string> get(const std::string& key, std::chrono::milliseconds timeout) override {
    if (key.size() > kMostBytes / 2) return invalid_argument("a key of more than 512 KiB");
    Result<std::string> answer =
        link_.request(Kind::kGet, epoch_, [&](Message& message) { message.text(key); }, timeout);
    if (!answer.ok()) return named(answer.error(), key);
    return answer;
  }

  Result<std::vector<std::string>> get_all(const std::string& group, int64_t count,
                                           std::chrono::milliseconds timeout) override {
    if (group.size() > kMostBytes / 2) return invalid_argument("a key of more than 512 KiB");
    const auto fields = [&](Message& message) { message.text(group).number(count); };
    const Result<std::string> answer = link_.request(Kind::kGetAll, epoch_, fields, timeout);
    if (!answer.ok()) return named(answer.error(), group);
    auto values = unpacked(*answer);
    if (!values || static_cast<int64_t>(values->size()) != count)
      return named(corrupt("it does not follow the protocol of a coordinator"), group);
    return *std::move(values);
  }

 private:
  static Error named(const Error& error, const std::string& key) {
    return error.with_context(fmt::format("key '{}'", shortened(key, 100)));
  }

  Link& link_;
  int64_t epoch_;
};

constexpr std::chrono::minutes kAwayPatience{10};

struct Member::State {
  State(Joined joined, const Hello& hello, Link::Reconnect reconnect)
      : link(std::move(joined), hello, std::move(reconnect), kAwayPatience) {}
  std::mutex mutex;
  std::map<int64_t, EpochStore> stores;
  Link link;  // the last to be made and the first to end: its thread runs callbacks
};

Member::Member(std::unique_ptr<State> state) : state_(std::move(state)) {}
Member::~Member() = default;

Result<std::unique_ptr<Member>> Member::join(const std::string& host, int port, const std::string& secret,
                                             const Hello& hello, std::chrono::milliseconds timeout,
                                             bool tls) {
  const std::string message = hello_message(hello);
  if (message.size() > kMostBytes) {
    return invalid_argument(fmt::format("a hello of {} bytes; {} is the most", message.size(), kMostBytes));
  }
  raise_open_files();  // a worker has a connection to each other one
  std::shared_ptr<tls::Certificates> certificates;
  if (tls) {
    ASSIGN_OR_RETURN(certificates, tls::Certificates::of_job(secret));
  }
  KnownAddresses known;
  ASSIGN_OR_RETURN(Joined joined,
                   connect_and_prove(host, port, secret, certificates.get(), deadline_after(timeout), known));
  // Ahead of the first heartbeat.
  joined.channel.push(message);
  const auto again = [host, port, secret, certificates, known](Clock::time_point until) mutable {
    return connect_and_prove(host, port, secret, certificates.get(), until, known, true);
  };
  return std::unique_ptr<Member>(new Member(std::make_unique<State>(std::move(joined), hello, again)));
}

Result<Epoch> Member::wait_epoch(int64_t after, std::chrono::milliseconds timeout) {
  return state_->link.wait_epoch(after, timeout);
}

void Member::on_end(int64_t epoch, std::function<void(const std::string& reason)> callback) {
  state_->link.on_end(epoch, std::move(callback));
}

void Member::fault(int64_t epoch, const std::string& why) { state_->link.fault(epoch, why); }

void Member::ready() { state_->link.send(Message(Kind::kReady).bytes()); }
void Member::leave() { state_->link.send(Message(Kind::kLeave).bytes()); }
void Member::began(int64_t epoch) { state_->link.began(epoch); }
void Member::done(int64_t status) { state_->link.send(Message(Kind::kDone).number(status).bytes()); }
void Member::goes(const std::string& why) {
  state_->link.send(Message(Kind::kGoes).text(shortened(why, kMostBytesOfReason)).bytes());
}
void Member::tells(const std::string& what) {
  state_->link.send(Message(Kind::kTells).text(shortened(what, kMostBytesOfReason)).bytes());
}
void Member::slices(int64_t epoch, const FoundNames& found) {
  Message message(Kind::kSlices);
  message.number(epoch).number(found.ends ? 1 : 0).number(found.anew ? 1 : 0);
  message.number(found.rates.limit).number(found.rates.fastest);
  message.text(shortened(found.text, kMostBytesOfReason));
  message.number(static_cast<int64_t>(found.names.size()));
  for (const std::string& name : found.names) message.text(name);
  state_->link.send(message.bytes());
}
bool Member::stop_asked() const { return state_->link.stop_asked(); }
std::optional<int64_t> Member::over() const { return state_->link.over(); }

std::string Member::coordinator_address() const { return state_->link.address(); }

dist::KeyValue& Member::store(int64_t epoch) {
  const std::lock_guard lock(state_->mutex);
  return state_->stores.try_emplace(epoch, state_->link, epoch).first->second;
}

void Member::report(std::function<Progress()> progress) { state_->link.report(std::move(progress)); }

void Member::pass_on(std::function<std::string(size_t most)> said) { state_->link.pass_on(std::move(said)); }

void Member::mute_for_test() { state_->link.mute_for_test(); }

}  // namespace ostro::cluster
