// ostro verify
#include <optional>

#include "ostro/cli/main/commands.h"
#include "ostro/cli/run/verify_forms.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {

int verify_command(Args args) {
  VerifyAsked asked;
  audit::AuditOptions& options = asked.audit;
  args.summary(
      "Checks a run's record. Compares every checkpoint with the chain, traces the programs of the\n"
      "configuration and compares them with the chain's, then replays from the newest checkpoint at or "
      "before\n"
      "--from_step that the chain names and that is fine (without any, from the seed's initial state) to\n"
      "--to_step, and compares every chain entry, and the temporary checkpoints of these steps.\n"
      "The first line is the verdict, and so is the exit code:\n"
      "  0 equal         all that was compared is the same\n"
      "  1 differs       the record contradicts itself, the replay or the run hash that was given\n"
      "  3 incomplete    nothing differs, but a part is missing: checkpoints, or the end of the chain\n"
      "  4 cannot check  nothing differs, but this program could not compare it: no data at hand, another\n"
      "                  version's programs, a model that it does not have\n"
      "2 is a command line that makes no sense.\n"
      "With --model it computes every file of an exported model again from the record's checkpoint, and\n"
      "compares the bytes; no step is replayed. Given a model's directory alone it compares the files with\n"
      "the model's provenance.json, and says what more is needed. A run's directory that has a model in it,\n"
      "too, is checked as both.\n"
      "Of a bundle (ostro publish) it compares every file, the signature, the record, the weights and the\n"
      "ledger of the data with one another; no step is replayed. Of a published lab (ostro lab publish) it\n"
      "checks all bundles, the journal, the registry and the outputs, and makes the record again; "
      "--run_hash\n"
      "is its lab hash.\n"
      "With --receipt it checks an answer of ostro serve: a model is run once over prompt and answer. With\n"
      "--receipts it checks the chain and the signatures of a server's receipts, and those that are drawn.");
  std::optional<std::string> run;
  args.positional("RUN", &run,
                  "run directory, the directory of a model, a bundle (ostro publish) or a published lab");
  args.option("--model", &asked.model, "DIR",
              "the directory of a model that was made of RUN, which may be a run, a checkpoint or an import");
  args.option("--from_step", &asked.from, "A",
              "step to begin at or before (default 0: the seed's initial state)");
  args.option("--to_step", &asked.to, "B", "step to end at (default: the last of the chain)");
  args.option(
      "--run_hash", &options.run_hash, "H",
      "the run hash that was published: the run must have it. A chain that was written anew for a\n"
      "forged run fits that run; only the hash, or a replay, tells. With --receipts: the hash of the last "
      "receipt");
  args.option(
      "--parent", &options.parent, "RUN",
      "of a fork: the run that it goes on with. Its chain must have the entry that the fork's genesis\n"
      "names, and the fork's first state; otherwise the copy of that chain in RUN/parent is taken");
  args.option("--cache", &options.replay.cache, "DIR",
              "the token store, when it is no longer where the run used it (data.cache_dir)");
  args.flag("--no_replay", &options.no_replay,
            "only checks chain, programs and checkpoints; needs no token store");
  args.flag("--stored_program", &options.replay.stored_programs,
            "where this version traces other programs from the configuration, replays those of program.ir;\n"
            "that they are the configuration's, it cannot say");
  args.option(
      "--sample", &asked.count, "K",
      "replays only K steps, which --challenge draws, each from the checkpoint before it; says before the\n"
      "work what it costs and what it would find. RUN may be a published bundle. With --receipts: K "
      "receipts");
  args.option("--challenge", &asked.challenge, "TEXT",
              "that was chosen after the run hash was published, e.g. the numbers of a lottery");
  args.option("--leaf", &asked.leaf, "STEP:LEAF",
              "replays only one leaf (microbatch) of a step, and proves it against the chain's Merkle root");
  args.option(
      "--rows", &asked.rows, "FILE",
      "with --leaf: the leaf's rows with their proofs, in place of the token store (ostro data prove)");
  args.flag("--dry_run", &asked.only_price,
            "with --sample or --leaf: only says what it costs and would find");
  args.option("--statement", &asked.statement.file, "FILE",
              "where steps were replayed and all is equal: write a statement that says so, for ostro lab "
              "replayed");
  args.option("--by", &asked.statement.by, "NAME", "with --statement: who replayed it");
  args.option("--sign", &asked.statement.sign, "KEY",
              "with --statement: sign it with this private key (openssl genpkey -algorithm ed25519)");
  args.flag("--json", &asked.json, "print the result as JSON");
  args.flag("--bundle", &asked.as_bundle, "RUN is a bundle, also where it has lost its bundle.json");
  args.option("--key", &asked.bundle.key, "PUB",
              "of a bundle or a receipt: the public key that must have signed it (PEM)");
  args.option("--time_ca", &asked.bundle.time_authority, "CA",
              "of a bundle: certificates (PEM) that its time stamp must follow from");
  args.option("--receipt", &asked.receipt.path, "FILE",
              "in place of RUN: the receipt of an answer (\"receipt\" of a choice), with its opening");
  args.option("--receipts", &asked.receipt.log, "FILE",
              "in place of RUN: the receipts.jsonl of a server; --sample draws so many of its receipts, and\n"
              "--checkpoint and --openings let it choose their answers again");
  args.option("--openings", &asked.receipt.openings, "FOLDER",
              "with --receipts: files of receipts with their openings, as clients saved them");
  args.option("--checkpoint", &asked.receipt.checkpoint, "K",
              "of a receipt: the checkpoint that it names, or the run whose newest it is");
  args.option("--tokenizer", &asked.receipt.tokenizer, "T",
              "of a receipt: tokenizer.json, when the checkpoint is not in its run");
  args.option("--adapter", &asked.receipt.adapters, "NAME=DIR",
              "of a receipt: the adapter with which the checkpoint was served, as of ostro serve");
  args.device();
  if (auto code = args.parse()) return *code;
  const int given =
      (run ? 1 : 0) + (asked.receipt.path.empty() ? 0 : 1) + (asked.receipt.log.empty() ? 0 : 1);
  if (given != 1)
    return report_error(invalid_argument(
        given > 1 ? "--receipt and --receipts stand in place of RUN; leave all but one out"
                  : "RUN is required: a run, a model or a bundle; or --receipt FILE, or --receipts FILE"));
  asked.run = run.value_or("");
  const auto told = verify(args.context(), std::move(asked));
  if (!told.ok()) return report_error(told.error());
  const Status written = write_stdout(told->text);
  return written.ok() ? told->code : report_error(written.error());
}

}  // namespace ostro::cli
