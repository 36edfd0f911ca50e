#include "ostro/board/board.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "ostro/base/host_name.h"
#include "ostro/base/one_line.h"
#include "ostro/board/check.h"
#include "ostro/board/evaluation.h"
#include "ostro/chain/canonical.h"
#include "ostro/convert/import/new_directory.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::board {
namespace {

using nlohmann::json;

constexpr const char* kNoun = "board";

// The chain of an entry that the board keeps.
std::string kept_chain(const std::string& folder, const std::string& bundle) {
  return io::join_path(io::join_path(folder, "entries"), bundle + ".jsonl");
}

std::string kept_text(size_t i) { return fmt::format("evaluation/{}.txt", i); }

// What a line says of a refusal, which may quote a stranger: one line of UTF-8 of a limited size.
std::string kept_reason(const std::string& text) {
  constexpr size_t kMost = 500;
  std::string out = one_line(text);
  if (out.size() > kMost) {
    size_t end = kMost;
    while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80)
      --end;  // a character begins there
    out.resize(end);
  }
  return json::parse(json(out).dump(-1, ' ', false, json::error_handler_t::replace));
}

Error wrong_line(const std::string& path) {
  return corrupt(fmt::format("{}: has a line that is no entry and no outcome of one", path));
}

constexpr std::chrono::seconds kPatience{60};  // for a lock that is held while a line is written
constexpr std::chrono::milliseconds kLook{20};

// Steps that two chains have in common from their first one on.
int64_t shared_steps(const chain::Chain& a, const chain::Chain& b) {
  const int64_t most = std::min(a.last_step(), b.last_step());
  for (int64_t step = 1; step <= most; ++step) {
    const chain::ChainLink *one = a.find_step(step), *other = b.find_step(step);
    if (one == nullptr || other == nullptr) return step - 1;
    const auto &x = std::get<chain::StepEntry>(one->entry), &y = std::get<chain::StepEntry>(other->entry);
    if (x.state != y.state || x.batch != y.batch) return step - 1;
  }
  return most;
}

}  // namespace

Status Board::create(io::FileSystem& fs, const std::string& folder, const Track& track) {
  RETURN_IF_ERROR(convert::check_is_new(fs, folder));
  ASSIGN_OR_RETURN(const Evaluation evaluation, read_evaluation(fs, track));
  return convert::make_whole(
      fs, folder,
      [&](const std::string& place) -> Status {
        RETURN_IF_ERROR(fs.make_dirs(io::join_path(place, "evaluation")));
        RETURN_IF_ERROR(fs.make_dirs(io::join_path(place, "entries")));
        Track kept = track;
        kept.evaluation.files.clear();
        for (size_t i = 0; i < evaluation.documents.size(); ++i) {
          kept.evaluation.files.push_back(kept_text(i));
          RETURN_IF_ERROR(fs.write_file(io::join_path(place, kept_text(i)), evaluation.documents[i]));
        }
        RETURN_IF_ERROR(fs.write_file(io::join_path(place, kTrackFile), track_yaml(kept)));
        ASSIGN_OR_RETURN(lab::LineChain lines,
                         lab::LineChain::open(fs, io::join_path(place, kBoardFile), kNoun));
        RETURN_IF_ERROR(lines.append({{"kind", "track"}, {"track", json::parse(track_text(track))}}));
        return fs.sync_tree(place);
      },
      ".making");
}

Result<Board> Board::open(io::FileSystem& fs, const std::string& folder) {
  const std::string path = io::join_path(folder, kBoardFile);
  ASSIGN_OR_RETURN(const bool there, fs.exists(path));
  if (!there)
    return not_found(fmt::format("{} is no board: it has no {} (ostro lab board new)", folder, kBoardFile));
  ASSIGN_OR_RETURN(lab::LineChain lines, lab::LineChain::open(fs, path, kNoun));
  // A board may be another's: its track is the file that was written, and includes nothing.
  const std::string track_path = io::join_path(folder, kTrackFile);
  const auto read = [&](const std::string& file) -> Result<std::string> {
    constexpr int64_t kMostBytes = int64_t{1} << 24;
    if (file == track_path) return fs.read_file(file, kMostBytes);
    return corrupt(fmt::format("{} is not opened: the track of a board includes nothing", file));
  };
  ASSIGN_OR_RETURN(Track track, read_track(track_path, read));
  if (lines.lines().empty()) return corrupt(fmt::format("{}: has no line about its track", path));
  const std::string first = lab::line_text({{"kind", "track"}, {"track", json::parse(track_text(track))}});
  if (lines.lines().front().entry != first)
    return corrupt(
        fmt::format("{} is not the track of the first line of {}: put the file back", kTrackFile, path));
  Board out(folder, std::move(track), std::move(lines));
  for (size_t i = 1; i < out.lines_.lines().size(); ++i) RETURN_IF_ERROR(out.take(out.lines_.lines()[i]));
  return out;
}

