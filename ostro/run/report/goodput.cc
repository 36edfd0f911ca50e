#include "ostro/run/report/goodput.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "ostro/base/log.h"
#include "ostro/chain/clock_text.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/io/json/file_header.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::run {
namespace {

constexpr io::FileHeader kGoodputHeader = {"ostro goodput", 1};
constexpr int64_t kMostBytesOfGoodput = 1 << 16;

std::atomic<double> job_begin{0};

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double sum_of(const TimesUsed& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

Result<double> amount(const io::JsonFields& fields, std::string_view key) {
  ASSIGN_OR_RETURN(const nlohmann::json* value, fields.get(key));
  if (!value->is_number() || !(value->get<double>() >= 0))
    return fields.bad(key, "is not a number from 0 on");
  return value->get<double>();
}

}  // namespace

void set_job_begin(double unix_seconds) { job_begin = unix_seconds; }

double GoodputTotals::total() const { return sum_of(seconds); }
double GoodputTotals::share() const {
  return total() > 0 ? seconds[static_cast<size_t>(TimeUse::kStep)] / total() : 0;
}
std::optional<double> GoodputTotals::dollars() const {
  if (!price) return std::nullopt;
  return worker_seconds / 3600 * *price;
}
std::optional<double> GoodputTotals::dollars_per_billion_tokens() const {
  if (!price || tokens <= 0) return std::nullopt;
  return *dollars() / (tokens * 1e-9);
}

std::string goodput_json(const GoodputTotals& totals) {
  nlohmann::ordered_json json = io::begin_file(kGoodputHeader);
  json["updated"] = totals.updated;
  json["steps"] = totals.steps;
  json["tokens"] = totals.tokens;
  for (size_t i = 0; i < kTimeUses; ++i) json["seconds"][kTimeUseNames[i]] = totals.seconds[i];
  json["worker_seconds"] = totals.worker_seconds;
  json["goodput"] = totals.share();
  json["price_per_worker_hour"] =
      totals.price ? nlohmann::ordered_json(*totals.price) : nlohmann::ordered_json();
  return json.dump(1) + "\n";
}

Result<GoodputTotals> read_goodput(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(path, kMostBytesOfGoodput));
  ASSIGN_OR_RETURN(const nlohmann::json root, io::parse_json(text, path));
  const io::JsonFields fields(root, path);
  RETURN_IF_ERROR(io::check_header(fields, kGoodputHeader));
  GoodputTotals totals;
  ASSIGN_OR_RETURN(totals.updated, amount(fields, "updated"));
  ASSIGN_OR_RETURN(totals.steps, fields.integer("steps", 0, INT64_MAX));
  ASSIGN_OR_RETURN(totals.tokens, amount(fields, "tokens"));
  ASSIGN_OR_RETURN(totals.worker_seconds, amount(fields, "worker_seconds"));
  ASSIGN_OR_RETURN(const io::JsonFields seconds, fields.object("seconds"));
  for (size_t i = 0; i < kTimeUses; ++i) {
    ASSIGN_OR_RETURN(totals.seconds[i], amount(seconds, kTimeUseNames[i]));
  }
  ASSIGN_OR_RETURN(const nlohmann::json* price, fields.get("price_per_worker_hour"));
  if (!price->is_null()) {
    ASSIGN_OR_RETURN(totals.price, amount(fields, "price_per_worker_hour"));
  }
  return totals;
}

std::string goodput_text(const GoodputTotals& totals) {
  const double total = totals.total();
  if (total <= 0) return "not known yet";
  std::vector<std::pair<double, const char*>> losses;
  for (size_t i = 1; i < kTimeUses; ++i)
    if (totals.seconds[i] >= 0.001 * total) losses.emplace_back(totals.seconds[i], kTimeUseNames[i]);
  std::sort(losses.rbegin(), losses.rend());
  std::string text = fmt::format("{:.1f} % of {}", 100 * totals.share(), chain::duration_text(total));
  for (size_t i = 0; i < losses.size(); ++i)
    text +=
        fmt::format("{}{} {:.1f} %", i == 0 ? " (" : ", ", losses[i].second, 100 * losses[i].first / total);
  return losses.empty() ? text : text + ")";
}

Goodput::Goodput(io::FileSystem& fs, const std::string& run_directory, const chain::Chain* chain,
                 std::optional<double> price)
    : fs_(fs), path_(io::join_path(run_directory, kGoodputFile)) {
  const auto read = read_goodput(fs, path_);
  if (read.ok())
    before_ = *read;
  else if (read.error().code() != ErrorCode::kNotFound)
    log_warning(fmt::format("goodput is counted anew: {}", read.error().message()));
  // A leader that was killed did not write its last second down.
  int64_t known = before_.steps;
  if (chain != nullptr)
    for (const chain::ChainLink& link : chain->links)
      if (const auto* step = std::get_if<chain::StepEntry>(&link.entry);
          step != nullptr && step->step > known) {
        known = before_.steps = step->step;
        before_.tokens += static_cast<double>(step->tokens);
      }
  before_.price = price;
  const double begin = job_begin, now = unix_now();
  const bool recovers = begin > 0 && before_.updated >= begin;
  const double gap = begin <= 0 ? 0 : std::max(0.0, now - (recovers ? before_.updated : begin));
  const TimeUse use = recovers ? TimeUse::kRecovery : TimeUse::kStart;
  before_.seconds[static_cast<size_t>(use)] += gap;
  restart_time(use);
  settled_ = -gap;  // of all workers, as far as they are known by then
}

void Goodput::settle_workers() {
  const double now = sum_of(times_used());
  worker_seconds_ += (now - settled_) * static_cast<double>(workers_);
  settled_ = now;
}

void Goodput::set_workers(int64_t workers) {
  if (workers < 1 || workers == workers_) return;  // none: they are not known yet
  // What was before the first call belongs to these workers.
  if (worker_seconds_ > 0) settle_workers();
  workers_ = workers;
}

void Goodput::begin_step(int64_t step) { use_time(step <= before_.steps ? TimeUse::kLost : TimeUse::kStep); }

void Goodput::end_step(int64_t step, double tokens) {
  if (step <= before_.steps) return;
  before_.steps = step;
  before_.tokens += tokens;
}

GoodputTotals Goodput::totals() const {
  GoodputTotals totals = before_;
  const TimesUsed mine = times_used();
  for (size_t i = 0; i < kTimeUses; ++i) totals.seconds[i] += mine[i];
  totals.worker_seconds += worker_seconds_ + (sum_of(mine) - settled_) * static_cast<double>(workers_);
  totals.updated = unix_now();
  return totals;
}

void Goodput::write(bool now) {
  const double elapsed = sum_of(times_used());
  if (!now && elapsed - written_ < 1) return;
  written_ = elapsed;
  settle_workers();
  const Status status = fs_.write_later(path_, goodput_json(totals()));
  if (!status.ok() && !std::exchange(failed_, true))
    log_warning(fmt::format("goodput is lost: {}", status.error().message()));
}

}  // namespace ostro::run
