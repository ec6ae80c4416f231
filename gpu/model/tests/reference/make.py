"""Makes the reference files beside this script from an independent implementation. Not run by any test.

    python3 -m venv venv && venv/bin/pip install torch transformers gguf accelerate jinja2 regex
    venv/bin/python make.py PATH/SmolLM2-135M-Instruct.Q4_1.gguf

What is independent of this project: the weights are dequantised by the `gguf` package and run by `transformers` (PyTorch, float32,
eager attention); token ids come from a byte-pair encoder written out below (and are compared with the `tokenizers` package);
templates are rendered by Jinja2 itself.
"""

import hashlib
import json
import sys
import unicodedata
from pathlib import Path

import regex
import torch
from gguf import GGUFReader
from jinja2.sandbox import ImmutableSandboxedEnvironment
from prompts import CHATS, CONVERSATIONS, PROMPTS, STRINGS
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM

NEW_TOKENS = 64
TOP = 64
SAMPLE = 512
HERE = Path(__file__).parent
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
MODERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
# How each kind of vocabulary cuts a text into words, one expression after the other.
WORDS = {
    "smollm": [r"\p{N}", GPT2],
    "gpt-2": [GPT2],
    "llama-bpe": [MODERN % "{1,3}"],
    "qwen2": [MODERN % ""],
}


def field(reader, name):
    return reader.get_field(name).contents()


def byte_names():
    """GPT-2's printable name of every byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    names = {b: chr(b) for b in plain}
    names.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in names)})
    return names


class PlainBpe:
    """Byte-pair encoding as its definition reads: merge the pair of lowest rank until none is left."""

    def __init__(self, tokens, merges, special, pre="smollm"):
        self.pre = pre
        self.cuts = [regex.compile(cut) for cut in WORDS[pre]]
        self.ids = {t: i for i, t in enumerate(tokens)}
        self.rank = {tuple(m.split(" ")): i for i, m in enumerate(merges)}
        self.names = byte_names()
        self.special = regex.compile("|".join(regex.escape(s) for s in sorted(special, key=len, reverse=True)))

    def word(self, word):
        parts = [self.names[b] for b in word.encode()]
        if self.pre == "llama-bpe" and "".join(parts) in self.ids:
            return [self.ids["".join(parts)]]
        while len(parts) > 1:
            best = min(zip(parts, parts[1:]), key=lambda p: self.rank.get(p, 1 << 30))
            if best not in self.rank:
                break
            merged, i = [], 0
            while i < len(parts):
                if tuple(parts[i : i + 2]) == best:
                    merged.append(parts[i] + parts[i + 1])
                    i += 2
                else:
                    merged.append(parts[i])
                    i += 1
            parts = merged
        return [self.ids[p] for p in parts]

    def plain(self, text):
        pieces = [unicodedata.normalize("NFC", text) if self.pre == "qwen2" else text]
        for cut in self.cuts:
            pieces = [p for piece in pieces for p in regex.split(f"({cut.pattern})", piece) if p]
        return [i for piece in pieces for i in self.word(piece)]

    def encode(self, text, special):
        if not special:
            return self.plain(text)
        out, at = [], 0
        for m in self.special.finditer(text):
            out += self.plain(text[at : m.start()]) + [self.ids[m.group()]]
            at = m.end()
        return out + self.plain(text[at:])


def library_tokenizer(tokens, merges, special):
    tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=[tuple(m.split(" ")) for m in merges]))
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)]
    )
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens([AddedToken(s, normalized=False) for s in special])
    return tok


def logits_record(logits):
    top = torch.topk(logits, TOP)
    stride = logits.numel() // SAMPLE
    return {
        "max_abs": round(float(logits.abs().max()), 5),
        "top": [[int(i), round(float(v), 5)] for i, v in zip(top.indices, top.values)],
        "sample_stride": stride,
        "sample": [round(float(v), 5) for v in logits[::stride][:SAMPLE]],
    }


@torch.inference_mode()
def greedy(model, ids, ends):
    out, margins, first = [], [], None
    step = model(torch.tensor([ids]), use_cache=True)
    for _ in range(NEW_TOKENS):
        logits = step.logits[0, -1].float()
        first = first if first is not None else logits
        best = torch.topk(logits, 2).values
        margins.append(float(best[0] - best[1]))
        out.append(int(torch.argmax(logits)))
        if out[-1] in ends:
            break
        step = model(torch.tensor([[out[-1]]]), past_key_values=step.past_key_values, use_cache=True)
    return out, round(min(margins), 5), first


def write(name, value):
    rows = ",\n".join(json.dumps(v, ensure_ascii=False) for v in value["cases"])
    head = json.dumps({k: v for k, v in value.items() if k != "cases"})[1:-1]
    (HERE / name).write_text("{" + head + ', "cases": [\n' + rows + "\n]}\n")


def main(path):
    torch.set_num_threads(2)
    sha = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    reader = GGUFReader(path)
    tokens, merges = field(reader, "tokenizer.ggml.tokens"), field(reader, "tokenizer.ggml.merges")
    special = [t for t, k in zip(tokens, field(reader, "tokenizer.ggml.token_type")) if k == 3]
    plain, library = PlainBpe(tokens, merges, special), library_tokenizer(tokens, merges, special)
    jinja = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    template = jinja.from_string(field(reader, "tokenizer.chat_template"))

    def encode(text, parse_special=True):
        ids = plain.encode(text, parse_special)
        if parse_special:
            assert ids == library.encode(text, add_special_tokens=False).ids, text
        return ids

    write("tokenizer.json", {"sha256": sha, "cases": [
        {"text": t, "special": s, "ids": encode(t, s)} for t in STRINGS for s in ((True, False) if "<" in t else (True,))
    ]})
    # The same vocabulary, read in the other ways.
    others = {pre: PlainBpe(tokens, merges, special, pre) for pre in WORDS}
    write("words.json", {"sha256": sha, "cases": [
        {"pre": pre, "text": t, "ids": bpe.encode(t, True)} for pre, bpe in others.items() for t in STRINGS
    ]})
    write("template.json", {"sha256": sha, "cases": [
        {"messages": m, "add_generation_prompt": g, "text": template.render(messages=m, add_generation_prompt=g)}
        for m in CONVERSATIONS for g in (True, False)
    ]})

    file = Path(path)
    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    texts = [(t, None) for t in PROMPTS] + [(template.render(messages=c, add_generation_prompt=True), c) for c in CHATS]
    cases = []
    for text, messages in texts:
        ids = encode(text)
        generated, margin, first = greedy(model, ids, {0, 2})
        print(len(ids), len(generated), margin, repr(text[:40]), "->", repr(library.decode(generated)[:60]))
        cases.append({"text": text, "messages": messages, "ids": ids, "generated": generated, "min_margin": margin,
                      "answer": library.decode(generated), "first": logits_record(first)})
    write("greedy.json", {"sha256": sha, "end_tokens": [0, 2], "cases": cases})


if __name__ == "__main__":
    main(sys.argv[1])