Status Board::take(const lab::HashedLine& line) {
  try {
    const json entry = json::parse(line.entry);
    const std::string kind = entry.at("kind"), bundle = entry.at("bundle");
    if (kind == "entry") {
      if (find(bundle) != nullptr) return wrong_line(lines_.path());
      entries_.push_back({bundle, entry.at("head"), line.hash});
      return {};
    }
    const auto known = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const BoardEntry& one) { return one.bundle == bundle; });
    if (kind != "outcome" || known == entries_.end() || known->is_checked) return wrong_line(lines_.path());
    known->is_checked = true;
    known->counts = entry.at("counts");
    known->refused = entry.at("refused");
    if (entry.contains("reasons")) known->reasons = entry.at("reasons");
    if (entry.contains("replayed"))
      known->replayed = {entry.at("replayed").at("steps"), entry.at("replayed").at("of")};
    ASSIGN_OR_RETURN(known->bits_per_byte,
                     chain::parse_hex_float(entry.at("bits_per_byte").get<std::string>()));
    ASSIGN_OR_RETURN(known->flops, chain::parse_hex_float(entry.at("flops").get<std::string>()));
    known->cuts = entry.at("cuts"), known->sums = entry.at("sums"), known->memory = entry.at("memory");
    return {};
  } catch (const json::exception&) {
    return wrong_line(lines_.path());
  }
}

const BoardEntry* Board::find(const std::string& bundle) const {
  for (const BoardEntry& entry : entries_)
    if (entry.bundle == bundle) return &entry;
  return nullptr;
}

Result<std::unique_ptr<io::FileLock>> Board::lock(io::FileSystem& fs) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    auto held =
        fs.lock(io::join_path(folder_, kLockFile), fmt::format("process {} of {}", ::getpid(), host_name()));
    if (!held.ok() && held.error().code() == ErrorCode::kBusy && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kLook);
      continue;
    }
    if (!held.ok()) return held.error().with_context("the board cannot be written");
    ASSIGN_OR_RETURN(*this, open(fs, folder_));
    return held;
  }
}

Status Board::append(const json& entry) {
  const std::string text = lab::line_text(entry);
  std::vector<BoardEntry> before = entries_;
  Status done = take({text, lab::line_hash(lines_.head(), text)});
  if (done.ok()) done = lines_.append(entry);
  if (!done.ok()) entries_ = std::move(before);
  return done;
}

Status Board::enter(io::FileSystem& fs, const Entry& entry) {
  ASSIGN_OR_RETURN(const auto held, lock(fs));
  if (const BoardEntry* known = find(entry.hash); known != nullptr)
    return invalid_argument(
        fmt::format("{} is on the board already, as the line {}", entry.folder, known->line));
  ASSIGN_OR_RETURN(std::string chain,
                   fs.read_file(io::join_path(entry.record, chain::kChainFile), kMostChainBytes));
  if (std::ssize(chain) > entry.chain.bytes) chain.resize(static_cast<size_t>(entry.chain.bytes));
  // It is there before the line that says so, after a power cut, too: checks of later entries need it.
  RETURN_IF_ERROR(io::write_file_atomically(fs, kept_chain(folder_, entry.hash), chain));
  return append({{"kind", "entry"}, {"bundle", entry.hash}, {"head", entry.chain.head()}});
}

