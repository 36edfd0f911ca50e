#include "ostro/board/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ostro/audit/sample/draw.h"
#include "ostro/board/confined_files.h"
#include "ostro/board/entry.h"
#include "ostro/board/evaluation.h"
#include "ostro/board/rules.h"
#include "ostro/board/score_program.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/files/path.h"

namespace ostro::board {
namespace {

// What keeps a machine from checking is an error; what is wrong with the entry is a refusal.
bool is_of_entry(const Error& error) {
  return error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kNotFound ||
         error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnsupported;
}

// The rule for an error that is_of_entry().
Rule rule_of(const Error& error) {
  const bool is_known = error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kNotFound;
  return is_known ? Rule::kBundle : Rule::kCannotCheck;
}

void check_bundle_rule(const audit::Verdict verdict, const std::vector<audit::Finding>& findings,
                       CheckResult& out) {
  if (verdict == audit::Verdict::kEqual) return;
  const bool is_open = verdict == audit::Verdict::kCannotCheck;
  out.refusals.push_back(
      {is_open ? Rule::kCannotCheck : Rule::kBundle, audit::finding_text(findings.front())});
}

// The audit of the bundle, without the model's files, which no rule is about, where it has none.
Status check_whole(const Context& context, const Entry& entry, CheckResult& out) {
  bundle::BundleOptions options;
  options.record_only = !entry.has_model;
  ASSIGN_OR_RETURN(const bundle::BundleAudit audit,
                   bundle::check_bundle(with_models(context, entry), entry.folder, options));
  check_bundle_rule(audit.verdict(), audit.findings, out);
  return {};
}

// Opens the score program; a refusal where it is none.
Result<std::optional<ScoreProgram>> open_score(io::FileSystem& fs, const Entry& entry,
                                               const audit::RecordedRun& run, Refusals& out) {
  const auto refuse = [&](const Error& error) {
    const bool is_unknown = error.code() == ErrorCode::kUnsupported;
    out.push_back({is_unknown ? Rule::kCannotCheck : Rule::kScoreProgram,
                   fmt::format("{}: {}", bundle::kScoreFile, error.message())});
    return std::optional<ScoreProgram>();
  };
  auto program = read_score_program(fs, entry);
  if (!program.ok() && !is_of_entry(program.error())) return program.error();
  if (!program.ok()) return refuse(program.error());
  auto score = ScoreProgram::create(std::move(*program), run);
  if (!score.ok()) return refuse(score.error());
  return std::optional<ScoreProgram>(std::move(*score));
}

Status score_text(const Context& context, const Entry& entry, ScoreProgram& score, const Windows& windows,
                  const Evaluation& evaluation, const CheckRequest& request, int64_t vocab,
                  CheckResult& out) {
  ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Engine> engine, context.engine());
  const std::string state = io::join_path(io::join_path(entry.record, checkpoint::kCheckpointsFolder),
                                          checkpoint::step_directory(out.step));
  RETURN_IF_ERROR(score.load(context.fs, *engine, state));
  const Scorer scorer = [&](std::span<const int32_t> tokens, std::span<const int32_t> targets) {
    return score.score(tokens, targets);
  };
  ASSIGN_OR_RETURN(out.code, check_code(scorer, windows, {vocab, request.cuts, request.sums, out.challenge}));
  if (out.code->refusal) out.refusals.push_back(*out.code->refusal);
  out.bits_per_byte = out.code->loss / std::numbers::ln2 / static_cast<double>(evaluation.bytes);
  return {};
}

// What the drawn places leave open.
void add_open(const CodeCheck& code, const CheckRequest& request, CheckResult& out) {
  const auto add = [&](int64_t drawn, const char* what) {
    if (drawn >= code.targets) return;
    const int64_t wrong = audit::false_steps_of(code.targets, 100);
    out.open.push_back(fmt::format("a score that {} at {} of {} targets is missed with a chance of {:.4f}",
                                   what, wrong, code.targets,
                                   1 - audit::chance_to_find(code.targets, wrong, drawn)));
  };
  add(request.cuts, "looks at the next token");
  add(request.sums, "is no code");
}

// Refuses windows that the check itself has no room for.
void check_windows(const EvaluationTokens& tokens, int64_t length, const CheckRequest& request,
                   Refusals& out) {
  constexpr int64_t kBytes = 3 * sizeof(int32_t);  // a token, a target and a loss
  const int64_t rows = window_rows(tokens.documents, length);
  if (rows * length <= request.memory / kBytes) return;
  out.push_back(
      {Rule::kMemory,
       fmt::format("the evaluation in windows of {} targets needs {} bytes of memory, and this check "
                   "has {} (--memory)",
                   length, rows * length * kBytes, request.memory)});
}

// What is drawn must not be known to the entrant.
Status check_beacon(const Windows& windows, const CheckRequest& request) {
  const int64_t targets = windows.all_targets();
  if (targets == 0)
    return invalid_argument("the evaluation has no target: a document of it needs two tokens at least");
  if (!request.beacon.empty() || std::min(request.cuts, request.sums) >= targets) return {};
  return invalid_argument(fmt::format(
      "--cuts {} and --sums {} draw from {} targets: --beacon needs a public text that is younger "
      "than the entry, such as the numbers of a lottery, or the entrant knows what is drawn",
      request.cuts, request.sums, targets));
}

Status check_opened(const Context& context, const Track& track, const Evaluation& evaluation,
                    const Entry& entry, const CheckRequest& request, CheckResult& out) {
  io::FileSystem& fs = context.fs;
  check_chain_rules(entry, track, out.refusals);
  check_tokenizer_file(fs, entry, track, out.refusals);
  // What its own tokenizer makes of a text is not known before it runs.
  if (std::any_of(out.refusals.begin(), out.refusals.end(),
                  [](const Refusal& refusal) { return refusal.rule == Rule::kTokenizer; }))
    return {};
  const Context its = with_models(context, entry);
  RETURN_IF_ERROR(check_whole(context, entry, out));
  auto opened = open_run(its, entry);
  if (!opened.ok() && !is_of_entry(opened.error())) return opened.error();
  if (!opened.ok()) {
    // Mostly the bundle's finding, which is there.
    if (out.counts()) out.refusals.push_back({rule_of(opened.error()), opened.error().message()});
    return {};
  }
  const audit::RecordedRun& run = *opened;
  ASSIGN_OR_RETURN(const EvaluationTokens tokens, encode(fs, evaluation, *run.tokenizer));
  const Status read = check_evaluation_text(fs, entry, evaluation, tokens, out.refusals);
  const Result<int64_t> rows = read.ok() ? rows_of_data(fs, entry) : read.error();
  if (!rows.ok() && !is_of_entry(rows.error())) return rows.error();
  if (!rows.ok()) out.refusals.push_back({Rule::kBundle, "it has no ledger: " + rows.error().message()});
  ASSIGN_OR_RETURN(std::optional<ScoreProgram> score, open_score(fs, entry, run, out.refusals));
  if (!score) return {};
  check_program_rules(run, entry.is_foreign, *score, track, window_rows(tokens.documents, score->length()),
                      rows.ok() ? *rows : 0, out.flops, out.refusals);
  if (!out.counts()) return {};
  {
    ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Engine> engine, context.engine());
    RETURN_IF_ERROR(check_memory(*engine, run, *score, request.memory, out.refusals));
  }
  check_windows(tokens, score->length(), request, out.refusals);
  if (!out.counts()) return {};
  const Windows windows = make_windows(tokens.documents, score->length());
  RETURN_IF_ERROR(check_beacon(windows, request));
  ASSIGN_OR_RETURN(out.replayed, replay_entry(its, entry, run, track,
                                              {request.cache, out.challenge, request.on_step}, out.refusals));
  out.open.insert(out.open.end(), out.replayed->open.begin(), out.replayed->open.end());
  if (!out.counts()) return {};
  RETURN_IF_ERROR(
      score_text(context, entry, *score, windows, evaluation, request, run.tokenizer->vocab_size(), out));
  if (out.counts()) add_open(*out.code, request, out);
  return {};
}

}  // namespace

