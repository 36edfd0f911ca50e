// The functions of Link that other threads than its own call.
#include <fmt/format.h>

#include <utility>

#include "ostro/cluster/link.h"

namespace ostro::cluster {

void Link::send(const std::string& message) {
  const Lock lock(mutex_);
  push(message);
}

// False when the time came first.
bool Link::wait_until(Lock& lock, std::optional<Clock::time_point> until,
                      const std::function<bool()>& there) {
  if (until) return changed_.wait_until(lock, *until, there);
  changed_.wait(lock, there);
  return true;
}

Result<Epoch> Link::wait_epoch(int64_t after, std::chrono::milliseconds timeout) {
  Lock lock(mutex_);
  const auto there = [&] { return gone_ || over_ || (!epochs_.empty() && epochs_.rbegin()->first > after); };
  if (!wait_until(lock, deadline_after(timeout), there)) {
    return busy(fmt::format("no epoch after {} began within {} ms: too few workers are there", after,
                            timeout.count()));
  }
  if (gone_) return *gone_;
  if (over_) return not_found("the run is over");
  return epochs_.rbegin()->second;
}

void Link::began(int64_t epoch) {
  const Lock lock(mutex_);
  if (epochs_.count(epoch) == 0) return;
  began_ = epoch;
  if (epoch - 1 > ended_) end_up_to(epoch - 1, "another epoch has begun");
  push(Message(Kind::kBegan).number(epoch).bytes());
}

void Link::keep(int64_t epoch, const std::string& key, const std::string& value) {
  const Lock lock(mutex_);
  if (epoch == 0 || epoch > ended_) kept_[{epoch, key}] = value;
}

void Link::on_end(int64_t epoch, std::function<void(const std::string&)> callback) {
  Lock lock(mutex_);
  const std::thread::id self = std::this_thread::get_id();
  wait_until(lock, std::nullopt, [&] { return !runner_ || *runner_ == self; });
  callback_ = std::move(callback);
  callback_epoch_ = epoch;
  // Within a callback this does nothing: the loop that runs the callback runs the new one next.
  call_if_ended(lock);
}

void Link::fault(int64_t epoch, const std::string& why) {
  const Lock lock(mutex_);
  // Many threads of a worker may report the same fault.
  if (epochs_.count(epoch) == 0 || !faulted_.emplace(epoch, why).second) return;
  push(Message(Kind::kFault).number(epoch).text(shortened(why, kMostBytesOfReason)).bytes());
}

Result<std::string> Link::request(Kind kind, int64_t epoch, const std::function<void(Message&)>& rest,
                                  std::optional<std::chrono::milliseconds> timeout) {
  Lock lock(mutex_);
  if (epoch != 0 && epoch <= ended_)
    return io_error(fmt::format("epoch {} has ended: {}", epoch, end_reason_));
  if (gone_) return io_error(gone_->message());
  if (away_ && kind == Kind::kSet) return std::string();  // it is kept for the next one
  if (away_) {
    if (timeout) changed_.wait_for(lock, *timeout, [&] { return !away_ || gone_; });
    return busy(kAway);
  }
  const int64_t id = next_request_++;
  Message message(kind);
  message.number(id).number(epoch);
  rest(message);
  Request& request = requests_[id];
  request.epoch = epoch;
  request.sets = kind == Kind::kSet;
  push(message.bytes());
  std::optional<Clock::time_point> until;
  if (timeout) until = deadline_after(*timeout);
  if (!wait_until(lock, until, [&] { return request.answer.has_value(); })) {
    requests_.erase(id);
    push(Message(Kind::kCancel).number(id).bytes());
    return busy(fmt::format("nothing came within {} ms", timeout->count()));
  }
  Result<std::string> answer = *std::move(request.answer);
  requests_.erase(id);
  return answer;
}

}  // namespace ostro::cluster
