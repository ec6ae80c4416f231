"""Makes the reference files of the Gemma 3 model from independent implementations. Not run by any test. Set-up as in make.py, and
the package `sentencepiece`.

    venv/bin/python make_gemma3.py PATH/gemma-3-270m-q4_k_m.gguf

Writes `gemma3-greedy.json` (tokens and logits of `transformers`, PyTorch, float32, eager attention, on weights that the `gguf` package
has dequantised; the configuration is written out below, not read by anybody's loader) and `gemma3-tokenizer.json` (tokens of
SentencePiece itself, on a model made of the file's pieces, scores and types).
"""

import hashlib
import sys
from pathlib import Path

import sentencepiece
import torch
from gguf import GGUFReader, dequantize
from make import field, greedy, logits_record, write
from prompts import LONG, PROMPTS, STRINGS
from sentencepiece import sentencepiece_model_pb2 as protobuf
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

# Longer than the window of 512 tokens, so that what lies behind it is not seen by the layers that have one.
FAR = "The password is swordfish. " + "".join(LONG.replace("thirty-one", n) for n in ("ten", "six", "two", "nine")) + "The keeper"
ENDS = {1, 106}
NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}


def load(reader):
    config = Gemma3TextConfig(
        vocab_size=262144, hidden_size=640, intermediate_size=2048, num_hidden_layers=18, num_attention_heads=4,
        num_key_value_heads=1, head_dim=256, hidden_activation="gelu_pytorch_tanh", max_position_embeddings=32768,
        rms_norm_eps=1e-6, query_pre_attn_scalar=256, sliding_window=512,
        layer_types=["full_attention" if (i + 1) % 6 == 0 else "sliding_attention" for i in range(18)],
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 1_000_000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
    )
    config._attn_implementation = "eager"
    weights = {}
    for tensor in reader.tensors:
        name = tensor.name
        if name.startswith("blk."):
            _, layer, part, end = name.split(".")
            name = f"model.layers.{layer}.{NAMES[part]}.{end}"
        else:
            name = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}[name]
        numbers = torch.tensor(dequantize(tensor.data, tensor.tensor_type)).float()
        # The file has what a norm multiplies by, `transformers` one less.
        weights[name] = numbers - 1 if "norm" in name else numbers
    model = Gemma3ForCausalLM(config).eval()
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert missing == ["lm_head.weight"] and not unexpected, (missing, unexpected)
    model.tie_weights()
    return model


def pieces(reader):
    """SentencePiece on the file's vocabulary."""
    model = protobuf.ModelProto()
    entries = zip(*(field(reader, f"tokenizer.ggml.{name}") for name in ("tokens", "scores", "token_type")))
    for id, (text, score, kind) in enumerate(entries):
        # One of the control tokens is the unknown one.
        kind = 2 if id == 3 else kind
        model.pieces.add(piece=text.replace(" ", "\u2581"), score=score, type=kind)
    model.trainer_spec.model_type = 2
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.unk_id, model.trainer_spec.bos_id, model.trainer_spec.eos_id, model.trainer_spec.pad_id = 3, 2, 1, 0
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = False
    model.normalizer_spec.remove_extra_whitespaces = False
    return sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())


def main(path):
    torch.set_num_threads(2)
    sha = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    reader = GGUFReader(path)
    library = pieces(reader)
    write("gemma3-tokenizer.json", {"sha256": sha, "cases": [
        {"text": t, "special": False, "ids": library.encode(t)} for t in STRINGS if "\x00" not in t
    ]})
    model = load(reader)
    cases = []
    for text in [*PROMPTS, FAR]:
        ids = [2, *library.encode(text)]
        generated, margin, first = greedy(model, ids, ENDS)
        print(len(ids), len(generated), margin, repr(text[:40]), "->", repr(library.decode(generated)[:60]))
        cases.append({"text": text, "messages": None, "ids": ids, "generated": generated, "min_margin": margin,
                      "answer": library.decode(generated), "first": logits_record(first)})
    write("gemma3-greedy.json", {"sha256": sha, "end_tokens": sorted(ENDS), "cases": cases})


if __name__ == "__main__":
    main(sys.argv[1])