bool CheckResult::is_final() const {
  return counts() || std::any_of(refusals.begin(), refusals.end(),
                                 [](const Refusal& refusal) { return !is_of_machine(refusal.rule); });
}

Result<CheckResult> check_entry(const Context& whole_context, const Track& track, const Board* board,
                                const CheckRequest& request) {
  if (request.cuts < 1 || request.sums < 1 || request.memory < 1)
    return invalid_argument("--cuts, --sums and --memory must be 1 or more");
  if (track.steps && request.beacon.empty())
    return invalid_argument(
        fmt::format("the track {} draws {} steps: --beacon needs a public text that is "
                    "younger than the entry, such as the numbers of a lottery",
                    track.name, *track.steps));
  if (request.cache.empty())
    return invalid_argument(
        "--cache needs the token store of the track's data: the paths in an entry's own configuration "
        "are not opened");
  ASSIGN_OR_RETURN(const Evaluation evaluation, read_evaluation(whole_context.fs, track));
  ConfinedFiles files(whole_context.fs, {request.entry, request.cache});
  const Context context = whole_context.in(files);
  ASSIGN_OR_RETURN(const bool there, context.fs.exists(request.entry));
  if (!there) return not_found(fmt::format("there is no {}", request.entry));
  CheckResult out;
  auto opened = open_entry(context, request.entry);
  if (!opened.ok()) {
    if (!is_of_entry(opened.error())) return opened.error();
    const bool none = !bundle::is_bundle(context.fs, request.entry);
    out.refusals.push_back(
        {none ? Rule::kNotABundle : rule_of(opened.error()),
         none
             ? fmt::format("{} is no bundle (ostro publish), so nothing in it can be replayed", request.entry)
             : opened.error().message()});
    return out;
  }
  const Entry& entry = *opened;
  out.head = entry.chain.head(), out.bundle = entry.hash, out.is_foreign = entry.is_foreign;
  out.step = entry.chain.last_step();
  if (const std::string* name = entry.chain.find_checkpoint(out.step); name != nullptr) out.state = *name;
  std::string head;
  if (board != nullptr) {
    ASSIGN_OR_RETURN(const Copies copies, board->copies_of(whole_context.fs, entry));
    if (!copies.copy.empty()) out.refusals.push_back({Rule::kCopy, copies.copy});
    out.shared = copies.shared;
    ASSIGN_OR_RETURN(head, board->head_behind(entry.hash));
  } else {
    out.open.push_back("whether it is a copy of another entry: no board was given (--board)");
  }
  out.challenge = draw_challenge(entry.hash, head, request.beacon);
  RETURN_IF_ERROR(check_opened(context, track, evaluation, entry, request, out));
  return out;
}

