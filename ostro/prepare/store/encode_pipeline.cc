#include "ostro/prepare/store/encode_pipeline.h"

#include <utility>

namespace ostro::prepare {

namespace {
// Limit for bytes of text in the pipeline: it bounds memory when documents are large. A unit larger than this
// is processed alone, and the next one is not even read before it is done.
constexpr int64_t kWindowBytes = 64 << 20;
}  // namespace

EncodePipeline::EncodePipeline(const EncodeContext& context, const tokenizer::Tokenizer& tokenizer,
                               DocumentReader reader, int threads)
    : context_(context), tokenizer_(tokenizer), window_(4 * static_cast<size_t>(threads) + 4) {
  OSTRO_CHECK(threads >= 1, "{} threads to encode with", threads);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { encode(); });
  threads_.emplace_back([this, reader = std::move(reader)]() mutable { read(std::move(reader)); });
}

EncodePipeline::~EncodePipeline() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    waiting_.clear();
  }
  work_changed_.notify_all();
  room_changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Result<bool> EncodePipeline::next(EncodedUnit& unit) {
  unit = {};  // frees the unit before, instead of holding it while waiting for the next
  std::unique_lock lock(mutex_);
  bytes_ -= std::exchange(taken_, 0);
  room_changed_.notify_one();
  job_done_.wait(lock, [this] { return jobs_.empty() ? ended_ : jobs_.front()->done; });
  if (jobs_.empty()) {
    RETURN_IF_ERROR(reading_);
    return false;
  }
  const std::shared_ptr<Job> job = std::move(jobs_.front());
  jobs_.pop_front();
  taken_ = job->bytes;
  lock.unlock();
  room_changed_.notify_one();
  if (!job->result.ok()) return job->result.error();
  unit = std::move(*job->result);
  return true;
}

void EncodePipeline::read(DocumentReader reader) {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      room_changed_.wait(lock, [this] { return stop_ || bytes_ < kWindowBytes; });
      if (stop_) return;
    }
    auto job = std::make_shared<Job>();
    const Result<bool> more = reader.next(job->unit);
    for (const data::Row& row : job->unit.rows) job->bytes += static_cast<int64_t>(row.bytes.size());
    std::unique_lock lock(mutex_);
    if (!more.ok() || !*more) {
      ended_ = true;
      if (!more.ok()) reading_ = more.error();
      job_done_.notify_one();
      return;
    }
    room_changed_.wait(lock, [&] {
      return stop_ || jobs_.empty() || (jobs_.size() < window_ && bytes_ + job->bytes <= kWindowBytes);
    });
    if (stop_) return;
    bytes_ += job->bytes;
    jobs_.push_back(job);
    waiting_.push_back(std::move(job));
    work_changed_.notify_one();
  }
}

void EncodePipeline::encode() {
  tokenizer::Encoder encoder(tokenizer_);
  data::LineParser parser;
  std::unique_lock lock(mutex_);
  while (true) {
    work_changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    const std::shared_ptr<Job> job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Result<EncodedUnit> result = encode_unit(context_, encoder, parser, std::move(job->unit));
    lock.lock();
    job->result = std::move(result);
    job->done = true;
    job_done_.notify_one();
  }
}

}  // namespace ostro::prepare
