#include "ostro/cluster/link.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "ostro/base/log.h"
#include "ostro/dist/socket.h"

namespace ostro::cluster {
namespace {

constexpr int64_t kBeatsALease = 5;
constexpr size_t kMostSaidABeat = size_t{16} << 10;  // bytes of what this process says
constexpr size_t kMostSaidAtEnd = size_t{64} << 10;
constexpr std::chrono::milliseconds kTry{1000};  // one attempt to come back
constexpr std::chrono::milliseconds kRest{100};  // after one that something has answered and that failed

}  // namespace

Link::Link(Joined joined, Hello hello, Reconnect reconnect, std::chrono::milliseconds patience)
    : channel_(std::move(joined.channel)),
      lease_(joined.lease),
      address_(dist::peer_address(channel_.fd())),
      hello_(std::move(hello)),
      reconnect_(std::move(reconnect)),
      patience_(patience),
      next_beat_(Clock::now()),
      silent_until_(Clock::now() + 2 * lease_),
      thread_([this] { run(); }) {}

Link::~Link() {
  {
    const Lock lock(mutex_);
    stopped_ = true;
    callback_ = nullptr;
  }
  waker_.wake();
  thread_.join();
}

// The thread: talks to the coordinator until the connection is lost, then tries to reconnect. If that fails
// for good, all epochs end with the reason, and all waits fail.
void Link::run() {
  while (true) {
    const Status lost = talk();
    {
      const Lock lock(mutex_);
      if (stopped_) return;
    }
    const Status back = come_back(lost);
    if (back.ok()) continue;
    Lock lock(mutex_);
    if (stopped_) return;
    if (!gone_) gone_ = io_error("the coordinator is gone: " + back.error().message());
    end_up_to(epochs_.empty() ? ended_ : epochs_.rbegin()->first, gone_->message());
    changed_.notify_all();
    call_if_ended(lock);
    return;
  }
}

// Sends heartbeats and handles messages until the connection or this object ends.
Status Link::talk() {
  Status status;
  while (status.ok()) {
    {
      Lock lock(mutex_);
      // Send what is still queued.
      if (stopped_ && !muted_) push_said(kMostSaidAtEnd);
      if (stopped_) return muted_ ? status : channel_.flush();
      if (!muted_ && next_beat_ <= Clock::now()) {
        next_beat_ = Clock::now() + lease_ / kBeatsALease;
        channel_.push(beat_message(progress_ ? progress_() : Progress()));
        push_said(kMostSaidABeat);
      }
      if (!muted_) status = channel_.flush();
      call_if_ended(lock);
    }
    // An error in a message that came before the connection closed is more exact than the closing itself.
    const Status read = turn();
    if (status.ok() || !read.ok()) status = read;
  }
  return status;
}

// Only for a worker in an epoch that has begun, which can continue without a coordinator. Open requests are
// answered: set() as done, because keep() sends the value to the next coordinator; get() as busy, because its
// caller may ask again. Planned epochs are forgotten: the next coordinator does not know them. The new Hello
// states the epoch, so that the roster can restore it.
Status Link::come_back(const Status& why) {
  Hello hello;
  {
    const Lock lock(mutex_);
    if (gone_ || over_ || muted_ || !reconnect_ || began_ == 0 || began_ <= ended_) return why;
    away_ = true;
    for (auto& [id, request] : requests_)
      if (!request.answer)
        request.answer = request.sets ? Result<std::string>("") : Result<std::string>(busy(kAway));
    while (!epochs_.empty() && epochs_.rbegin()->first > began_) epochs_.erase(std::prev(epochs_.end()));
    const Epoch& epoch = epochs_.at(began_);
    hello = hello_;
    hello.epoch = epoch.number, hello.rank = epoch.rank, hello.size = epoch.size;
    changed_.notify_all();
  }
  log_warning("the coordinator is gone (" + why.error().message() +
              "); training goes on while it comes back");
  const Clock::time_point until = Clock::now() + patience_;
  while (Clock::now() < until) {
    Result<Joined> joined = reconnect_(std::min(until, Clock::now() + kTry));
    Lock lock(mutex_);
    if (stopped_) return why;
    if (!joined.ok()) {
      if (joined.error().code() == ErrorCode::kInvalidArgument) return joined.error();
      lock.unlock();
      std::this_thread::sleep_for(kRest);
      continue;
    }
    channel_ = std::move(joined->channel);
    lease_ = joined->lease;
    address_ = dist::peer_address(channel_.fd());
    next_beat_ = Clock::now();
    silent_until_ = Clock::now() + 2 * lease_;
    away_ = false;
    changed_.notify_all();
    channel_.push(hello_message(hello));
    for (const auto& [key, value] : kept_)
      channel_.push(
          Message(Kind::kSet).number(next_request_++).number(key.first).text(key.second).text(value).bytes());
    // A fault that the last coordinator may not have heard: connections through its relay ended with it.
    if (const auto fault = faulted_.find(hello.epoch); fault != faulted_.end())
      channel_.push(Message(Kind::kFault)
                        .number(fault->first)
                        .text(shortened(fault->second, kMostBytesOfReason))
                        .bytes());
    log_info("the coordinator is back");
    return Status();
  }
  return why;
}

// Waits until something can be read or written or a beat is due, and reads.
Status Link::turn() {
  bool writes;
  {
    const Lock lock(mutex_);
    writes = channel_.wants_to_write() && !muted_;
  }
  std::array<pollfd, 2> polls = {
      {{waker_.fd(), POLLIN, 0}, {channel_.fd(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0}}};
  const bool unread = channel_.has_unread();
  const auto until = unread ? Clock::now() : std::max(next_beat_, Clock::now() + lease_ / 20);
  const int ready = poll(polls.data(), polls.size(), poll_milliseconds(until));
  if (ready > 0 && polls[0].revents != 0) waker_.clear();
  if (unread || (ready > 0 && (polls[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0)) {
    const Status filled = channel_.fill(kMostBytes);
    if (channel_.heard()) silent_until_ = Clock::now() + 2 * lease_;
    const Lock lock(mutex_);
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<std::string_view> message, channel_.next(kMostBytes));
      if (!message) break;
      RETURN_IF_ERROR(handle(*message));
    }
    return filled;
  }
  // The coordinator answers each beat, so silence means that it or its machine is gone.
  if (silent_until_ <= Clock::now()) {
    return io_error(fmt::format("nothing was heard from it for {} ms", 2 * lease_.count()));
  }
  return {};
}

Status Link::handle(std::string_view message) {
  MessageReader reader(message);
  const Kind kind = reader.kind();
  if (kind == Kind::kBeat) return {};
  if (kind == Kind::kRefused) {
    gone_ = invalid_argument(std::string(reader.text()));
    return gone_.value();
  }
  if (kind == Kind::kEpoch) {
    RETURN_IF_ERROR(handle_epoch(reader));
  } else if (kind == Kind::kEnd) {
    const int64_t number = reader.number();
    end_up_to(number, std::string(reader.text()));
    push(Message(Kind::kEndSeen).number(number).bytes());
  } else if (kind == Kind::kDropped) {
    const int64_t number = reader.number();
    const std::string why(reader.text());
    epochs_.erase(number);
    answer_waiting([&](const Request& r) { return r.epoch == number; },
                   fmt::format("epoch {} is given up: {}", number, why));
  } else if (kind == Kind::kStop) {
    stop_asked_ = true;
  } else if (kind == Kind::kOver) {
    status_ = reader.number();
    over_ = true;
  } else if (kind == Kind::kReply) {
    const auto found = requests_.find(reader.number());
    const int64_t code = reader.number();
    std::string text(reader.text());
    if (found == requests_.end()) return {};  // it was given up
    if (found->second.answer) return {};
    if (code == kReplyOk) {
      found->second.answer = Result<std::string>(std::move(text));
    } else {
      found->second.answer = Result<std::string>(Error(static_cast<ErrorCode>(code), std::move(text)));
    }
  } else {
    return corrupt("it does not follow the protocol of a coordinator");
  }
  changed_.notify_all();
  if (!reader.done()) return corrupt("it does not follow the protocol of a coordinator");
  return {};
}

Status Link::handle_epoch(MessageReader& reader) {
  Epoch epoch;
  epoch.number = reader.number();
  epoch.rank = reader.number();
  epoch.planned = reader.number() != 0;
  if (!read_workers(reader, epoch)) return corrupt("it does not follow the protocol of a coordinator");
  // For the next coordinator, which does not know what was measured.
  if (!names_its_slice_ && epoch.rank >= 0 && epoch.rank < epoch.size) {
    const auto rank = static_cast<size_t>(epoch.rank);
    hello_.slice = epoch.guessed[rank] ? "" : epoch.slices[rank];
    hello_.slice_limit = epoch.rates.limit, hello_.fastest_link = epoch.rates.fastest;
  }
  if (!epoch.planned)
    end_up_to(epoch.number - 1, end_reason_.empty() ? "another epoch has begun" : end_reason_);
  if (epoch.number > ended_) epochs_[epoch.number] = epoch;
  return {};
}

// Epochs end in the order of their numbers: forgets those up to `number` with their keys, and answers the
// requests about them with the reason.
void Link::end_up_to(int64_t number, const std::string& reason) {
  if (number > ended_) {
    ended_ = number;
    end_reason_ = reason;
    epochs_.erase(epochs_.begin(), epochs_.upper_bound(number));
    std::erase_if(kept_,
                  [&](const auto& value) { return value.first.first != 0 && value.first.first <= number; });
  }
  answer_waiting([&](const Request& r) { return gone_ || (r.epoch != 0 && r.epoch <= ended_); }, reason);
}

void Link::answer_waiting(const std::function<bool(const Request&)>& which, const std::string& why) {
  for (auto& [id, request] : requests_)
    if (!request.answer && which(request))
      request.answer = Result<std::string>(
          io_error(request.epoch == 0 ? why : fmt::format("epoch {} has ended: {}", request.epoch, why)));
}

// Runs the callback if its epoch has ended, without the mutex; then the one that this callback has set, if
// any.
void Link::call_if_ended(Lock& lock) {
  while (callback_ && !runner_ && (callback_epoch_ <= ended_ || gone_)) {
    const auto callback = std::exchange(callback_, nullptr);
    const std::string reason = callback_epoch_ <= ended_ ? end_reason_ : gone_->message();
    runner_ = std::this_thread::get_id();
    lock.unlock();
    callback(reason);
    lock.lock();
    runner_.reset();
    changed_.notify_all();
  }
}

void Link::push(const std::string& message) {
  if (muted_ || gone_ || away_) return;
  // A full channel means a coordinator that does not read: the lease will find it lost.
  if (!channel_.push(message)) return;
  waker_.wake();
}

void Link::push_said(size_t most) {
  if (!said_) return;
  const std::string text = said_(most);
  // Where the channel is full, the coordinator does not read, and they are lost.
  if (!text.empty()) channel_.push(Message(Kind::kSaid).text(text).take());
}

void Link::pass_on(std::function<std::string(size_t most)> said) {
  const Lock lock(mutex_);
  said_ = std::move(said);
}

std::string Link::address() {
  const Lock lock(mutex_);
  return address_;
}

void Link::report(std::function<Progress()> progress) {
  const Lock lock(mutex_);
  progress_ = std::move(progress);
}

void Link::mute_for_test() {
  const Lock lock(mutex_);
  muted_ = true;
}

}  // namespace ostro::cluster
