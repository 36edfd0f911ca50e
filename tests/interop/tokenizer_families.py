"""Tokenizers of the kinds that language models are trained with, made on the spot from a corpus: none is downloaded.

families(corpus) yields Family records: a tokenizer.json or a SentencePiece .model, and strings worth having in the text.
What makes a family are its components and flags; the vocabularies are small, so that all parts are met in little text.
"""
import dataclasses
import io
import json

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = {
    "deepseek v3": [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
                    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
                    r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""],
    "deepseek v2": ["[\r\n]", "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6]+",
                    "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+", r"\s+$",
                    "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"],
}
SPACE = "\u2581"


@dataclasses.dataclass
class Family:
    name: str
    file: str          # tokenizer.json or tokenizer.model
    content: bytes
    words: list        # strings that its added tokens or rules are about

    def peer(self):
        if self.file.endswith(".json"):
            return Tokenizer.from_str(self.content.decode())
        return sentencepiece.SentencePieceProcessor(model_proto=self.content)


def from_tokenizers(name, tokenizer, words=(), edit=None):
    content = json.loads(tokenizer.to_str())
    if edit:
        edit(content)
    return Family(name, "tokenizer.json", json.dumps(content).encode(), list(words))


def byte_level_bpe(corpus, pre_tokenizer, size=3000, normalizer=None, specials=("<|endoftext|>",)):
    tokenizer = Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(specials), show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return tokenizer


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior=behavior, invert=invert),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def template(tokenizer, single, names):
    return processors.TemplateProcessing(single=single, pair=single + " $B", special_tokens=[(n, tokenizer.token_to_id(n)) for n in names])


def byte_level_families(corpus):
    yield from_tokenizers("gpt2", byte_level_bpe(corpus, pre_tokenizers.ByteLevel(add_prefix_space=False)), ["<|endoftext|>"])

    specials = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    llama3 = byte_level_bpe(corpus, split(CL100K), specials=specials)
    llama3.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                                 template(llama3, "<|begin_of_text|> $A", ["<|begin_of_text|>"])])

    def ignore_merges(content):
        content["model"]["ignore_merges"] = True
        vocab = content["model"]["vocab"]
        for token in ["\u0120helloworld", "qqqq"]:  # no merge makes these
            vocab.setdefault(token, len(vocab))

    yield from_tokenizers("llama3, marin", llama3, specials + [" helloworld", "qqqq"], ignore_merges)

    tekken_specials = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]"]
    tekken = byte_level_bpe(corpus, split(TEKKEN), specials=tekken_specials)
    tekken.post_processor = template(tekken, "<s> $A", ["<s>"])
    yield from_tokenizers("mistral tekken", tekken, tekken_specials + ["helloWorldHELLO"], ignore_merges)

    qwen_words = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "e\u0301", "\u1112\u1161\u11ab", "\u212b"]
    qwen = byte_level_bpe(corpus, split(QWEN2), normalizer=normalizers.NFC(), specials=qwen_words[:3])
    qwen.add_tokens([AddedToken("<think>", normalized=False), AddedToken("</think>", normalized=False)])
    yield from_tokenizers("qwen2, qwen3", qwen, qwen_words)

    olmo_words = ["|||IP_ADDRESS|||", "<|padding|>", "<|endoftext|>", "  ", " " * 5, " " * 24, "e\u0301 "]
    olmo = byte_level_bpe(corpus, pre_tokenizers.ByteLevel(add_prefix_space=False), normalizer=normalizers.NFC(),
                          specials=olmo_words[:3])
    olmo.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    yield from_tokenizers("olmo (gpt-neox)", olmo, olmo_words)

    olmo2 = byte_level_bpe(corpus, split(CL100K, "removed", True))
    yield from_tokenizers("olmo2", olmo2, ["<|endoftext|>"])

    for name, patterns in DEEPSEEK.items():
        cuts = [pre_tokenizers.Split(Regex(p), behavior="isolated") for p in patterns]
        if name == "deepseek v2":
            cuts.append(pre_tokenizers.Digits(individual_digits=True))
        deepseek = byte_level_bpe(corpus, pre_tokenizers.Sequence(
            [*cuts, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
        yield from_tokenizers(name, deepseek, ["<|endoftext|>", "123456", "\u4f60\u597d\u3042", "x)y", " \n \n", "  "])

    digits = byte_level_bpe(corpus, pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)]))
    digits.post_processor = processors.RobertaProcessing(("<|endoftext|>", 0), ("<|endoftext|>", 0), trim_offsets=False)
    yield from_tokenizers("digits, punctuation, byte level, roberta", digits, ["<|endoftext|>", "12\u0663\u00bd"])


