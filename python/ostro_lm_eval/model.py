"""The model "ostro" of lm-evaluation-harness."""
import shutil

import lm_eval.models  # noqa: F401 (the other models stay known beside this one)
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model
from tqdm import tqdm

from ostro_lm_eval.scorer import Scorer, ScorerError

# What the harness passes for generation and what asks for nothing more than greedy or random choice.
KNOWN = {"until", "max_gen_toks", "max_new_tokens", "max_tokens", "do_sample", "temperature", "seed"}


@register_model("ostro")
class OstroLM(LM):
    """checkpoint: a run or a checkpoint. ostro: the program. tokenizer: tokenizer.json, when the checkpoint is not in its
    run. batch_tokens: positions that are computed together; no score depends on it, nor on the harness's batch_size."""

    def __init__(self, checkpoint, ostro="ostro", tokenizer=None, batch_tokens=None, batch_size=None, max_batch_size=None,
                 device=None, max_gen_toks=256, mp=None, seq_len=None):
        super().__init__()
        if shutil.which(ostro) is None:
            raise FileNotFoundError(f"{ostro}: no such program; name it with model_args ostro=PATH")
        words = []
        for name, value in (("--tokenizer", tokenizer), ("--batch_tokens", batch_tokens), ("--mp", mp), ("--seq_len", seq_len)):
            words += [] if value is None else [name, value]
        self.max_gen_toks = int(max_gen_toks)
        self.checkpoint = str(checkpoint)
        self.scorer = Scorer(checkpoint, ostro, words)

    @property
    def tokenizer_name(self):
        """For the names under which the harness keeps what it has asked, which depends on the template."""
        return self.checkpoint.replace("/", "__")

    def chat_template(self, chat_template=False):
        """What the harness writes into its results about the template: the model has one, of which Ostro knows the text."""
        if isinstance(chat_template, str) and chat_template != "default":
            raise ValueError(f"chat template {chat_template!r}: ostro applies the model's own; use --apply_chat_template alone")
        return "the chat template of " + self.checkpoint if chat_template else ""

    def apply_chat_template(self, chat_history, add_generation_prompt=True):
        """The text of a conversation. Without a generation prompt it ends with the last message, which the model goes on with.
        A template that takes no system message gets none, as in the harness's own model for transformers."""
        def render(messages):
            [answer] = self.scorer.ask([{"chat": messages, "add_generation_prompt": add_generation_prompt}])
            return answer["text"]
        try:
            return render(chat_history)
        except ScorerError:
            without = [message for message in chat_history if message["role"] != "system"]
            if len(without) == len(chat_history):
                raise
            return render(without)

    def _ask(self, requests, what, disable_tqdm):
        return list(tqdm(self.scorer.ask(requests), total=len(requests), desc=what, disable=disable_tqdm))

    def loglikelihood(self, requests, disable_tqdm=False):
        pairs = [request.args for request in requests]
        answers = self._ask([{"context": context, "continuation": continuation} for context, continuation in pairs],
                            "loglikelihood", disable_tqdm)
        out = []
        for pair, answer in zip(pairs, answers):
            # A model that cannot generate does not know what greedy generation gives.
            out.append((answer["log_prob"], bool(answer["greedy"])))
            self.cache_hook.add_partial("loglikelihood", pair, out[-1])
        return out

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        texts = [request.args[0] for request in requests]
        out = [answer["log_prob"]
               for answer in self._ask([{"text": text} for text in texts], "loglikelihood_rolling", disable_tqdm)]
        for text, value in zip(texts, out):
            self.cache_hook.add_partial("loglikelihood_rolling", (text,), value)
        return out

    def generate_until(self, requests, disable_tqdm=False):
        asked = [self._generation(*request.args) for request in requests]
        out = [answer["text"] for answer in self._ask(asked, "generate_until", disable_tqdm)]
        for request, text in zip(requests, out):
            self.cache_hook.add_partial("generate_until", request.args, text)
        return out

    def _generation(self, prompt, given):
        unknown = sorted(set(given) - KNOWN)
        if unknown:
            raise ValueError(f"generation_kwargs {', '.join(unknown)}: ostro knows {', '.join(sorted(KNOWN))}")
        until = given.get("until") or []
        lengths = [given[name] for name in ("max_gen_toks", "max_new_tokens", "max_tokens") if given.get(name)]
        temperature = float(given.get("temperature") or 0.0) if given.get("do_sample", True) else 0.0
        return {"prompt": prompt, "until": [until] if isinstance(until, str) else [stop for stop in until if stop],
                "max_tokens": int(lengths[0]) if lengths else self.max_gen_toks, "temperature": temperature,
                "seed": int(given.get("seed", 0))}