Status Board::record(io::FileSystem& fs, CheckResult& result, const CheckRequest& request) {
  if (!result.is_final())
    return invalid_argument("an outcome that another machine may not give is not kept on a board");
  ASSIGN_OR_RETURN(const auto held, lock(fs));
  const BoardEntry* entry = find(result.bundle);
  if (entry == nullptr || entry->is_checked)
    return invalid_argument(entry == nullptr ? "the entry is not on the board: ostro lab board enter"
                                             : "the board has an outcome of this entry already");
  if (result.counts()) {
    ASSIGN_OR_RETURN(const chain::Chain chain, kept(fs, *entry));
    ASSIGN_OR_RETURN(const Copies copies, compare(fs, result.bundle, chain));
    if (!copies.copy.empty()) result.refusals.push_back({Rule::kCopy, copies.copy});
  }
  std::vector<std::string> refused, reasons;
  for (const Refusal& refusal : result.refusals) {
    refused.emplace_back(rule_name(refusal.rule));
    reasons.push_back(kept_reason(refusal.text));
  }
  json line = {{"kind", "outcome"},
               {"bundle", result.bundle},
               {"beacon", request.beacon},
               {"bits_per_byte", chain::hex_float(result.counts() ? result.bits_per_byte : 0)},
               {"challenge", result.challenge},
               {"counts", result.counts()},
               {"cuts", request.cuts},
               {"flops", chain::hex_float(result.flops)},
               {"memory", request.memory},
               {"reasons", reasons},
               {"refused", refused},
               {"state", result.state},
               {"sums", request.sums}};
  if (result.replayed && result.replayed->replayed > 0)
    line["replayed"] = {{"of", result.replayed->steps}, {"steps", result.replayed->replayed}};
  return append(line);
}

Result<std::string> Board::head_behind(const std::string& bundle) const {
  const BoardEntry* entry = find(bundle);
  if (entry == nullptr)
    return invalid_argument(
        "the entry is not on the board yet: ostro lab board enter fixes what is drawn of it");
  return entry->line;
}

Result<chain::Chain> Board::kept(io::FileSystem& fs, const BoardEntry& entry) const {
  const std::string path = kept_chain(folder_, entry.bundle);
  ASSIGN_OR_RETURN(chain::Chain chain, chain::read_chain(fs, path));
  if (chain.head() == entry.head) return chain;
  return corrupt(
      fmt::format("{}: has the run hash {}, its entry on the board {}", path, chain.head(), entry.head));
}

Result<Copies> Board::copies_of(io::FileSystem& fs, const Entry& entry) const {
  return compare(fs, entry.hash, entry.chain);
}

Result<Copies> Board::compare(io::FileSystem& fs, const std::string& bundle, const chain::Chain& own) const {
  Copies out;
  bool is_before = true;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const BoardEntry& other = entries_[i];
    if (other.bundle == bundle) is_before = false;
    if (other.bundle == bundle || (!is_before && !other.counts)) continue;
    ASSIGN_OR_RETURN(const chain::Chain chain, kept(fs, other));
    const int64_t shared = shared_steps(chain, own);
    if (shared == 0) continue;
    if (other.counts && shared == own.last_step() && out.copy.empty())
      out.copy = fmt::format("its {} steps are those of entry {} (run hash {})", shared, i + 1, other.head);
    if (is_before)
      out.shared.push_back(
          fmt::format("shared: its steps 1 to {} are those of entry {} (run hash {}), which {}", shared,
                      i + 1, other.head,
                      other.counts       ? "counts"
                      : other.is_checked ? "was refused"
                                         : "is not checked yet"));
  }
  return out;
}

std::vector<size_t> ranked(const Board& board) {
  std::vector<size_t> order;
  const auto& entries = board.entries();
  for (size_t i = 0; i < entries.size(); ++i) order.push_back(i);
  const auto rank = [&](size_t i) { return entries[i].counts ? 0 : entries[i].is_checked ? 2 : 1; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return entries[a].counts && entries[a].bits_per_byte < entries[b].bits_per_byte;
  });
  return order;
}

std::string board_text(const Board& board) {
  const auto& entries = board.entries();
  std::string out =
      fmt::format("track {}: {} entries; head {}\n", board.track().name, entries.size(), board.head());
  for (const size_t i : ranked(board)) {
    const BoardEntry& one = entries[i];
    out += fmt::format("{:>3}  {}  run hash {}\n", i + 1,
                       one.counts ? fmt::format("{:.6f} bits per byte, {:.6g} FLOPs, {} cuts and {} sums",
                                                one.bits_per_byte, one.flops, one.cuts, one.sums)
                       : one.is_checked ? fmt::format("refused: {}", fmt::join(one.refused, ", "))
                                        : std::string("not checked"),
                       one.head);
  }
  return out;
}

}  // namespace ostro::board
