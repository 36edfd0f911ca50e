#include "ostro/lab/drive/jobs.h"

#include <algorithm>

#include "ostro/io/files/path.h"

namespace ostro::lab {

Status Jobs::start(size_t step, const Work& work, const std::string& folder, const std::string& logs) {
  RETURN_IF_ERROR(work.context.fs.make_dirs(logs));
  const int share = std::max(1, threads_ / most_);
  const auto in_child = [&] {
    NoProgress progress;  // there is one terminal
    Services services = work.services;
    services.build.threads = share;
    const Context& c = work.context;
    const Context context = {c.fs, c.models, c.engine, c.engine_for_a_moment, progress, c.stop, c.engine_on};
    return perform({context, services, work.plan, work.step, work.made, work.seeds}, folder);
  };
  ASSIGN_OR_RETURN(Child child, Child::start(in_child, io::join_path(logs, io::base_name(folder) + ".txt"),
                                             LogBegin::kNew, share));
  steps_.push_back(step);
  children_.push_back(std::move(child));
  return {};
}

Status Jobs::start_waiting(size_t step, const std::function<Performed()>& waits, const std::string& log) {
  ASSIGN_OR_RETURN(Child child, Child::start(waits, log, LogBegin::kBehind, 1));
  steps_.push_back(step);
  children_.push_back(std::move(child));
  return {};
}

std::optional<std::pair<size_t, Performed>> Jobs::wait() {
  constexpr int kMoment = 200;  // ms
  size_t ended = 0;
  std::optional<Performed> performed = Child::wait_for_one(children_, kMoment, ended);
  if (!performed) return std::nullopt;
  const size_t step = steps_[ended];
  steps_.erase(steps_.begin() + static_cast<ptrdiff_t>(ended));
  children_.erase(children_.begin() + static_cast<ptrdiff_t>(ended));
  return std::pair(step, std::move(*performed));
}

void Jobs::stop() {
  if (!std::exchange(is_stopping_, true))
    for (const Child& child : children_) child.stop();
}

}  // namespace ostro::lab
