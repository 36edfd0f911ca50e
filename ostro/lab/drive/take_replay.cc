#include "ostro/lab/drive/take_replay.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/attest/replay_statement.h"
#include "ostro/chain/chain.h"
#include "ostro/experiment/journal/journal.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/drive/lab_lock.h"

namespace ostro::lab {

Result<TakenReplay> take_replay(const Context& context, const Plan& plan, const std::string& text,
                                const std::string& where) {
  ASSIGN_OR_RETURN(const auto lock, lock_lab(context.fs, plan));
  ASSIGN_OR_RETURN(const attest::ReplayStatement statement, attest::read_statement(text, where));
  ASSIGN_OR_RETURN(const LabState state, look_at(context, plan));
  const auto of = std::find_if(state.steps.begin(), state.steps.end(), [&](const StepState& s) {
    return s.step->kind->makes_run() && s.action == Action::kSkip && s.content == statement.run_hash;
  });
  if (of == state.steps.end())
    return invalid_argument(
        fmt::format("{}: is about the run {}, and no step of {} made a run with that hash", where,
                    short_hash(statement.run_hash), plan.file));
  ASSIGN_OR_RETURN(
      const chain::Chain chain,
      chain::read_chain(context.fs, io::join_path(state.made.at(of->step->name).folder, chain::kChainFile)));
  RETURN_IF_ERROR(attest::check_is_of(statement, chain, where));
  ASSIGN_OR_RETURN(Journal journal, Journal::open(context.fs, plan.directory()));
  TakenReplay out{of->step->name, statement.who(), statement.verified()};
  const Replay replay{of->fingerprint, out.who, out.verified, statement.is_whole(), text};
  out.is_new = std::none_of(journal.replays().begin(), journal.replays().end(), [&](const Replay& r) {
    return r.fingerprint == replay.fingerprint && r.statement == text;
  });
  if (out.is_new) RETURN_IF_ERROR(journal.add_replay(out.step, replay));
  return out;
}

}  // namespace ostro::lab
