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
      limits_(limits),
      budget_(limits.step_seconds, model.runner->limits().rows),
      threads_(reading_threads()),
      metrics_(limits.metrics),
      queue_(limits.waiting, share_of(limits.waiting, limits.key_share)) {
  count_pages();  // a client that sees that the server is ready sees its pages
  thread_ = std::thread([this] { run(); });
}

EngineThread::~EngineThread() {
  stops_ = true;
  for (const Job& job : queue_.close()) job.exchange->answer(error_response(stopping()));
  thread_.join();
  if (metrics_ != nullptr) metrics_->cache(this, {});
}

std::optional<ApiError> EngineThread::push(Job job) {
  std::string key = job.key;
  const Pushed pushed = queue_.push(std::move(key), std::move(job),
                                    [](const Job& waiting) { return waiting.exchange->is_gone(); });
  if (pushed == Pushed::kTaken) return std::nullopt;
  return may_not_wait(pushed, limits_.waiting, limits_.key_share);
}

void EngineThread::run() {
  while (admit()) {
    step();
    clear();
  }
  fail_all(stopping());
  requests_.clear();
}

bool EngineThread::has_free_sequence(const std::string& key) const {
  int64_t open = 0, of_key = 0;
  for (const RunningRequest& request : requests_) {
    open += request.open_answers();
    if (request.key() == key) of_key += request.open_answers();
  }
  const int64_t all = model_.runner->limits().sequences;
  const auto share = static_cast<int64_t>(share_of(static_cast<size_t>(all), limits_.key_share));
  return open < all && (key.empty() || of_key < share);
}

bool EngineThread::has_room(const RunningRequest& request) {
  std::vector<infer::RowChunk> open;
  for (RunningRequest& one : requests_)
    for (RunningAnswer* answer : one.running()) open.push_back(answer->chunk(answer->unfed()));
  return open.empty() || model_.runner->has_room(open, request.waiting_tokens() + 1);
}

std::vector<std::string> EngineThread::waiting_keys() const {
  std::vector<std::string> out;
  for (const RunningRequest& request : requests_)
    if (request.has_turn()) out.push_back(request.key());
  for (std::string& key : queue_.keys()) out.push_back(std::move(key));
  return out;
}

bool EngineThread::has_its_embeddings(const std::string& key) const {
  const auto taken = std::count_if(requests_.begin(), requests_.end(), [&](const RunningRequest& request) {
    return request.key() == key && request.takes_turns() && request.has_waiting();
  });
  const size_t most = key.empty() ? limits_.waiting : share_of(limits_.waiting, limits_.key_share);
  return static_cast<size_t>(taken) >= most;
}

bool EngineThread::open_one() {
  const std::vector<std::string> in_turn = turns_.update(waiting_keys());
  for (const std::string& key : in_turn) {
    if (!has_free_sequence(key)) continue;
    const auto has_turn = [&](const RunningRequest& request) {
      return request.key() == key && request.has_turn();
    };
    RunningRequest* next = nullptr;
    if (std::none_of(requests_.begin(), requests_.end(), has_turn)) {
      const bool takes_embeddings = !has_its_embeddings(key);
      if (auto job = queue_.try_pop(key, [&](const Job& waiting) {
            return takes_embeddings || waiting.ask->form != Form::kEmbedding;
          })) {
        next = take(std::move(*job));
        if (next == nullptr || next->is_over()) {  // its client has left, or it cannot begin
          clear();
          return true;
        }
      } else {
        for (RunningRequest& request : requests_)  // what is in the queue waits for these
          if (request.key() == key) request.set_ahead(0);
      }
    }
    if (next == nullptr) {
      const auto found = std::find_if(requests_.begin(), requests_.end(), [&](const RunningRequest& request) {
        return has_turn(request) && request.can_open();
      });
      if (found == requests_.end()) continue;  // it waits for a prompt that is being read, or for a text
      next = &*found;
    }
    if (!has_room(*next)) return false;  // none behind it overtakes it
    next->open_next(limits_.now(), begun_);
    turns_.took(key);
    return true;
  }
  return false;
}

// Short texts fill a step together. What is begun of them then holds up others for about a step, a long text
// for as long as it is.
void EngineThread::fill_step() {
  int64_t rows = 0;
  for (RunningRequest& request : requests_)
    for (const RunningAnswer* answer : request.running()) rows += static_cast<int64_t>(answer->unfed());
  for (RunningRequest& request : requests_)
    while (rows < budget_.rows() && request.takes_turns() && request.can_open() &&
           has_free_sequence(request.key()) && has_room(request)) {
      rows += request.waiting_tokens();
      request.open_next(limits_.now(), begun_);
    }
}

// Puts it before those that wait for what is in the queue: all of these are behind the others, since their
// turns ended last.
RunningRequest* EngineThread::take(Job job) {
  const auto before = std::find_if(requests_.begin(), requests_.end(),
                                   [](const RunningRequest& request) { return request.ahead() > 0; });
  for (auto one = before; one != requests_.end(); ++one)
    if (one->key() == job.key) one->set_ahead(std::max<size_t>(one->ahead(), 1) - 1);
  if (job.exchange->is_gone()) return nullptr;
  ServedModel& model = job.model != nullptr ? *job.model : model_;
  OSTRO_CHECK(&model == &model_ || (model.rows != nullptr && model.rows == model_.rows),
              "a request for {}, whose rows are not those of {}", model.facts.name, model_.facts.name);
  return &*requests_.emplace(before, model, receipts_, std::move(job));
}

bool EngineThread::admit() {
  for (;;) {
    if (stops_) return false;
    for (RunningRequest& request : requests_)  // some of the queue may have left
      request.set_ahead(std::min(request.ahead(), queue_.size(request.key())));
    while (open_one()) {
    }
    if (waiting_keys().empty()) fill_step();
    if (!requests_.empty()) return true;
    if (!queue_.wait()) return false;
  }
}

void EngineThread::keep_time_limits() {
  const Clock::time_point now = limits_.now();
  for (const Job& late :
       queue_.take_late([&](const Job& job) { return now - job.ask->arrived > limits_.times.waiting; }))
    late.exchange->answer(error_response(waited_too_long(limits_.times.waiting)));
  for (RunningRequest& request : requests_) request.keep(limits_.times, now);
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
  const int64_t most =
      std::min(std::max(wanted, infer::padded_rows(tokens + 1)), model_.runner->limits().rows);
  int64_t unfed = 0;
  for (const auto& [request, answer] : prompts) unfed += static_cast<int64_t>(answer->unfed());
  int64_t room = budget_.less_padding(std::min(most, tokens + unfed), tokens) - tokens;
  std::sort(prompts.begin(), prompts.end(),
            [](const auto& a, const auto& b) { return a.second->number() < b.second->number(); });
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
    std::pair<RunningRequest*, RunningAnswer*> last = {};
    for (RunningRequest& request : requests_)
      for (RunningAnswer* answer : request.running())
        if (++running == 1 || answer->number() > last.second->number()) last = {&request, answer};
    if (running < 2) return parts;  // one alone has room; if not, the runner says what is wrong
    last.first->pause(*last.second);
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
  keep_time_limits();
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
    one->set_ahead(queue_.size(one->key()));
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
