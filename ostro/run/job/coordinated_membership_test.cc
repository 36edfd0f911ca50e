// Slices that workers find when they have connected (trainer.mesh.slices: auto): from the coordinator to the
// connections of Gloo and back.
#include "ostro/run/job/coordinated_membership.h"

#include <doctest/doctest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/cluster/coordinator.h"
#include "ostro/run/job/machine_text.h"

namespace ostro::run {
namespace {

using Names = std::vector<std::string>;
constexpr std::chrono::seconds kPatience{60};

struct OneWorker {
  std::unique_ptr<cluster::Member> member;
  std::unique_ptr<CoordinatedMembership> membership;
};

// A coordinator, and workers of this machine that join it one after the other.
struct SlicedJob {
  explicit SlicedJob(int64_t workers, train::SliceNames slices) {
    options.min_workers = options.max_workers = workers;
    options.secret = "s3cret";
    trainer.sharding.mesh.slices = slices;
    auto started = cluster::Coordinator::start(options);
    REQUIRE_MESSAGE(started.ok(), started.error().message());
    coordinator = std::move(*started);
  }
  ~SlicedJob() {
    workers.clear();
    coordinator.reset();
    set_log_sink(std::move(old_sink));
  }
  // `slice`: that its launcher has named; "": none. `machine`: as the coordinator is told.
  void join(const std::string& slice, const std::string& machine) {
    cluster::Hello hello{"job", {}, "host-" + std::to_string(workers.size()), 1};
    hello.slice = slice;
    hello.machine = machine;
    auto member = cluster::Member::join("127.0.0.1", coordinator->port(), options.secret, hello, kPatience);
    REQUIRE_MESSAGE(member.ok(), member.error().message());
    OneWorker worker{std::move(*member), nullptr};
    worker.membership = std::make_unique<CoordinatedMembership>(*worker.member, dist::Reach{}, options.secret,
                                                                trainer, [] { return false; });
    worker.membership->ready();
    workers.push_back(std::move(worker));
    while (coordinator->members() < static_cast<int64_t>(workers.size())) std::this_thread::yield();
  }
  // Connects all in the epoch after `after`; the error of the first worker, or "".
  std::string connect(int64_t after, Names* slices) {
    std::vector<std::future<std::string>> done;
    for (const OneWorker& worker : workers)
      done.push_back(std::async(std::launch::async, [&worker, after, slices]() -> std::string {
        const auto epoch = worker.membership->next(after, kPatience);
        if (!epoch.ok()) return epoch.error().message();
        if (epoch->rank == 0) *slices = epoch->slices;
        const auto group = worker.membership->connect(*epoch, {{{"data", epoch->size}}});
        if (!group.ok()) return group.error().message();
        if ((*group)->bytes_sent() != 0) return "what was measured counts as sent";
        worker.membership->began(epoch->number);
        return "";
      }));
    std::vector<std::string> told;
    for (auto& one : done) told.push_back(one.get());
    for (const std::string& other : told) CHECK(other.empty() == told.front().empty());
    return told.front();
  }
  std::vector<std::string> events(const std::string& kind) const {
    std::vector<std::string> out;
    for (const cluster::JobEvent& event : coordinator->watched().events)
      if (event.kind == kind) out.push_back(event.text);
    return out;
  }

  LogSink old_sink = set_log_sink([](LogLevel, std::string_view) {});
  cluster::CoordinatorOptions options;
  train::TrainerOptions trainer;
  std::unique_ptr<cluster::Coordinator> coordinator;
  std::vector<OneWorker> workers;
};

TEST_CASE("workers of one machine are found to be one slice, and the epoch goes on") {
  SlicedJob job(3, train::SliceNames::kAuto);
  for (int i = 0; i < 3; ++i) job.join("", machine_text());
  Names slices;
  CHECK(job.connect(0, &slices).empty());
  CHECK(slices == Names(3));
  const auto told = job.events("slices");
  REQUIRE(told.size() == 1);
  CHECK_MESSAGE(told[0].starts_with("1 slice by measured rates: measured-1.1 (host-0); links inside have "),
                told[0]);
  CHECK(job.events("end").empty());
}

TEST_CASE("a worker is put beside those of its slice in the next epoch; where slices are named, it is not") {
  for (const train::SliceNames names : {train::SliceNames::kAuto, train::SliceNames::kNamed}) {
    SlicedJob job(4, names);
    // The coordinator takes them for three machines, and measuring shows that they are one: that of the first
    // worker, whose slice is not the largest.
    job.join("west", "a"), job.join("east", "b"), job.join("east", "b");
    job.join("", names == train::SliceNames::kAuto ? "c" : "");
    Names slices;
    const std::string why = job.connect(0, &slices);
    if (names == train::SliceNames::kNamed) {
      CHECK(slices == Names{"west", "east", "east", ""});
      CHECK(why.empty());
      CHECK(job.events("slices").empty());
      continue;
    }
    CHECK(slices == Names{"west", "east", "east", "east"});
    CHECK_MESSAGE(why.find("2 slices by measured rates: west (host-0), east (host-0)") != std::string::npos,
                  why);
    CHECK(job.connect(1, &slices).empty());
    CHECK(slices == Names{"west", "west", "east", "east"});
    CHECK(job.events("slices").size() == 1);
    CHECK(job.events("end").size() == 1);
  }
}

}  // namespace
}  // namespace ostro::run
