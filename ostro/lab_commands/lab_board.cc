// ostro lab board track | new | enter | check | show
#include "ostro/lab_commands/lab_board.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "ostro/audit/sampled.h"
#include "ostro/board/board.h"
#include "ostro/board/confined_files.h"
#include "ostro/board/evaluation.h"
#include "ostro/board/limited_check.h"
#include "ostro/chain/chain.h"
#include "ostro/chain/data_record.h"
#include "ostro/io/files/path.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/shell/words/verbs.h"

namespace ostro::cli {
namespace {

struct TrackRequest {
  std::string run, name;
  std::vector<std::string> evaluation;
  double flops = 0;
  std::optional<int64_t> steps;
};

Status print_track(io::FileSystem& fs, const TrackRequest& request) {
  ASSIGN_OR_RETURN(const std::string record, audit::record_folder(fs, request.run));
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, io::join_path(record, chain::kChainFile)));
  if (chain.genesis().format == 1)
    return invalid_argument(
        fmt::format("{}: its chain is of format 1, which has no roots of the data", request.run));
  board::Track track;
  track.name = request.name;
  const std::vector<chain::DataRecord> records = chain::data_records(chain);
  for (const auto& [component, root] : records.back().roots) track.data.push_back(root);
  track.tokenizer = chain.genesis().tokenizer_hash;
  track.flops = request.flops, track.steps = request.steps;
  ASSIGN_OR_RETURN(const board::Evaluation evaluation, board::read_files(fs, "", request.evaluation));
  track.evaluation = {request.evaluation, evaluation.sha256};
  RETURN_IF_ERROR(track.resolve());
  return write_stdout(board::track_yaml(track));
}

int track_verb(Args args) {
  TrackRequest request;
  args.summary(
      "Prints a track: the data and the tokenizer of a run, texts that entries are scored on, and a budget. "
      "Put "
      "it\n"
      "into a file beside the texts.");
  args.positional("RUN", &request.run, "a run or a bundle whose data and tokenizer are the track's");
  args.option("--name", &request.name, "NAME", "of the track", Args::kRequired);
  args.option("--evaluation", &request.evaluation, "FILES",
              "texts, a document each, as the track's file names them", Args::kRequired);
  args.option("--flops", &request.flops, "F",
              "operations that a training may have, as ostro train --dry_run counts", Args::kRequired);
  args.option("--steps", &request.steps, "K", "replay only K drawn steps of each entry (default: all)");
  if (const auto code = args.parse()) return *code;
  return exit_after(print_track(args.context().fs, request));
}

int new_verb(Args args) {
  std::string folder, track;
  args.summary("Makes a board: a folder with a track, its evaluation texts, and a hash chain of entries.");
  args.positional("DIR", &folder, "the folder to make, which must not exist");
  args.option("--track", &track, "FILE", "the track (docs/guide/board.md)", Args::kRequired);
  if (const auto code = args.parse()) return *code;
  const auto read = board::read_track(track);
  if (!read.ok()) return report_error(read.error());
  if (const Status made = board::Board::create(args.context().fs, folder, *read); !made.ok())
    return report_error(made.error());
  const auto made = board::Board::open(args.context().fs, folder);
  return made.ok() ? exit_after(write_stdout(board::board_text(*made))) : report_error(made.error());
}

Status enter(const Context& context, const std::string& bundle, const std::string& folder) {
  ASSIGN_OR_RETURN(board::Board board, board::Board::open(context.fs, folder));
  board::ConfinedFiles files(context.fs, {bundle});
  ASSIGN_OR_RETURN(const board::Entry entry, board::open_entry(context.in(files), bundle));
  RETURN_IF_ERROR(board.enter(context.fs, entry));
  return write_stdout(fmt::format("{}: entry {} of the board, run hash {}\nhead: {}\n", bundle,
                                  board.entries().size(), entry.chain.head(), board.head()));
}

int enter_verb(Args args) {
  std::string bundle, folder;
  args.summary(
      "Puts an entry on a board, unchecked. From here on the board's head, and a beacon that comes later, "
      "decide "
      "which\n"
      "of its steps are drawn.");
  args.positional("ENTRY", &bundle, "a bundle (ostro publish --score)");
  args.option("--board", &folder, "DIR", "the board", Args::kRequired);
  if (const auto code = args.parse()) return *code;
  return exit_after(enter(args.context(), bundle, folder));
}

constexpr int64_t kMostLimit = int64_t{1} << 30;  // of seconds, and of GiB
constexpr int64_t kMoreAddresses = 32;            // GiB, than a program may need memory

struct CheckWords {
  std::string track, board;
  int64_t memory_gib = 16, cpu_seconds = 0;  // 0: `seconds` for each processor
  double seconds = 6 * 3600;
  double addresses_gib = 0;  // 0: kMoreAddresses more than memory_gib
  board::CheckRequest request;
};

Result<board::CheckLimits> limits_of(const CheckWords& words) {
  for (const auto& [name, value] :
       {std::pair{"--memory", words.memory_gib}, {"--cpu_time", words.cpu_seconds}})
    if (value < 1 || value > kMostLimit)
      return invalid_argument(fmt::format("{} {}: use 1 to {}", name, value, kMostLimit));
  for (const auto& [name, value] : {std::pair{"--time", words.seconds}, {"--addresses", words.addresses_gib}})
    if (!(value > 0 && value <= static_cast<double>(kMostLimit)))
      return invalid_argument(fmt::format("{} {}: use more than 0 and at most {}", name, value, kMostLimit));
  return board::CheckLimits{
      std::chrono::milliseconds(std::max<int64_t>(1, std::llround(words.seconds * 1e3))), words.cpu_seconds,
      static_cast<int64_t>(words.addresses_gib * (int64_t{1} << 30))};
}

