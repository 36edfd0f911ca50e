from ostro.model import Answer as Answer, Model as Model, Score as Score, load as load
from ostro.module import Error as Error, version as version
from ostro.run import Run as Run, Step as Step, Verdict as Verdict, train as train, verify as verify
from ostro.server import Server as Server, serve as serve

__all__ = ["Answer", "Error", "Model", "Run", "Score", "Server", "Step", "Verdict", "load", "serve", "train", "verify", "version"]
