"""Makes small models with random weights, one an architecture, and their logits. Not run by any test. Set-up as in make.py.

    venv/bin/python make_small.py

Writes `small-ARCHITECTURE.gguf` beside this script and `small.json` with the logits of `transformers` for every position.
"""

import json
from pathlib import Path

import numpy as np
import torch
from gguf import GGUFWriter
from transformers import AutoModelForCausalLM

HERE = Path(__file__).parent
WIDTH, HEADS, KV_HEADS, FFN, LAYERS = 16, 4, 2, 24, 2
# Numbers a head: Qwen 3's are wider than the width divided by the heads.
HEAD = {"llama": 4, "qwen2": 4, "qwen3": 8}
TOKENS = [chr(c) for c in range(ord("a"), ord("z") + 1)] + ["ab", "<end>"]
IDS = [7, 4, 11, 11, 14, 22, 14, 17, 11, 3, 0, 25, 1, 2, 3, 4, 5, 6, 26, 9]


def tensors(architecture):
    head = HEAD[architecture]
    q, kv = HEADS * head, KV_HEADS * head
    yield "token_embd.weight", (len(TOKENS), WIDTH)
    yield "output_norm.weight", (WIDTH,)
    yield "output.weight", (len(TOKENS), WIDTH)
    for i in range(LAYERS):
        shapes = {
            "attn_norm.weight": (WIDTH,), "ffn_norm.weight": (WIDTH,),
            "attn_q.weight": (q, WIDTH), "attn_k.weight": (kv, WIDTH), "attn_v.weight": (kv, WIDTH), "attn_output.weight": (WIDTH, q),
            "ffn_gate.weight": (FFN, WIDTH), "ffn_up.weight": (FFN, WIDTH), "ffn_down.weight": (WIDTH, FFN),
        }
        if architecture == "qwen2":
            shapes |= {"attn_q.bias": (q,), "attn_k.bias": (kv,), "attn_v.bias": (kv,)}
        if architecture == "qwen3":
            shapes |= {"attn_q_norm.weight": (head,), "attn_k_norm.weight": (head,)}
        yield from ((f"blk.{i}.{name}", shape) for name, shape in shapes.items())


def write(architecture, path):
    writer = GGUFWriter(path, architecture)
    writer.add_block_count(LAYERS)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD[architecture])
    writer.add_value_length(HEAD[architecture])
    writer.add_rope_dimension_count(HEAD[architecture])
    writer.add_rope_freq_base(500.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([1] * (len(TOKENS) - 1) + [3])
    writer.add_token_merges(["a b"])
    writer.add_eos_token_id(len(TOKENS) - 1)
    random = np.random.default_rng(1)
    for name, shape in tensors(architecture):
        numbers = random.standard_normal(shape, dtype=np.float32) * (0.3 if len(shape) > 1 else 0.2)
        writer.add_tensor(name, numbers + (1.0 if name.endswith("norm.weight") else 0.0))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@torch.inference_mode()
def main():
    cases = []
    for architecture in ("llama", "qwen2", "qwen3"):
        path = HERE / f"small-{architecture}.gguf"
        write(architecture, path)
        # The loader overlooks Qwen 3's key_length.
        more = {"head_dim": HEAD[architecture]} if architecture == "qwen3" else {}
        model = AutoModelForCausalLM.from_pretrained(
            HERE, gguf_file=path.name, dtype=torch.float32, attn_implementation="eager", **more
        ).eval()
        logits = model(torch.tensor([IDS])).logits[0]
        rows = [[round(float(v), 5) for v in row] for row in logits]
        cases.append({"file": path.name, "ids": IDS, "logits": rows})
    rows = ",\n".join(json.dumps(c) for c in cases)
    (HERE / "small.json").write_text('{"cases": [\n' + rows + "\n]}\n")


if __name__ == "__main__":
    main()
