// Sent: a roster, and what it has sent to its members, as text, for tests.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/cluster/messages/message.h"
#include "ostro/cluster/roster.h"

namespace ostro::cluster {

using Lines = std::vector<std::string>;

// "2: epoch 1 0 2" is member 2's epoch 1 with rank 0 of 2.
struct Sent {
  explicit Sent(int64_t workers, int64_t last_epoch = 0) : Sent(Sizes{workers, workers, 1}, last_epoch) {}
  explicit Sent(const Sizes& sizes, int64_t last_epoch = 0)
      : roster(sizes, last_epoch, [this](int64_t member, const std::string& message) {
          MessageReader reader(message);
          std::string text = std::to_string(member);
          if (reader.kind() == Kind::kEpoch) {
            const int64_t number = reader.number(), rank = reader.number();
            text += reader.number() != 0 ? ": planned " : ": epoch ";
            Epoch epoch;
            CHECK(read_workers(reader, epoch));
            text += std::to_string(number) + " " + std::to_string(rank) + " " + std::to_string(epoch.size);
            limit = epoch.rates.limit;
            CHECK(epoch.rates.fastest == 2 * limit);
            for (size_t i = 0; i < epoch.hosts.size(); ++i) {
              CHECK(epoch.hosts[i] == "host");
              slices += epoch.slices[i];
              if (epoch.guessed[i]) slices += "?";
            }
          } else if (reader.kind() == Kind::kEnd) {
            text += ": end " + std::to_string(reader.number()) + " ";
            text += reader.text();
          } else if (reader.kind() == Kind::kDropped) {
            text += ": dropped " + std::to_string(reader.number());
            CHECK(!reader.text().empty());
          } else if (reader.kind() == Kind::kStop) {
            text += ": stop";
          } else if (reader.kind() == Kind::kOver) {
            text += ": over " + std::to_string(reader.number());
          } else {
            text += ": reply " + std::to_string(reader.number());
            text += reader.number() == kReplyOk ? " ok " : " error ";
            text += reader.text();
          }
          CHECK(reader.done());
          lines.push_back(text);
        }) {}
  ~Sent() { set_log_sink(std::move(old_sink)); }
  int64_t add(const std::string& slice = "") {
    Hello hello{"job", {}, "host", 7};
    hello.slice = slice;
    return *roster.add(hello, now);
  }
  int64_t add_ready() {
    const int64_t member = add();
    roster.ready(member, now);
    return member;
  }
  bool can_begin() const { return roster.can_begin(now); }
  void begin() { roster.begin(now); }
  // Its members say that it has begun.
  void all_work() {
    for (int64_t member = 1; member <= 9; ++member)
      if (roster.has(member)) roster.began(member, roster.epoch());
  }
  // An epoch begins with those that are there, and the next one is due, with one more.
  void begin_and_grow() {
    pass(10'000);
    begin();
    add_ready();
    pass(1'000);
    CHECK(!can_begin());  // not all of the first one work yet
    all_work();
  }
  void pass(int64_t ms) { now += std::chrono::milliseconds(ms); }
  std::vector<std::string> take() { return std::exchange(lines, {}); }

  LogSink old_sink = set_log_sink([](LogLevel, std::string_view) {});
  std::vector<std::string> lines;
  std::string slices;  // of all workers in all epochs that it has sent; "?": it is a guess
  int64_t limit = 0;   // of rates, in the last of them
  Time now{std::chrono::hours(1)};
  Roster roster;
};

}  // namespace ostro::cluster