std::string check_text(const CheckResult& result, const Track& track) {
  std::string out;
  if (result.counts())
    out += fmt::format("counts: {:.6f} bits per byte on the track {}\n", result.bits_per_byte, track.name);
  for (const Refusal& refusal : result.refusals)
    out += fmt::format("refused: {}: {}\n", rule_name(refusal.rule), refusal.text);
  if (!result.head.empty()) out += fmt::format("run hash: {}\n", result.head);
  for (const std::string& line : result.shared) out += line + "\n";
  if (result.replayed && result.counts()) {
    const Replayed& r = *result.replayed;
    out += r.drawn.empty() ? fmt::format("replayed: all {} steps\n", r.steps)
                           : fmt::format("replayed: {} of {} steps; the first, the last, and drawn: {}\n",
                                         r.replayed, r.steps, fmt::join(r.drawn, ", "));
  }
  if (result.flops > 0) out += fmt::format("training: {:.6g} of {:.6g} FLOPs\n", result.flops, track.flops);
  if (result.is_foreign && result.counts())
    out += "model: not one of this program's; its programs alone were run\n";
  if (result.code && result.counts()) {
    const CodeCheck& c = *result.code;
    out += fmt::format(
        "score: {} targets; later tokens changed at {} of them, all targets summed at {}: {:.9f} to "
        "{:.9f}\n",
        c.targets, c.cuts, c.sums, c.least_sum, c.most_sum);
    out += fmt::format(
        "rounding in f32 allows a sum to differ from 1 by {:.3g}, so it can be worth {:.3g} bits a "
        "token at most\n",
        c.allowed, c.allowed / std::numbers::ln2);
  }
  for (const std::string& line : result.open) out += "not shown: " + line + "\n";
  return out;
}

}  // namespace ostro::board
