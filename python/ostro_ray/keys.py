"""Keys for an object store that workers get of the launcher's credentials file, and get again when it has others.

The nodes need not have that file. Keys in the environment cannot change, and are passed on with it."""

import configparser
import os

_NAMES = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


def of_file():
    """The text of a credentials file that has the keys of AWS_PROFILE in AWS_SHARED_CREDENTIALS_FILE, and no others. None: the environment has keys or names
    no file, or that has no such keys, as while it is being written."""
    path = os.environ.get("AWS_SHARED_CREDENTIALS_FILE")
    if not path or os.environ.get("AWS_ACCESS_KEY_ID"):
        return None
    profile = os.environ.get("AWS_PROFILE") or "default"
    parser = configparser.RawConfigParser(default_section="", strict=False)
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
        found = {name: parser.get(profile, name, fallback="") for name in _NAMES}
    except (OSError, ValueError, configparser.Error):
        return None
    if not found["aws_access_key_id"] or not found["aws_secret_access_key"]:
        return None
    return "".join([f"[{profile}]\n", *(f"{name} = {value}\n" for name, value in found.items() if value)])
