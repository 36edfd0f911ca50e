// Members that know the secret and then say anything, in any order, with any numbers: the coordinator stays,
// and serves those who behave.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/base/test_size.h"
#include "ostro/cluster/coordinator.h"
#include "ostro/cluster/link.h"
#include "ostro/cluster/member.h"
#include "ostro/cluster/messages/message.h"

namespace ostro::cluster {
namespace {

constexpr std::chrono::milliseconds kLong{20'000};

class Babbler {
 public:
  explicit Babbler(uint64_t seed) : rng_(seed) {}

  // A hello, mostly one that is taken; some claim to come back from an epoch.
  std::string hello() {
    Hello hello = {"job", {{"program", "p"}}, "here", number()};
    if (one_in(8)) hello.equal[0].second = text();
    if (one_in(4)) hello.machine = key();
    if (one_in(3)) {
      hello.epoch = number();
      hello.size = 1 + static_cast<int64_t>(rng_() % 4);
      hello.rank = one_in(8) ? number() : static_cast<int64_t>(rng_() % static_cast<uint64_t>(hello.size));
    }
    return hello_message(hello);
  }

  // Anything but the word that the run is over, which the coordinator would have to believe.
  std::string message() {
    static constexpr Kind kKinds[] = {Kind::kEndSeen, Kind::kFault,  Kind::kSet,   Kind::kSet,   Kind::kGet,
                                      Kind::kGet,     Kind::kCancel, Kind::kBeat,  Kind::kReady, Kind::kReady,
                                      Kind::kLeave,   Kind::kBegan,  Kind::kBegan, Kind::kHello, Kind::kProof,
                                      Kind::kSlices,  Kind::kSaid};
    const Kind kind = kKinds[rng_() % std::size(kKinds)];
    Message message(kind);
    switch (kind) {
      case Kind::kEndSeen:
      case Kind::kBegan:
      case Kind::kCancel: message.number(number()); break;
      case Kind::kFault: message.number(number()).text(text()); break;
      case Kind::kSet: message.number(number()).number(number()).text(key()).text(text()); break;
      case Kind::kSlices: {
        const int64_t size = one_in(8) ? number() : static_cast<int64_t>(below(5));
        message.number(number())
            .number(static_cast<int64_t>(below(2)))
            .number(static_cast<int64_t>(below(2)));
        message.number(number()).number(number()).text(text()).number(size);
        for (int64_t i = 0; i < std::min<int64_t>(size, 5); ++i) message.text(text());
        break;
      }
      case Kind::kGet: message.number(number()).number(number()).text(key()); break;
      case Kind::kSaid: message.text(text()); break;
      default: break;
    }
    std::string bytes = message.bytes();
    if (one_in(40) && bytes.size() > 1) bytes.resize(1 + rng_() % bytes.size());
    if (one_in(40)) bytes[rng_() % bytes.size()] = static_cast<char>(rng_());
    return bytes[0] == static_cast<char>(Kind::kDone) ? std::string(1, '\1') : bytes;
  }

  bool one_in(uint64_t n) { return rng_() % n == 0; }
  size_t below(size_t n) { return rng_() % n; }

 private:
  // Mostly numbers that epochs and requests have.
  int64_t number() {
    return one_in(6) ? static_cast<int64_t>(rng_()) : static_cast<int64_t>(rng_() % 40) - 1;
  }
  std::string key() { return one_in(4) ? std::string("go") : "key/" + std::to_string(rng_() % 3); }
  std::string text() { return std::string(one_in(50) ? rng_() % 100'000 : rng_() % 20, 'x'); }

  std::mt19937_64 rng_;
};

// Both of two workers that behave get an epoch, and reach each other in it.
void check_serves(int port, const std::string& secret) {
  std::vector<std::unique_ptr<Member>> members;
  const Hello hello = {"job", {{"program", "p"}}, "here", 1};
  for (int i = 0; i < 2; ++i) {
    auto member = Member::join("127.0.0.1", port, secret, hello, kLong);
    REQUIRE_MESSAGE(member.ok(), (member.ok() ? "" : member.error().message()));
    members.push_back(std::move(*member));
  }
  int64_t number = 0;
  for (const auto& member : members) {
    const Result<Epoch> epoch = member->wait_epoch(0, kLong);
    REQUIRE_MESSAGE(epoch.ok(), (epoch.ok() ? "" : epoch.error().message()));
    CHECK(epoch->size == 2);
    number = epoch->number;
  }
  CHECK(members[0]->store(number).set("key", "value").ok());
  const auto value = members[1]->store(number).get("key", kLong);
  REQUIRE(value.ok());
  CHECK(*value == "value");
}

TEST_CASE("slow: members that say anything in any order cannot stop the coordinator") {
  const LogSink old_sink = set_log_sink([](LogLevel, std::string_view) {});
  const int rounds = sized(12, 100, 3000);
  for (int round = 0; round < rounds; ++round) {
    const uint64_t seed = test_seed() * 1000 + static_cast<uint64_t>(round);
    INFO("seed ", seed);
    Babbler babbler(seed);
    CoordinatorOptions options;
    options.secret = "s3cret";
    options.min_workers = options.max_workers = 2;
    int64_t events = 0;
    options.observer = [&](const Event& event) {
      ++events;
      CHECK(!event.workers.empty());
    };
    auto started = Coordinator::start(options);
    REQUIRE(started.ok());
    const int port = (*started)->port();
    std::vector<Channel> channels;
    for (int turn = 0; turn < 150; ++turn) {
      if (channels.size() < 4 && (channels.empty() || babbler.one_in(4))) {
        KnownAddresses known;
        auto joined =
            connect_and_prove("127.0.0.1", port, options.secret, nullptr, Clock::now() + kLong, known);
        REQUIRE_MESSAGE(joined.ok(), (joined.ok() ? "" : joined.error().message()));
        channels.push_back(std::move(joined->channel));
        channels.back().push(babbler.hello());
      }
      const size_t which = babbler.below(channels.size());
      channels[which].push(babbler.message());
      const bool open = channels[which].flush().ok() && channels[which].fill(kMostBytes).ok();
      while (open) {
        const auto heard = channels[which].next(kMostBytes);
        REQUIRE(heard.ok());  // whatever it is told, the coordinator speaks as it should
        if (!heard->has_value()) break;
      }
      if (!open || babbler.one_in(30)) channels.erase(channels.begin() + static_cast<std::ptrdiff_t>(which));
    }
    channels.clear();
    check_serves(port, options.secret);
    started->reset();
    CHECK(events > 0);
  }
  set_log_sink(old_sink);
}

}  // namespace
}  // namespace ostro::cluster
