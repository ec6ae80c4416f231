"""Writes what a server that only pretends to compute must know of a model: the folder of a Hugging Face model without its weights, made of a GGUF
file with a vocabulary of the GPT-2 kind (SmolLM2's).

    python dynamo-model.py MODEL.gguf FOLDER
"""

import json
import struct
import sys
from pathlib import Path

# GGUF's types of metadata that are numbers, as `struct` calls them; 8 is a string and 9 a list.
NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# GGUF's kind of token that is never part of a text.
CONTROL = 3


def metadata(file):
    """The key-value pairs at the beginning of a GGUF file."""

    def number(code):
        return struct.unpack("<" + code, file.read(struct.calcsize("<" + code)))[0]

    def value(kind):
        if kind == 8:
            return file.read(number("Q")).decode("utf-8", "replace")
        if kind == 9:
            kind, count = number("I"), number("Q")
            return [value(kind) for _ in range(count)]
        return number(NUMBERS[kind])

    assert file.read(4) == b"GGUF", "not a GGUF file"
    _version, _tensors, pairs = number("I"), number("Q"), number("Q")
    found = {}
    for _ in range(pairs):
        key = value(8)
        found[key] = value(number("I"))
    return found


def tokenizer(tokens, merges, kinds):
    special = [
        {"id": id, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for id, (token, kind) in enumerate(zip(tokens, kinds))
        if kind == CONTROL
    ]
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, bytes_]},
        "post_processor": None,
        "decoder": bytes_,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: id for id, token in enumerate(tokens)},
            "merges": merges,
        },
    }


def main(model, folder):
    with open(model, "rb") as file:
        found = metadata(file)
    kind = found["general.architecture"]
    tokens = found["tokenizer.ggml.tokens"]
    end = found["tokenizer.ggml.eos_token_id"]
    heads = found[f"{kind}.attention.head_count"]
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "bfloat16",
        "vocab_size": len(tokens),
        "hidden_size": found[f"{kind}.embedding_length"],
        "intermediate_size": found[f"{kind}.feed_forward_length"],
        "num_hidden_layers": found[f"{kind}.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": found[f"{kind}.attention.head_count_kv"],
        "head_dim": found[f"{kind}.embedding_length"] // heads,
        # Longer than the model's own: nothing is computed, and prompts of 100,000 tokens are measured.
        "max_position_embeddings": 131_072,
        "bos_token_id": found.get("tokenizer.ggml.bos_token_id", end),
        "eos_token_id": end,
    }
    files = {
        "config.json": config,
        "generation_config.json": {"eos_token_id": end},
        "tokenizer.json": tokenizer(tokens, found["tokenizer.ggml.merges"], found["tokenizer.ggml.token_type"]),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": tokens[end],
            "model_max_length": 131_072,
            "chat_template": found["tokenizer.chat_template"],
        },
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))


if __name__ == "__main__":
    main(*sys.argv[1:])
