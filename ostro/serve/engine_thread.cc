#include "ostro/serve/engine_thread.h"

#include <algorithm>
#include <chrono>

#include "ostro/base/machine.h"
#include "ostro/base/parallel.h"
#include "ostro/serve/running_request.h"

namespace ostro::serve {
namespace {

// Logits of a step from which on its answers are read by several threads: starting these costs as much as
// choosing among some thousands.
constexpr size_t kLogitsToShare = 1 << 16;

// How long to wait where nothing runs and clients read slowly.
constexpr std::chrono::milliseconds kHeld(5);

int reading_threads() {
  const auto threads = default_threads();
  return threads.ok() ? *threads : 1;
}

ApiError stopping() { return {kUnavailable, "the server stops before the answer is whole"}; }

}  // namespace

EngineThread::EngineThread(ServedModel& model, ReceiptMaker& receipts, const EngineLimits& limits)
    : model_(model),
      receipts_(receipts),
      budget_(limits.step_seconds, model.runner->limits().rows),
      threads_(reading_threads()),
      metrics_(limits.metrics),
      queue_(limits.waiting),
      thread_([this] { run(); }) {}

EngineThread::~EngineThread() {
  stops_ = true;
  for (const Job& job : queue_.close()) job.exchange->answer(error_response(stopping()));
  thread_.join();
  if (metrics_ != nullptr) metrics_->cache(this, {});
}

bool EngineThread::push(Job job) {
  return queue_.push(std::move(job), [](const Job& waiting) { return waiting.exchange->is_gone(); });
}

void EngineThread::run() {
  count_pages();
  while (admit()) {
    step();
    clear();
  }
  fail_all(stopping());
  requests_.clear();
}

bool EngineThread::has_free_sequence() const {
  int64_t open = 0;
  for (const RunningRequest& request : requests_) open += request.open_answers();
  return open < model_.runner->limits().sequences;
}

bool EngineThread::has_room(const RunningRequest& request) {
  std::vector<infer::RowChunk> open;
  for (RunningRequest& one : requests_)
    for (RunningAnswer* answer : one.running()) open.push_back(answer->chunk(answer->unfed()));
  return open.empty() || model_.runner->has_room(open, request.waiting_tokens() + 1);
}

bool EngineThread::open_waiting() {
  const auto waits = [](const RunningRequest& request) {
    const bool has_turn = !request.takes_turns() || (request.open_answers() == 0 && request.ahead() == 0);
    return has_turn && request.has_waiting();
  };
  bool room = true;
  for (RunningRequest& request : requests_)
    while (room && waits(request) && has_free_sequence()) {
      room = has_room(request);  // if not, none behind it overtakes it
      if (!room || !request.open_next()) break;
    }
  return std::any_of(requests_.begin(), requests_.end(), waits);
}

// Short texts fill a step together. What is begun of them then holds up others for about a step, a long text
// for as long as it is.
void EngineThread::fill_step() {
  int64_t rows = 0;
  for (RunningRequest& request : requests_)
    for (const RunningAnswer* answer : request.running()) rows += static_cast<int64_t>(answer->unfed());
  for (RunningRequest& request : requests_)
    while (rows < budget_.rows() && request.takes_turns() && request.has_waiting() && has_free_sequence() &&
           has_room(request)) {
      const int64_t more = request.waiting_tokens();
      if (!request.open_next()) break;
      rows += more;
    }
}

// Those that wait for what is in the queue are the last ones, since their turns ended last.
void EngineThread::take(Job job) {
  const auto before = std::find_if(requests_.begin(), requests_.end(),
                                   [](const RunningRequest& request) { return request.ahead() > 0; });
  for (auto one = before; one != requests_.end(); ++one)
    one->set_ahead(std::max<size_t>(one->ahead(), 1) - 1);
  if (!job.exchange->is_gone()) requests_.emplace(before, model_, receipts_, std::move(job));
}

// Answers of the requests that were taken first come first; a request is taken from the queue when all
// answers of those before it run.
bool EngineThread::admit() {
  for (;;) {
    if (stops_) return false;
    const size_t queued = queue_.size();  // some may have left
    for (RunningRequest& request : requests_) request.set_ahead(std::min(request.ahead(), queued));
    if (const bool waits = open_waiting(); !requests_.empty() && (waits || !has_free_sequence())) return true;
    auto job = requests_.empty() ? queue_.pop() : queue_.try_pop();
    if (!job) {
      fill_step();
      return !requests_.empty();
    }
    take(std::move(*job));
    clear();
  }
}

std::vector<EngineThread::Part> EngineThread::next_parts() {
  std::vector<Part> parts;
  std::vector<std::pair<RunningRequest*, RunningAnswer*>> prompts;
  for (RunningRequest& request : requests_)
    for (RunningAnswer* answer : request.running()) {
      if (answer->unfed() == 1 && std::ssize(parts) < model_.runner->limits().rows)
        parts.push_back({&request, answer, answer->chunk(1)});
      else if (answer->unfed() > 1)
        prompts.emplace_back(&request, answer);
    }
  // What would be padding may as well be rows of a prompt.
  const auto tokens = static_cast<int64_t>(parts.size());
  const int64_t wanted = tokens == 0 ? budget_.rows_alone() : budget_.rows();
  int64_t room =
      std::min(std::max(wanted, infer::padded_rows(tokens + 1)), model_.runner->limits().rows) - tokens;
  for (const auto& [request, answer] : prompts) {
    if (room <= 0) break;
    const int64_t count = std::min(room, static_cast<int64_t>(answer->unfed()));
    parts.push_back({request, answer, answer->chunk(static_cast<size_t>(count))});
    room -= count;
  }
  return parts;
}

std::vector<EngineThread::Part> EngineThread::parts_with_room() {
  for (;;) {
    std::vector<Part> parts = next_parts();
    std::vector<infer::RowChunk> chunks;
    for (const Part& part : parts) chunks.push_back(part.chunk);
    if (model_.runner->has_room(chunks, 0)) return parts;
    size_t running = 0;
    for (RunningRequest& request : requests_) running += request.running().size();
    if (running < 2) return parts;  // one alone has room; if not, the runner says what is wrong
    for (auto request = requests_.rbegin(); request != requests_.rend(); ++request)
      if (request->pause_last()) break;
  }
}

// Choosing a token of a large vocabulary takes milliseconds, so answers are read by as many threads as
// the model has, where there is enough for them to do.
std::vector<RunningAnswer::Reading> EngineThread::read(const std::vector<Part>& parts,
                                                       const runtime::Buffer& made) const {
  std::vector<RunningAnswer::Reading> out(parts.size());
  const auto vocab = made.valid() ? static_cast<size_t>(made.shape().axes.back().size) : 0;
  const auto logits = made.valid() ? made.as<float>() : std::span<const float>();
  std::vector<size_t> first{0};  // of each part's rows
  for (const Part& part : parts) first.push_back(first.back() + static_cast<size_t>(part.chunk.logits()));
  const int threads = logits.size() < kLogitsToShare ? 1 : threads_;
  (void)parallel_for(std::ssize(parts), threads, [&](int64_t number) -> Status {
    const auto i = static_cast<size_t>(number);
    const auto rows = logits.subspan(first[i] * vocab, (first[i + 1] - first[i]) * vocab);
    out[i] = parts[i].answer->read(parts[i].chunk, rows, vocab);
    return {};
  });
  return out;
}

void EngineThread::step() {
  const std::vector<Part> parts = parts_with_room();
  if (!parts.empty()) {
    std::vector<infer::RowChunk> chunks;
    int64_t rows = 0;
    for (const Part& part : parts) {
      chunks.push_back(part.chunk);
      rows += std::ssize(part.chunk.tokens);
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto made = model_.runner->step(chunks);
    budget_.measured(rows, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    if (!made.ok()) return fail_all({kServerError, made.error().message()});
    std::vector<RunningAnswer::Reading> readings = read(parts, *made);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      if (part.request->is_over()) continue;  // it failed by an answer before this one
      if (const Status taken = part.answer->take(part.chunk, std::move(readings[i])); !taken.ok())
        part.request->fail({kServerError, taken.error().message()});
    }
  }
  close_finished();
  count_pages();  // before a client can know that its answer is whole
  bool held = false;
  for (RunningRequest& request : requests_) {
    request.tell();
    held = held || request.is_held();
  }
  if (parts.empty() && held) std::this_thread::sleep_for(kHeld);
}

void EngineThread::close_finished() {
  std::list<RunningRequest> behind;
  for (auto next = requests_.begin(); next != requests_.end();) {
    const auto one = next++;
    if (!one->close_finished() || !one->takes_turns() || one->open_answers() > 0) continue;
    one->set_ahead(queue_.size());
    behind.splice(behind.end(), requests_, one);
  }
  requests_.splice(requests_.end(), behind);
}

void EngineThread::count_pages() {
  if (metrics_ != nullptr) metrics_->cache(this, model_.runner->cache_facts());
}

void EngineThread::clear() {
  const size_t removed = requests_.remove_if([](RunningRequest& request) {
    if (request.is_gone()) request.fail(stopping());
    return request.is_over();
  });
  if (removed > 0) count_pages();
}

void EngineThread::fail_all(const ApiError& error) {
  for (RunningRequest& request : requests_) request.fail(error);
}

}  // namespace ostro::serve
