// kWandbScript: the Python program that passes metrics on to the package `wandb`.
//
// Standard input: a line with the arguments of wandb.init, then a line {"step": ..., "metrics": {...}} for
// each call of log(). Standard output: one line, "ready" with the place of the run, or what is wrong. It ends
// when its input does.
#pragma once

namespace ostro::run {

inline constexpr const char* kWandbScript = R"py(
import json, os, sys
answer = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what the package prints
def say(text):
    answer.write(" ".join(str(text).split()) + "\n")
    answer.close()
try:
    options = json.loads(sys.stdin.readline())
    import wandb
    run = wandb.init(**options)
except ImportError as error:
    say(f"{sys.executable} has no package wandb ({error}); install it with `{sys.executable} -m pip install wandb`, or name another Python by OSTRO_PYTHON")
    sys.exit(1)
except BaseException as error:
    say(f"wandb.init: {type(error).__name__}: {error}")
    sys.exit(1)
say("ready " + str(run.dir if getattr(run, "offline", True) else run.url))
for line in sys.stdin:
    entry = json.loads(line)
    run.log({name: float("nan") if value is None else value for name, value in entry["metrics"].items()}, step=entry["step"])
run.finish()
)py";

}  // namespace ostro::run
