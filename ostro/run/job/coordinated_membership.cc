#include "ostro/run/job/coordinated_membership.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/profile.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/dist/gloo_group.h"
#include "ostro/dist/striped_group.h"
#include "ostro/fleet/slices/found_slices.h"
#include "ostro/fleet/slices/measured_links.h"
#include "ostro/fleet/slices/slices.h"
#include "ostro/run/job/machine_text.h"
#include "ostro/run/job/time_limits.h"

namespace ostro::run {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Connections that end when their epoch does.
class EpochGroup final : public dist::Group {
 public:
  EpochGroup(std::unique_ptr<dist::Group> group, cluster::Member& member, const fleet::EpochView& epoch)
      : group_(std::move(group)), member_(member), epoch_(epoch.number), slices_(epoch.slices, epoch.size) {
    member_.on_end(epoch_, [this](const std::string& reason) { group_->abort(reason); });
  }
  ~EpochGroup() override { member_.on_end(epoch_, nullptr); }

  int64_t rank() const override { return group_->rank(); }
  int64_t size() const override { return group_->size(); }
  int64_t bytes_sent() const override { return group_->bytes_sent() - not_counted_; }
  // While links are measured, nothing counts as sent, and workers wait for those that measure.
  void measuring(bool on) {
    measuring_ = on;
    group_->wait_for_ever(on);
    if (!on) not_counted_ = group_->bytes_sent();
  }
  std::vector<int64_t> peers(std::string_view axes) const override { return group_->peers(axes); }
  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    if (measuring_) {
      const PulseWait wait;
      return group_->exchange(peers, send, receive);
    }
    const int64_t before = group_->bytes_sent();
    pulse_sent_between_slices(slices_.between(rank(), peers, send));
    Status status;
    {
      const PulseWait wait;
      status = group_->exchange(peers, send, receive);
    }
    if (status.ok()) receive_faults(peers, receive);
    pulse_sent(group_->bytes_sent() - before);
    return status;
  }
  Result<int64_t> start(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                        std::span<const std::span<std::byte>> receive) override {
    pulse_sent_between_slices(slices_.between(rank(), peers, send));
    return group_->start(peers, send, receive);
  }
  Status wait(int64_t ticket) override {
    const int64_t before = group_->bytes_sent();
    Status status;
    {
      const PulseWait wait;
      status = group_->wait(ticket);
    }
    pulse_sent(group_->bytes_sent() - before);
    return status;
  }
  void abort(const std::string& reason) override { group_->abort(reason); }
  void wait_for_ever(bool on) override { group_->wait_for_ever(on); }

 private:
  // In the exchange of gradients: the longest message that has arrived.
  void receive_faults(std::span<const int64_t> peers, std::span<const std::span<std::byte>> receive) {
    if (!silent_faults_armed()) [[likely]]
      return;
    const Pulse pulse = read_pulse();
    if (pulse.phase != "exchange") return;
    std::span<std::byte> longest;
    for (size_t i = 0; i < peers.size(); ++i)
      if (peers[i] != rank() && receive[i].size() > longest.size()) longest = receive[i];
    fault_bytes("received", pulse.step, rank(), longest);
  }

  std::unique_ptr<dist::Group> group_;
  cluster::Member& member_;
  int64_t epoch_;
  const fleet::Slices slices_;
  bool measuring_ = false;
  int64_t not_counted_ = 0;  // bytes
};

}  // namespace

Result<std::unique_ptr<dist::Group>> CoordinatedMembership::connect(const fleet::EpochView& epoch,
                                                                    const ir::Mesh& mesh) {
  dist::GlooOptions options;
  options.reach = reach_;
  options.secret = secret_;
  options.tls = options_.tls.has_value();
  options.epoch = epoch.number;
  options.connect_timeout = connect_limit(options_, epoch.size);
  options.link_timeout = link_limit(options_);
  options.exchange_limit = [this] { return exchange_limit(options_, slowest_step_seconds()); };
  options.given_up = given_up_;
  const fleet::Slices slices(epoch.slices, epoch.size);
  std::vector<bool> striped;
  for (int64_t rank = 0; rank < epoch.size; ++rank) striped.push_back(slices.apart(rank, epoch.rank));
  std::vector<std::unique_ptr<dist::Group>> groups;
  const int64_t connections = slices.several() ? options_.sharding.mesh.slice_connections : 1;
  for (int64_t i = 0; i < connections; ++i) {
    auto group = dist::connect_gloo(
        mesh, epoch.rank, member_.store(epoch.number),
        i == 0 ? fmt::format("gloo/{}", epoch.number) : fmt::format("gloo/{}/{}", epoch.number, i), options);
    // Those that are made do not wait for their peers to leave: the fault is to be told at once.
    if (!group.ok())
      for (const auto& made : groups) made->abort(group.error().message());
    // One that did not come in time is lost, for this epoch at least.
    if (!group.ok() && group.error().code() == ErrorCode::kBusy && !given_up_())
      return io_error(group.error().message());
    if (!group.ok()) return group.error();
    groups.push_back(std::move(*group));
  }
  auto group = std::make_unique<EpochGroup>(dist::make_striped_group(std::move(groups), std::move(striped)),
                                            member_, epoch);
  if (options_.sharding.mesh.slices == train::SliceNames::kAuto &&
      std::find(epoch.guessed.begin(), epoch.guessed.end(), true) != epoch.guessed.end()) {
    group->measuring(true);
    RETURN_IF_ERROR(find_slices(epoch, *group));
    group->measuring(false);
  }
  return std::unique_ptr<dist::Group>(std::move(group));
}

// Returns kIo when the epoch has ended so that the next one has the slices that were found.
Status CoordinatedMembership::find_slices(const fleet::EpochView& epoch, dist::Group& group) {
  phase("slices");
  // No earlier epoch has had names with its number.
  const std::string prefix = fmt::format("{}{}.", fleet::kMeasuredPrefix, epoch.number);
  ASSIGN_OR_RETURN(const fleet::MeasuredSlices found,
                   fleet::measure_links(group, machine_text(), epoch.hosts,
                                        {epoch.slices, epoch.guessed, epoch.slice_limit, epoch.fastest_link},
                                        prefix, seconds_now));
  if (epoch.rank == 0)
    member_.slices(epoch.number,
                   {found.names, found.differs, found.anew, {found.limit, found.fastest}, found.text});
  while (found.differs && !given_up_()) {
    // No worker sets the key: the answer is the end of the epoch.
    const auto nothing = store(epoch.number).get("nothing", std::chrono::milliseconds(100));
    if (!nothing.ok() && nothing.error().code() != ErrorCode::kBusy) return nothing.error();
  }
  return found.differs ? busy("this worker waits no more for the next epoch") : Status();
}

}  // namespace ostro::run
