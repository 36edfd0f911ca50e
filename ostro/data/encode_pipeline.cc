#include "ostro/data/encode_pipeline.h"

namespace ostro::data {

EncodePipeline::EncodePipeline(const EncodeContext& context, const tokenizer::Tokenizer& tokenizer,
                               int threads)
    : context_(context), tokenizer_(tokenizer) {
  OSTRO_CHECK(threads >= 1, "{} threads to encode with", threads);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

EncodePipeline::~EncodePipeline() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    waiting_.clear();
  }
  work_changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void EncodePipeline::submit(Unit unit) {
  auto job = std::make_shared<Job>();
  job->unit = std::move(unit);
  jobs_.push_back(job);
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(job));
  }
  work_changed_.notify_one();
}

Result<EncodedUnit> EncodePipeline::take() {
  OSTRO_CHECK(!jobs_.empty(), "take() without a submitted unit");
  const std::shared_ptr<Job> job = std::move(jobs_.front());
  jobs_.pop_front();
  std::unique_lock lock(mutex_);
  job_done_.wait(lock, [&job] { return job->done; });
  return std::move(job->result);
}

void EncodePipeline::work() {
  tokenizer::Encoder encoder(tokenizer_);
  std::unique_lock lock(mutex_);
  while (true) {
    work_changed_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    const std::shared_ptr<Job> job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Result<EncodedUnit> result = encode_unit(context_, encoder, std::move(job->unit));
    lock.lock();
    job->result = std::move(result);
    job->done = true;
    job_done_.notify_one();
  }
}

}  // namespace ostro::data
