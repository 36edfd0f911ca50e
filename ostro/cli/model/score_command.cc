// ostro score
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "ostro/cli/main/commands.h"
#include "ostro/eval/requests.h"
#include "ostro/eval/text_model_of.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

// Standard input in lines: as many at a time as have come, so that a program that asks one question gets its
// answer, and one that asks many at once gets them from large batches.
class IncomingLines {
 public:
  // At least one line, but at the end none.
  Result<std::vector<std::string>> next() {
    std::vector<std::string> out;
    while (out.empty() && !ended_) {
      char bytes[1 << 16];
      const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return io_error(fmt::format("standard input: cannot read: {}", std::strerror(errno)));
      ended_ = n == 0;
      waiting_.append(bytes, static_cast<size_t>(n));
      if (ended_ && !waiting_.empty()) waiting_ += '\n';
      for (size_t end = waiting_.find('\n'); end != std::string::npos; end = waiting_.find('\n')) {
        std::string line = waiting_.substr(0, end);
        waiting_.erase(0, end + 1);
        if (line.find_first_not_of(" \t\r") != std::string::npos) out.push_back(std::move(line));
      }
    }
    return out;
  }

 private:
  std::string waiting_;
  bool ended_ = false;
};

Result<int64_t> serve(eval::TextModel& model) {
  IncomingLines lines;
  int64_t failed = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::vector<std::string> asked, lines.next());
    if (asked.empty() || stdout_closed()) return failed;
    std::string answers;
    for (const std::string& answer : eval::answer_requests(model, asked, failed)) answers += answer + "\n";
    RETURN_IF_ERROR(write_stdout(answers));
  }
}

}  // namespace

int score_command(Args args) {
  std::string checkpoint, tokenizer;
  int64_t batch_tokens = 4096;
  bool unchecked = false;
  trained::UseOptions use;
  args.summary(
      "Answers requests from standard input, one JSON object a line, until it ends; an answer a line, in "
      "order:\n"
      "  {\"context\": S, \"continuation\": S}     log_prob, greedy (is it the most likely one?), tokens\n"
      "  {\"text\": S, \"stride\": n}              log_prob, tokens, bytes of a whole document\n"
      "  {\"prompt\": S, \"until\": [S], \"max_tokens\": n, \"temperature\": t, \"seed\": s}\n"
      "                                        text, tokens, stopped_by\n"
      "  {\"messages\": [...], ...}               the same for a conversation, by the chat template "
      "(\"tools\": [...])\n"
      "  {\"chat\": [...], \"add_generation_prompt\": b}  text: what the chat template makes of it\n"
      "An \"id\" comes back. A request that cannot be answered gets an \"error\", and the exit code is 1 "
      "then.");
  args.option("--checkpoint", &checkpoint, "K", trained::kWhereHelp, Args::kRequired);
  args.option("--tokenizer", &tokenizer, "T", "tokenizer.json, when the checkpoint is not in its run");
  args.option("--batch_tokens", &batch_tokens, "N",
              "positions that are computed together; changes no answer");
  args.option("--mp", &use.mp, "P", trained::kUseMpHelp);
  args.option("--seq_len", &use.seq_len, "N", trained::kUseSeqLenHelp);
  args.flag("--unchecked", &unchecked, trained::kUncheckedHelp);
  args.device();
  if (const auto code = args.parse()) return *code;
  if (batch_tokens < 1)
    return report_error(invalid_argument(fmt::format("--batch_tokens {}: use 1 or more", batch_tokens)));
  const auto engine = args.context().engine();
  if (!engine.ok()) return report_error(engine.error());
  auto loaded = trained::load_model(args.context().fs, checkpoint, tokenizer, args.context().models,
                                    trained::trust(unchecked), use);
  if (!loaded.ok()) return report_error(loaded.error());
  auto model = eval::text_model(args.context().fs, std::move(*loaded), **engine, batch_tokens);
  if (!model.ok()) return report_error(model.error());
  const auto failed = serve(*model);
  if (!failed.ok()) return report_error(failed.error());
  return *failed == 0 ? kExitOk : kExitFailed;
}

}  // namespace ostro::cli