def train_sentencepiece(corpus, kind, size=2500, **options):
    """Of some of the corpus, which is enough for a small vocabulary and quick."""
    model = io.BytesIO()
    settings = {"vocab_size": size, "hard_vocab_limit": False, "model_type": kind, "minloglevel": 3, "num_threads": 2,
                "max_sentence_length": 1 << 20, "character_coverage": 0.999} | options
    lines = [line for text in corpus for line in text.split("\n") if line][:5 * size]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, **settings)
    return model.getvalue()


def pieces_of(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.get_piece_size())]


def merges_of(pieces):
    """Merges that make a Hugging Face BPE of a SentencePiece one: every way to cut a piece in two, by the piece's score."""
    ids = {piece: i for i, (piece, _) in enumerate(pieces)}
    merges = []
    for piece, score in pieces:
        cuts = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in ids and piece[i:] in ids]
        merges += [(left, right, score) for left, right in sorted(cuts, key=lambda c: (ids[c[0]], ids[c[1]]))]
    return [(left, right) for left, right, _ in sorted(merges, key=lambda m: -m[2])]


def char_bpe(model):
    pieces = pieces_of(model)
    tokenizer = Tokenizer(models.BPE({p: i for i, (p, _) in enumerate(pieces)}, merges_of(pieces), unk_token="<unk>",
                                     fuse_unk=True, byte_fallback=True))
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in ("<unk>", "<s>", "</s>")])
    tokenizer.post_processor = template(tokenizer, "<s> $A", ["<s>"])
    return tokenizer


def llama_decoder():
    return decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def charsmap_of(model):
    from make_normalization_tables import find_field
    return find_field(find_field(model, 3), 2)


def character_families(corpus, size=2500):
    words = ["<s>", "</s>", "<unk>", SPACE, SPACE * 3, "  ", " " * 9, "\u2581a"]
    llama = train_sentencepiece(corpus, "bpe", size, byte_fallback=True, normalization_rule_name="identity", split_digits=True,
                                remove_extra_whitespaces=False, allow_whitespace_only_pieces=True)
    yield Family("llama2 .model", "tokenizer.model", llama, words)

    llama2 = char_bpe(llama)
    llama2.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    llama2.decoder = llama_decoder()
    yield from_tokenizers("llama2, mistral v1", llama2, words)
    mistral = char_bpe(llama)
    mistral.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, "first", split=False)
    mistral.decoder = llama_decoder()
    mistral.add_tokens([AddedToken("[INST]", normalized=False), AddedToken("[/INST]", normalized=False)])
    yield from_tokenizers("mistral v3", mistral, words + ["[INST]", "[/INST]"])

    def some_bytes(content):
        for byte in ("<0xC3>", "<0xF0>", "<0x98>"):
            i = content["model"]["vocab"].pop(byte)
            content["model"]["vocab"]["gone" + byte] = i

    yield from_tokenizers("llama2 with few byte tokens", llama2, words, some_bytes)
    yield from_tokenizers("llama2 without byte fallback", llama2, words, lambda c: c["model"].update(byte_fallback=False))
    yield from_tokenizers("llama2, unknown not fused", llama2, words,
                          lambda c: c["model"].update(byte_fallback=False, fuse_unk=False, ignore_merges=True))

    gemma_words = ["<start_of_turn>", "<end_of_turn>", "\n\n", "\n" * 5, "\t\t", SPACE * 4, " " * 6, "<b>"]
    gemma = train_sentencepiece(corpus, "bpe", size, byte_fallback=True, normalization_rule_name="identity", split_digits=True,
                                remove_extra_whitespaces=False, add_dummy_prefix=False, user_defined_symbols=gemma_words[:6])
    yield Family("gemma .model", "tokenizer.model", gemma, gemma_words)
    gemma_json = char_bpe(gemma)
    gemma_json.normalizer = normalizers.Replace(" ", SPACE)
    gemma_json.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    gemma_json.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    gemma_json.add_tokens([AddedToken(w, normalized=False) for w in gemma_words])
    yield from_tokenizers("gemma", gemma_json, gemma_words)

    grok_words = ["[PAD]", "[BOS]", "[EOS]", "<|separator|>", "[MASK]", "<|user|>"]
    yield Family("grok-1 .model", "tokenizer.model", train_sentencepiece(
        corpus, "bpe", size, byte_fallback=True, pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[BOS]",
        eos_piece="[EOS]", control_symbols=["<|separator|>"], user_defined_symbols=["[MASK]", "<|user|>"],
        normalization_rule_name="nfkc", remove_extra_whitespaces=False), grok_words)


