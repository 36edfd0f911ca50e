// native: what the Python module calls: models, runs, verification and servers, in types of the standard
// library alone.
//
// One library (libostro_native.so) holds it with all rooms below; the modules for the versions of Python are
// thin. Functions throw Failure with the text that the command line prints behind "error: ". Objects may be
// used by any thread, one call at a time waits for the other.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ostro/serve/options/serve_options.h"

namespace ostro::native {

class Failure : public std::runtime_error {
  using std::runtime_error::runtime_error;
};
// An Interrupt said so.
class Interrupted : public std::exception {};
// Whether the caller wants a call to end. Asked between steps and batches, by the thread that made the call.
using Interrupt = std::function<bool()>;

// Elements in row-major order; they live as long as `memory`.
struct Values {
  std::string dtype;  // "f32", "bf16", "i32", ... (ostro/ir)
  std::vector<int64_t> shape;
  const void* data = nullptr;
  std::shared_ptr<const void> memory;
};

struct LoadOptions {
  std::string tokenizer, mp, device = "cpu";  // as `ostro sample` takes them
  std::optional<int64_t> seq_len;
  bool unchecked = false;
  std::string adapter;  // as `ostro serve --adapter` takes it, without a name; empty: none
};

struct Sampling {
  int64_t max_tokens = 256;
  double temperature = 0;  // 0: always the most likely token
  uint64_t seed = 0;
  int64_t top_k = 0;
  double top_p = 1, min_p = 0;
  std::vector<std::string> stop;
};

struct Score {
  double log_prob = 0;
  int64_t tokens = 0, bytes = 0;
};

// An answer while it is made.
class Answer {
 public:
  virtual ~Answer() = default;
  // The text of the next token: whole characters, perhaps none. Nothing: the answer is over.
  virtual std::optional<std::string> next() = 0;
  virtual std::vector<int32_t> ids() const = 0;
  // "stop_token", "stop_string", "length"; "" before the end.
  virtual std::string finish() const = 0;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual const std::string& path() const = 0;   // of the checkpoint
  virtual const std::string& state() const = 0;  // its name
  virtual int64_t step() const = 0;
  virtual const std::string& adapter() const = 0;  // the hash of LoadOptions::adapter; empty: none
  virtual int64_t context() const = 0;
  virtual int64_t vocab_size() const = 0;  // ids of the tokenizer
  virtual const std::string& tokenizer_hash() const = 0;

  virtual const std::vector<std::string>& arrays() const = 0;
  // No copy. Throws std::out_of_range for a name that is not among them.
  virtual Values array(const std::string& name) const = 0;

  virtual std::vector<uint32_t> encode(const std::string& text) const = 0;
  virtual std::string decode(const std::vector<uint32_t>& ids, bool skip_special) const = 0;
  // The ids of a prompt, with what the tokenizer puts in front of a text.
  virtual std::vector<int32_t> prompt(const std::string& text) const = 0;
  // The prompt that the chat template makes of messages, a JSON text; `tools` the same, or "".
  virtual std::string chat_prompt(const std::string& messages, const std::string& tools) const = 0;

  // f32 [pos, vocab]: row i has the logits of what follows ids[0] to ids[i].
  virtual Values logits(const std::vector<int32_t>& ids) = 0;
  // f32 [pos - 1]: the log-probabilities of ids[1] and those after it.
  virtual Values log_probs(const std::vector<int32_t>& ids) = 0;
  // As `ostro score` gives them. `stride` 0: the context.
  virtual std::vector<Score> score(const std::vector<std::string>& texts, int64_t stride,
                                   const Interrupt& interrupt) = 0;
  virtual std::unique_ptr<Answer> answer(std::vector<int32_t> prompt, const Sampling& sampling) = 0;
};

// A checkpoint, or a run's newest one.
std::shared_ptr<Model> load(const std::string& where, const LoadOptions& options);

struct RunStep {
  int64_t step = 0, tokens = 0;
  double loss = 0;
  std::string state;  // fingerprint of the parameters and of the step's numbers
};
// The record of a run, whose every hash was checked.
struct RunRecord {
  std::string hash;
  std::vector<RunStep> steps;
};
RunRecord read_run(const std::string& directory);

struct TrainOptions {
  std::string config;  // a file
  std::vector<std::pair<std::string, std::string>> overrides;
  std::vector<std::string> words;     // for run.json: the words of a command line that does the same
  std::optional<std::string> device;  // in place of trainer.device
  bool amend = false;
};
struct TrainOutcome {
  std::string directory;
  bool finished = false;  // false: stopped by a signal, and saved
  int64_t steps = 0;
};
// While it trains, SIGINT, SIGTERM and SIGHUP save and stop as they do for `ostro train`; after that the
// signal that came is raised again, for the handler that was there before. One at a time in a process.
TrainOutcome train(const TrainOptions& options);

struct VerifyOptions {
  std::optional<int64_t> from_step, to_step, sample;
  std::string run_hash, cache, parent, model, challenge, leaf, rows, key, device = "cpu";
  bool no_replay = false;
};
struct Verification {
  std::string verdict;  // "equal", "differs", "incomplete", "cannot check"
  std::string text;
};
Verification verify(const std::string& run, const VerifyOptions& options, const Interrupt& interrupt);

using serve::ServeOptions;  // listen: a host and a port
// A server, from its making to its end.
class Server {
 public:
  virtual ~Server() = default;
  virtual const std::string& url() const = 0;  // "http://127.0.0.1:8080/v1"
  // Answers what it took, at most so long, and ends. False: some requests were not answered.
  virtual bool stop(double seconds) = 0;
};
// Shares the model's parameters, and computes beside it. `adapters`: names and directories, as `ostro serve
// --adapter` takes them.
std::unique_ptr<Server> serve(const std::shared_ptr<Model>& model, const ServeOptions& options,
                              const std::vector<std::pair<std::string, std::string>>& adapters);

std::string version();

}  // namespace ostro::native