Result<board::LimitedCheck> check(const Context& context, CheckWords words) {
  if (words.track.empty() == words.board.empty())
    return invalid_argument("name either --track FILE or --board DIR");
  if (words.addresses_gib == 0) words.addresses_gib = static_cast<double>(words.memory_gib + kMoreAddresses);
  if (words.cpu_seconds == 0) {
    const double all = std::ceil(words.seconds) * std::max(1U, std::thread::hardware_concurrency());
    words.cpu_seconds = static_cast<int64_t>(std::clamp(all, 1.0, static_cast<double>(kMostLimit)));
  }
  ASSIGN_OR_RETURN(const board::CheckLimits limits, limits_of(words));
  words.request.memory = words.memory_gib << 30;
  words.request.on_step = [&](int64_t done, int64_t all) {
    context.progress.show("replaying", static_cast<double>(done) / static_cast<double>(all));
  };
  std::optional<board::Board> board;
  board::Track track;
  if (words.board.empty()) {
    ASSIGN_OR_RETURN(track, board::read_track(words.track));
  } else {
    ASSIGN_OR_RETURN(board, board::Board::open(context.fs, words.board));
    track = board->track();
  }
  ASSIGN_OR_RETURN(board::LimitedCheck done,
                   board::check_limited(context, track, board ? &*board : nullptr, words.request, limits));
  if (!board || done.outcome.bundle.empty()) return done;
  for (const board::BoardEntry& entry : board->entries())
    if (entry.bundle == done.outcome.bundle && entry.is_checked) {
      done.text += "the board had its outcome already\n";
      return done;
    }
  if (!done.outcome.is_final()) {
    done.text += "the board keeps no outcome of it: another machine may check it\n";
    return done;
  }
  const bool counted = done.outcome.counts();
  RETURN_IF_ERROR(board->record(context.fs, done.outcome, words.request));
  if (counted && !done.outcome.counts()) done.text = board::check_text(done.outcome, track);  // a copy by now
  done.text += fmt::format("head: {}\n", board->head());
  return done;
}

int check_verb(Args args) {
  CheckWords words;
  args.summary(
      "Says whether an entry counts on a track, and its score; exits with 0 if it counts, 1 if it is "
      "refused. It "
      "checks\n"
      "the bundle, compares tokenizer, data, start, constants and operations with the track, replays the "
      "training "
      "or\n"
      "drawn steps of it, and scores the track's texts with the last state, wherever it can say why not. No "
      "code "
      "of\n"
      "the entrant runs: programs are data (docs/guide/board.md).");
  args.positional("ENTRY", &words.request.entry, "a bundle (ostro publish --score)");
  args.option("--track", &words.track, "FILE", "the track, without a board: copies are not looked for");
  args.option("--board", &words.board, "DIR", "the board that has the entry; its outcome is written there");
  args.option("--beacon", &words.request.beacon, "TEXT",
              "a public text that is younger than the entry, which decides what is drawn; needed where "
              "something is");
  args.option("--cache", &words.request.cache, "STORE",
              "the token store of the track's data; paths in the entry's configuration are not opened");
  args.option("--cuts", &words.request.cuts, "N",
              "targets at which later tokens are changed (default 1000; all, where there are no more)");
  args.option("--sums", &words.request.sums, "N",
              "targets at which exp(-loss) is summed over the vocabulary (default 20)");
  args.option("--memory", &words.memory_gib, "GIB", "that a program of the entry may need (default 16)");
  args.option("--time", &words.seconds, "SECONDS",
              "after which the check, which runs in a process of its own, is ended (default 21600)");
  args.option("--cpu_time", &words.cpu_seconds, "SECONDS",
              "of processor time that the check may use (default: --time for each processor)");
  args.option("--addresses", &words.addresses_gib, "GIB",
              "of addresses that the check may map (default: 32 more than --memory)");
  if (const auto code = args.parse()) return *code;
  const auto done = check(args.context(), std::move(words));
  if (!done.ok()) return report_error(done.error());
  const Status written = write_stdout(done->text);
  if (!written.ok()) return report_error(written.error());
  return done->outcome.counts() ? kExitOk : kExitFailed;
}

int show_verb(Args args) {
  std::string folder;
  args.summary("Checks the hash chain of a board, and prints its entries, the best first.");
  args.positional("DIR", &folder, "the board");
  if (const auto code = args.parse()) return *code;
  const auto board = board::Board::open(args.context().fs, folder);
  return board.ok() ? exit_after(write_stdout(board::board_text(*board))) : report_error(board.error());
}

constexpr Command kBoardVerbs[] = {
    {"track", "print a track: data and tokenizer of a run, texts, a budget", track_verb},
    {"new", "make a board for a track", new_verb},
    {"enter", "put an entry on a board, before it is checked", enter_verb},
    {"check", "say whether an entry counts, and its score", check_verb},
    {"show", "print the entries of a board, the best first", show_verb},
};

}  // namespace

int lab_board(Args args) { return run_verb(std::move(args), kBoardVerbs); }

}  // namespace ostro::cli
