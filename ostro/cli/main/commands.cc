#include "ostro/cli/main/commands.h"

#include "ostro/lab_commands/lab_command.h"

namespace ostro::cli {

std::span<const Command> commands() {
  static constexpr Command kCommands[] = {
      {"init", "write a configuration for a folder of text", init_command},
      {"config", "check a configuration, or take over one of another trainer", config_command},
      {"tokenizer", "train a byte-level BPE tokenizer; encode and decode text", tokenizer_command},
      {"train", "train a model, or go on with an interrupted run", train_command},
      {"launch", "train on several processes", launch_command},
      {"fork", "begin a run with the state of another one", fork_command},
      {"log", "show where a run comes from and what changed in it", log_command},
      {"status", "show how a run is doing: step, speed, goodput, workers", status_command},
      {"watch", "watch a run or a lab while it goes on, in this terminal or a browser", watch_command},
      {"verify", "replay a stretch of a run and compare its hash chain", verify_command},
      {"publish", "write a run's model with all that a stranger needs to check it", publish_command},
      {"hash", "print the run hash: the head of a run's hash chain", hash_command},
      {"inspect", "show what a run or a checkpoint holds", inspect_command},
      {"diff", "show which parameters two checkpoints do not share, and by how much", diff_command},
      {"eval", "loss of a checkpoint on held-out text; bits per byte, choices and answers of tasks",
       eval_command},
      {"score", "answer requests, a line of JSON each: how likely a text is, what comes next", score_command},
      {"sample", "continue a text with a trained model", sample_command},
      {"serve", "answer OpenAI's API with a trained model, with receipts", serve_command},
      {"grad", "gradients of one step's batch, for comparison with other frameworks", grad_command},
      {"import", "make a checkpoint of a model that another program wrote", import_command},
      {"export", "write a model as a Hugging Face directory", export_command},
      {"program", "print the programs of a training step", program_command},
      {"data", "build the token store; show the batch of a step", data_command},
      {"lab", "do an experiment of several steps, and report on it", lab_command},
      {"selftest", "train three tiny models and compare two hashes with those of every machine",
       selftest_command},
      {"devices", "show the processors and GPUs of this machine, and what GPUs lack", devices_command},
      {"coordinator", "decide who is in a run on several machines", coordinator_command},
      {"worker", "one worker of a run on several processes", worker_command},
      {"check", "check machines before a run, or the files of a Grok-1 checkpoint", check_command},
      {"simulate", "say how long a step takes on many hosts, and what limits it", simulate_command},
      {"completion", "print a script that completes words in a shell", completion_command},
  };
  return kCommands;
}

std::string meant_command(const std::string& word) {
  struct Meant {
    const char *word, *command;
  };
  static constexpr Meant kMeant[] = {
      {"resume", "ostro train with the same configuration: the run goes on from its newest checkpoint"},
      {"continue", "ostro train with the same configuration: the run goes on from its newest checkpoint"},
      {"run", "ostro train --config FILE"},
      {"pretrain", "ostro train --config FILE"},
      {"fit", "ostro train --config FILE"},
      {"finetune", "ostro train --config FILE --initialize_from MODEL (docs/guide/finetune.md)"},
      {"sft", "ostro train --config FILE --initialize_from MODEL (docs/guide/finetune.md)"},
      {"dpo", "ostro train with objective.type: dpo (docs/guide/finetune.md)"},
      {"report", "ostro inspect RUN --html FILE"},
      {"show", "ostro inspect RUN"},
      {"info", "ostro inspect RUN"},
      {"plot", "ostro inspect RUN --plot"},
      {"logs", "ostro log RUN shows a run's history; the messages are in log.txt of the run directory"},
      {"branch", "ostro fork RUN --step N --out RUN2"},
      {"history", "ostro log RUN"},
      {"lineage", "ostro log RUN"},
      {"monitor", "ostro watch RUN"},
      {"chat", "ostro sample --checkpoint RUN --prompt TEXT"},
      {"generate", "ostro sample --checkpoint RUN --prompt TEXT"},
      {"infer", "ostro sample --checkpoint RUN --prompt TEXT"},
      {"complete", "ostro sample --checkpoint RUN --prompt TEXT"},
      {"server", "ostro serve RUN"},
      {"api", "ostro serve RUN"},
      {"evaluate", "ostro eval"},
      {"test", "ostro eval, or ostro selftest for the program itself"},
      {"benchmark", "ostro eval --tasks FILE"},
      {"gpu", "ostro devices"},
      {"gpus", "ostro devices"},
      {"cuda", "ostro devices"},
      {"nvidia-smi", "ostro devices"},
      {"tokenize", "ostro tokenizer encode, or ostro data build for the texts of a configuration"},
      {"preprocess", "ostro data build --config FILE"},
      {"prepare", "ostro data build --config FILE"},
      {"convert", "ostro import or ostro export"},
      {"load", "ostro import"},
      {"save", "ostro export"},
      {"push", "ostro publish RUN --out DIR (or export --to hf), and sending that directory"},
      {"upload", "ostro publish RUN --out DIR (or export --to hf), and sending that directory"},
      {"release", "ostro publish RUN --out DIR"},
      {"sign", "ostro publish RUN --out DIR --sign KEY.pem"},
      {"bundle", "ostro publish RUN --out DIR"},
      {"download", "hf download NAME, then ostro import"},
      {"compare", "ostro diff A B, of checkpoints; ostro hash RUN, of runs"},
      {"audit", "ostro verify RUN"},
      {"replay", "ostro verify RUN"},
      {"reproduce", "ostro verify RUN"},
      {"new", "ostro init FOLDER"},
      {"create", "ostro init FOLDER"},
      {"start", "ostro train --config FILE"},
      {"stop", "Ctrl-C, or kill -TERM: the run saves and stops"},
      {"predict", "ostro simulate --hosts N --config FILE"},
      {"version", "ostro --version"},
      {"configure", "ostro init FOLDER, or ostro config import FILE"},
      {"lora", "ostro train with adapter.type: lora (docs/guide/finetune.md)"},
  };
  for (const Meant& m : kMeant)
    if (word == m.word) return m.command;
  return {};
}

}  // namespace ostro::cli