def unigram_families(corpus, size=2500):
    t5 = train_sentencepiece(corpus, "unigram", size, pad_id=0, eos_id=1, unk_id=2, bos_id=-1, normalization_rule_name="nmt_nfkc")
    words = ["<pad>", "</s>", "<unk>", "<extra_id_0>", "\u2126", "\uff21\u0301", "\ufb01", "\r\n", "  ", "\u3000", "\u00a9\u0301", "\u0915\u094d\u0937"]
    yield Family("t5 .model", "tokenizer.model", t5, words)
    pieces = pieces_of(t5)
    for name, pre in [("t5", pre_tokenizers.Metaspace(SPACE, "always")),
                      ("t5, split at spaces first", pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(SPACE, "always")]))]:
        tokenizer = Tokenizer(models.Unigram(pieces, 2, False))
        tokenizer.normalizer = normalizers.Sequence([normalizers.Precompiled(charsmap_of(t5)), normalizers.Strip(left=False, right=True),
                                                     normalizers.Replace(Regex(" {2,}"), SPACE)])
        tokenizer.pre_tokenizer = pre
        tokenizer.decoder = decoders.Metaspace(SPACE, "always")
        tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in ("<pad>", "</s>", "<unk>", "<extra_id_0>")])
        tokenizer.post_processor = template(tokenizer, "$A </s>", ["</s>"])
        yield from_tokenizers(name, tokenizer, words)

    xlnet = train_sentencepiece(corpus, "unigram", size, byte_fallback=True, normalization_rule_name="nmt_nfkc_cf",
                                user_defined_symbols=["<sep>", "<cls>", "(", ")", "--"])
    yield Family("xlnet .model", "tokenizer.model", xlnet, ["<sep>", "<cls>", "( )", "--", "---", "``", "''"])
    tokenizer = Tokenizer(models.Unigram(pieces_of(xlnet), 0, True))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Lowercase(), normalizers.Precompiled(charsmap_of(xlnet)), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, "always")
    tokenizer.decoder = decoders.Metaspace(SPACE, "always")
    tokenizer.add_tokens([AddedToken("<sep>", special=True), AddedToken("\u00c4rger", normalized=True), AddedToken("WORD", single_word=True)])
    yield from_tokenizers("xlnet", tokenizer, ["<sep>", "<Sep>", "\u00c4rger", "arger", "ARGER", "word", "a-word", "``", "''", "\u0130"])


def other_families(corpus):
    """Options that the families above leave out."""
    for name, options in [
            ("suffix", {"model_type": "unigram", "treat_whitespace_as_suffix": True, "byte_fallback": True}),
            ("plain", {"model_type": "bpe", "normalization_rule_name": "nmt_nfkc_cf", "user_defined_symbols": ["ab", "abc", "\u2581the"]}),
            ("no prefix, spaces kept", {"model_type": "unigram", "add_dummy_prefix": False, "remove_extra_whitespaces": False,
                                        "normalization_rule_name": "identity", "user_defined_symbols": ["ab", "abc", "\n"], "unk_surface": "?"})]:
        kind = options.pop("model_type")
        yield Family(name + " .model", "tokenizer.model", train_sentencepiece(corpus, kind, 2000, **options), ["ab", "abcd", "\n", " the", "\u2581the"])
    pieces = pieces_of(train_sentencepiece(corpus, "unigram", 2000, normalization_rule_name="identity"))
    for name, normalizer, pre in [
            ("nfkc, words", normalizers.NFKC(), pre_tokenizers.Whitespace()),
            ("nfd, punctuation", normalizers.Sequence([normalizers.NFD(), normalizers.Strip()]), pre_tokenizers.Sequence([
                pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.Punctuation("merged_with_previous"), pre_tokenizers.Digits(False)])),
            ("never prefix", None, pre_tokenizers.Metaspace(SPACE, "never", split=False))]:
        tokenizer = Tokenizer(models.Unigram(pieces, 0, False))
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre
        yield from_tokenizers("unigram, " + name, tokenizer, ["e\u0301", "\u00e9", "\ufb03", "a.b!?c", "1\u00bd2"])


def families(corpus):
    for part in (byte_level_families, character_families, unigram_families, other_families):
        yield from part(corpus)
