#include "ostro/simulate/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ostro/base/check.h"
#include "ostro/cluster/messages/message.h"
#include "ostro/dist/key_value.h"
#include "ostro/simulate/step/units.h"

namespace ostro::simulate {
namespace {

constexpr double kLookEvery = 0.005;   // seconds: messages that come together are answered together
constexpr size_t kLengthBytes = 4;     // of a message, in front of it
constexpr size_t kShortMessage = 17;   // a kind and two numbers
constexpr double kFirstSecond = 3600;  // of the roster's clock, whose times are not 0

std::string address_group(int64_t epoch) { return fmt::format("gloo/{}/address/", epoch); }

}  // namespace

Job::Job(EventQueue& queue, const SimulateOptions& options, const cluster::Sizes& sizes, Events events)
    : queue_(queue),
      options_(options),
      events_(std::move(events)),
      hosts_(static_cast<size_t>(options.hosts)),
      asked_(hosts_.size()),
      place_of_(1, -1),
      roster_(sizes, 0, [this](int64_t member, const std::string& message) { send(member, message); }) {}

cluster::Time Job::time() const {
  return cluster::Time(std::chrono::duration_cast<cluster::Time::duration>(
      std::chrono::duration<double>(queue_.now() + kFirstSecond)));
}

void Job::join(int64_t place, bool first) {
  cluster::Hello hello{"simulated", {}, fmt::format("host-{}", place), 1};
  if (options_.slices > 1) hello.slice = std::to_string(place / (options_.hosts / options_.slices));
  const auto added = roster_.add(hello, time());
  OSTRO_CHECK(added.ok(), "host {} cannot join: {}", place, added.error().message());
  Host& host = hosts_[static_cast<size_t>(place)];
  host = Host();
  host.member = *added;
  place_of_.push_back(place);
  OSTRO_CHECK(static_cast<int64_t>(place_of_.size()) == *added + 1, "member {} of {}", *added,
              place_of_.size());
  ++traffic_.received;
  traffic_.received_bytes += static_cast<int64_t>(cluster::hello_message(hello).size() + kLengthBytes);
  const auto say_ready = [this, place, member = host.member] {
    if (hosts_[static_cast<size_t>(place)].member != member) return;
    to_coordinator(place, 1, true, [this](int64_t m) { roster_.ready(m, time()); });
  };
  if (!first) queue_.after(options_.prepare_seconds, say_ready);
  look_soon();
}

void Job::lose(int64_t place) {
  const int64_t member = std::exchange(hosts_[static_cast<size_t>(place)].member, 0);
  if (member == 0) return;
  queue_.after(options_.notice_seconds + options_.outer_latency_us * kMicro, [this, member] {
    roster_.remove(member, "it is silent");
    look_soon();
  });
}

// The coordinator's link carries one message after another.
void Job::send(int64_t member, const std::string& message) {
  ++traffic_.sent;
  traffic_.sent_bytes += static_cast<int64_t>(message.size() + kLengthBytes);
  coordinator_free_ =
      std::max(coordinator_free_, queue_.now()) +
      static_cast<double>(message.size() + kLengthBytes) * kBitsAByte / (options_.coordinator_gbit * kGiga);
  // Of what is long, the host reads the beginning only.
  constexpr size_t kRead = 64;
  queue_.at(coordinator_free_ + options_.outer_latency_us * kMicro,
            [this, place = place_of_[static_cast<size_t>(member)], member,
             beginning = message.substr(0, kRead)] { receive(place, member, beginning); });
}

void Job::to_coordinator(int64_t place, size_t bytes, bool decides,
                         std::function<void(int64_t member)> message) {
  ++traffic_.received;
  traffic_.received_bytes += static_cast<int64_t>(bytes + kLengthBytes);
  queue_.after(
      options_.outer_latency_us * kMicro,
      [this, decides, member = hosts_[static_cast<size_t>(place)].member, message = std::move(message)] {
        if (member == 0 || !roster_.has(member)) return;
        message(member);
        if (decides) look_soon();
      });
}

void Job::receive(int64_t place, int64_t member, const std::string& message) {
  Host& host = hosts_[static_cast<size_t>(place)];
  if (host.member != member) return;  // it was lost meanwhile
  cluster::MessageReader reader(message);
  const int64_t number = reader.number();
  switch (reader.kind()) {
    case cluster::Kind::kEpoch: {
      const int64_t rank = reader.number();
      const bool planned = reader.number() != 0;
      if (rank < 0) return;
      host = {member, number, rank, reader.number(), planned, false};
      const double at = queue_.now() + options_.prepare_seconds;
      queue_.at(planned ? at : std::max(at, busy_until_), [this, place, member, number] {
        if (hosts_[static_cast<size_t>(place)].member == member) prepared(place, number);
      });
      return;
    }
    case cluster::Kind::kEnd:
      if (host.epoch <= number) host.epoch = 0;
      to_coordinator(place, kShortMessage, true, [this, number](int64_t m) { roster_.end_seen(m, number); });
      if (ended_ < number) {
        ended_ = number;
        events_.on_ended();
      }
      return;
    case cluster::Kind::kDropped:
      if (host.epoch != number) return;
      host.epoch = 0;
      if (host.rank == 0) events_.on_dropped();
      return;
    case cluster::Kind::kReply:
      if (number / kAsks == host.epoch && reader.number() == cluster::kReplyOk) reply(place, host, number);
      return;
    default: return;
  }
}

void Job::set(int64_t place, Ask ask, const std::string& key, const std::string& value) {
  const int64_t epoch = hosts_[static_cast<size_t>(place)].epoch;
  to_coordinator(place, kShortMessage + key.size() + value.size(), false, [=, this](int64_t member) {
    roster_.set(member, epoch * kAsks + static_cast<int64_t>(ask), epoch, key, value);
  });
}

void Job::get(int64_t place, Ask ask, const std::string& key) {
  const int64_t epoch = hosts_[static_cast<size_t>(place)].epoch;
  to_coordinator(place, kShortMessage + key.size(), false, [=, this](int64_t member) {
    roster_.get(member, epoch * kAsks + static_cast<int64_t>(ask), epoch, key);
  });
}

// As Crew::meet: every host says that it is prepared; the leader, who asks for one after the other, says that
// all are.
void Job::prepared(int64_t place, int64_t epoch) {
  Host& host = hosts_[static_cast<size_t>(place)];
  if (host.epoch != epoch) return;
  to_coordinator(place, 1, true, [this](int64_t m) { roster_.ready(m, time()); });
  host.met = false;
  asked_[static_cast<size_t>(place)] = 0;
  set(place, Ask::kPrepared, fmt::format("prepared/{}", host.rank), "");
}

void Job::reply(int64_t place, Host& host, int64_t request) {
  int64_t& asked = asked_[static_cast<size_t>(place)];
  const auto look_for = [&](int64_t rank) { get(place, Ask::kLook, fmt::format("prepared/{}", rank)); };
  switch (static_cast<Ask>(request % kAsks)) {
    case Ask::kPrepared:
      if (host.rank == 0) return look_for(asked);
      return get(place, Ask::kGo, dist::kAllPreparedKey);
    case Ask::kLook:
      if (++asked < host.size) return look_for(asked);
      return set(place, Ask::kAllPrepared, dist::kAllPreparedKey, "");
    case Ask::kAllPrepared:
    case Ask::kGo: return met(place);
    case Ask::kAddress:
      return to_coordinator(place, kShortMessage + address_group(host.epoch).size(), false,
                            [this, epoch = host.epoch, size = host.size](int64_t member) {
                              roster_.get_all(member, epoch * kAsks + static_cast<int64_t>(Ask::kAddresses),
                                              epoch, address_group(epoch), size);
                            });
    case Ask::kAddresses: {
      // Each pair has a connection; the cores of a machine are shared.
      const double busy =
          static_cast<double>(std::min(options_.hosts_per_machine, host.size)) / options_.cores;
      queue_.after(options_.connect_us * kMicro * static_cast<double>(host.size - 1) * std::max(1.0, busy) +
                       2 * options_.outer_latency_us * kMicro,
                   [this, place, epoch = host.epoch] { connected(place, epoch); });
      return;
    }
  }
}

void Job::met(int64_t place) {
  Host& host = hosts_[static_cast<size_t>(place)];
  host.met = true;
  if (!host.planned) return connect(place);
  if (host.rank == 0) events_.on_planned();
}

void Job::connect(int64_t place) {
  const Host& host = hosts_[static_cast<size_t>(place)];
  if (connecting_ != host.epoch) connecting_ = host.epoch, connected_ = 0;
  set(place, Ask::kAddress, address_group(host.epoch) + std::to_string(host.rank),
      fmt::format("{} 10.{}.{}.{} 40000", host.size, place / 65536, place / 256 % 256, place % 256));
}

void Job::connected(int64_t place, int64_t epoch) {
  const Host& host = hosts_[static_cast<size_t>(place)];
  if (host.member == 0 || host.epoch != epoch || connecting_ != epoch) return;
  if (++connected_ < host.size) return;
  std::vector<int64_t> places(static_cast<size_t>(host.size));
  for (size_t p = 0; p < hosts_.size(); ++p)
    if (hosts_[p].member != 0 && hosts_[p].epoch == epoch)
      places[static_cast<size_t>(hosts_[p].rank)] = static_cast<int64_t>(p);
  events_.on_formed(places);
}

// A host that has not heard yet that all are prepared hears it before the others can connect with it.
void Job::change_over() {
  for (size_t place = 0; place < hosts_.size(); ++place) {
    Host& host = hosts_[place];
    if (host.member == 0 || !host.planned || host.epoch == 0) continue;
    host.planned = false;
    if (host.met) connect(static_cast<int64_t>(place));
  }
}

void Job::began(int64_t steps) {
  for (size_t place = 0; place < hosts_.size(); ++place)
    if (hosts_[place].member != 0 && hosts_[place].epoch == connecting_)
      to_coordinator(static_cast<int64_t>(place), kShortMessage, true,
                     [this, steps, epoch = connecting_](int64_t m) {
                       if (sent_steps_ != steps) roster_.steps(sent_steps_ = steps);
                       roster_.began(m, epoch);
                     });
}

void Job::look_soon() {
  if (std::exchange(looks_, true)) return;
  queue_.after(kLookEvery, [this] { look(); });
}

void Job::look() {
  looks_ = false;
  roster_.expire(time());
  if (roster_.can_begin(time())) roster_.begin(time());
  const auto next = roster_.next_look(time());
  if (!next) return;
  const double wait = std::max(kLookEvery, std::chrono::duration<double>(*next - time()).count());
  if (next_look_ > queue_.now() && next_look_ <= queue_.now() + wait) return;
  next_look_ = queue_.now() + wait;
  queue_.at(next_look_, [this] {
    if (!looks_) look();
  });
}

}  // namespace ostro::simulate
