"""Another user of this machine, for tests of what must not depend on who runs a program: one with another number, no groups, and
no file of the test but those that it is given.

    words, reason = other_user(program)    words in front of a command; where the test cannot become another user None, and why
    give(folder, top)                      makes a folder that user's, and lets it pass through `top`
    imports(words, env, module)            whether its python3 has a module
"""
import os
import shutil
import subprocess

NUMBER = 65534  # "nobody", or no user at all


def other_user(*readable):
    if os.geteuid() != 0:
        return None, "only root can become another user"
    if shutil.which("setpriv") is None:
        return None, "there is no setpriv"
    words = ["setpriv", f"--reuid={NUMBER}", f"--regid={NUMBER}", "--clear-groups", "--"]
    for file in readable:
        if subprocess.run([*words, "test", "-r", file], check=False, capture_output=True).returncode != 0:
            return None, f"the user {NUMBER} cannot read {file}"
    return words, ""


def give(folder, top):
    top.chmod(0o755)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NUMBER, NUMBER, follow_symlinks=False)


def imports(words, env, module):
    """Whether that user's python3 has a module, which may lie in a folder that it cannot enter."""
    return subprocess.run([*words, "python3", "-c", f"import {module}"], env=env, check=False, capture_output=True).returncode == 0
