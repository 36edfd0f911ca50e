// run_local_workers: starts worker processes on this machine, restarts them when they are killed, and waits
// for their end. It does not depend on what they do.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::cluster {

// A worker that leaves because it lost its place among the workers (the lease ran out, the coordinator closed
// the connection) exits with this status: another may be started in its place.
inline constexpr int kExitLostPlace = 76;
// A worker that was asked to leave (SIGTERM, a notice), and that the others have released, exits with this
// status: none is started in its place, or one later (back_after).
inline constexpr int kExitLeft = 77;

// A worker that was stopped together with the whole job, after the run was saved, exits with this status: the
// same command continues the run.
inline constexpr int kExitInterrupted = 75;

// A coordinator that ends alone, while its job goes on, exits with this status: another takes its place.
inline constexpr int kExitReplaced = 78;

// A worker that a majority of the others found to compute or to keep what they do not (trainer.cross_check)
// exits with this status: it has failed by itself, however long it ran.
inline constexpr int kExitCorrupt = 79;

struct LocalWorkers {
  std::vector<std::string> command;            // program and arguments of every worker
  std::vector<std::vector<std::string>> more;  // further arguments, by the place of a worker; may be empty
  std::vector<std::string> names;              // of the places, for messages: " on HOST"; may be empty
  // The beginning of every worker's standard input, which then stays open; "": that of this process. At most
  // 32 KiB.
  std::string input;
  std::string program;  // what is executed instead when command[0] is not the same file any more; "": nothing
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
  int64_t count = 1;
  int64_t least = 1;  // with fewer workers the job cannot go on
  // The most replacements of workers that were killed by a signal or lost their place, over all workers.
  int64_t restarts = 1000;
  // The most replacements in a row, divided by `count`, while `progress` does not change. Without this limit,
  // workers with a fault at their start would be replaced for ever.
  int64_t restarts_without_progress = 5;
  // The rest of a place whose worker failed by itself, before another is tried there; it doubles with each
  // failure, up to `most_rest`.
  std::chrono::milliseconds rest{5'000}, most_rest{300'000};
  // A worker that ran for so long was not at its start when it failed: then failures are counted anew, but
  // for those with kExitCorrupt, which may come hours apart.
  std::chrono::milliseconds lived{60'000};
  // Places with the same number here are on one machine; empty: each is alone. A machine on which
  // `left_out_after` workers in a row have failed by themselves is left out for `left_out_for`, with all its
  // places; then one more failure leaves it out again. 0: never.
  std::vector<size_t> machines;
  int64_t left_out_after = 0;
  std::chrono::milliseconds left_out_for{600'000};
  // Whether a worker may start on the machine now; one that may not waits. Called as often as `look`.
  std::function<bool(size_t machine)> ready;
  // Called when a worker that did not live for `lived` has failed by itself there.
  std::function<void(size_t machine)> failed;
  // Returns the machines that have got what they lacked since the last call: failures there are counted anew,
  // and places that rest are tried at once. Called as often as `look`.
  std::function<std::vector<size_t>()> mended;
  // So often a line feed is written to the standard input of a worker that has `input`; nothing: never.
  std::optional<std::chrono::milliseconds> line_feed_every;
  // How long after a worker has left (kExitLeft) another is tried in its place; nothing: none is.
  std::optional<std::chrono::milliseconds> back_after;
  // A folder in which the standard error of the workers is kept, beside passing it on: worker-PLACE.log
  // (watch/kept_output.h). It is made when a worker writes. "": none.
  std::string output_folder;
  // Called with what a worker has written to standard error.
  std::function<void(size_t place, std::string_view bytes)> said;
  std::function<int64_t()>
      progress;                // grows from 0 when the job makes progress; called when a worker was lost
  std::function<void()> look;  // called about 100 times a second
  // Returns the ids of processes to be killed (SIGKILL) because they hang or are stopped; the ids of
  // processes that are not workers of this launcher are ignored. Called as often as `look`.
  std::function<std::vector<int64_t>()> hopeless;
  // The same by places.
  std::function<std::vector<size_t>()> hopeless_places;
  // The job's exit status, when it has ended for all workers.
  std::function<std::optional<int>()> over;
  // Whether the workers were asked to save and to end, and how to ask them.
  std::function<bool()> stopping;
  std::function<void()> stop;
  std::chrono::milliseconds stop_grace{600'000};  // in which they do
};

// Runs until no worker is left. Returns the exit status of the job: what `over` says is not changed by how
// the workers end that remain then.
//
// A worker that was killed or lost its place is replaced at once. One that ends with an error (any status but
// 0 and those above) leaves alone: the others go on, and another is tried in its place after a rest. Standard
// error of the workers goes through this process. The job
// fails with that status when fewer than `least` workers are left, and either no progress was ever made or
// three workers in a row have failed in that place. It also fails when replacements make no progress; then an
// error in the log shows what the last worker wrote to standard error. The workers of a job that fails or is
// stopped have `stop_grace` to save, those of one that has ended ten seconds; then they get SIGTERM, and ten
// seconds later SIGKILL. Where all have left, also while the job stops, the status is kExitInterrupted; where
// the job stops and one of them was lost instead, it is 1. Workers are killed when this process ends. Error:
// a process cannot be started.
Result<int> run_local_workers(const LocalWorkers& workers);

}  // namespace ostro::cluster
