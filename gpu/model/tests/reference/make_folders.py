"""Makes small models with random weights in the layout of the Hugging Face hub, one a kind, and what `transformers` says about them. Not
run by any test. Set-up as in make.py.

    venv/bin/python make_folders.py

Writes the folders `folder-KIND` beside this script, and `folders.json` with logits for every position, and tokens of texts and chats.
"""

import json
import shutil
from pathlib import Path

import torch
from prompts import CODE, LONG
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers import Gemma3TextConfig, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

HERE = Path(__file__).parent
IDS = [7, 40, 110, 11, 140, 22, 14, 170, 11, 3, 0, 250, 1, 2, 3, 204, 5, 6, 260, 9]
MODERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
INST = "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]{% else %}{{ m['content'] }}{{ eos_token }}{% endif %}{% endfor %}"
TURNS = (
    "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ m['role'] }}\n{{ m['content'] | trim }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
SIZES = dict(hidden_size=16, num_attention_heads=4, num_key_value_heads=2, intermediate_size=24, num_hidden_layers=2,
             max_position_embeddings=64, initializer_range=0.3)
TEXTS = ["", "hello", " the keeper", "The lighthouse  keeper\n\nhad 1234 cups.", "naïve café 🙂", "x = 5\n\n\n    y", "日本", "it's", "  two", "a <|im_end|> b", "a</s> b",
         "<end_of_turn>x", "<think>y"]
CHAT = [{"role": "user", "content": "hello there"}, {"role": "assistant", "content": "the keeper"}, {"role": "user", "content": "  why? "}]


def trained(vocabulary, words, alphabet, first):
    """Pieces and merges learned from the texts of prompts.py; `first` comes before them."""
    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = words
    trainer = trainers.BpeTrainer(vocab_size=vocabulary - len(first), initial_alphabet=alphabet, show_progress=False)
    learner.train_from_iterator([LONG, CODE], trainer)
    model = json.loads(learner.to_str())["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    return {t: i for i, t in enumerate([*first, *pieces])}, [tuple(m) for m in model["merges"]]


def byte_level(digits, specials, defined=(), bos=None, ignore_merges=False):
    cut = pre_tokenizers.Split(Regex(MODERN % digits), "isolated")
    words = pre_tokenizers.Sequence([cut, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    vocabulary, merges = trained(290, words, pre_tokenizers.ByteLevel.alphabet(), [])
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=ignore_merges))
    tokenizer.normalizer = None if bos else normalizers.NFC()
    tokenizer.pre_tokenizer = words
    tokenizer.add_special_tokens([AddedToken(s, normalized=False) for s in specials])
    tokenizer.add_tokens([AddedToken(s, normalized=False) for s in defined])
    if bos:
        front = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))])
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), front])
    return tokenizer


def marked(first, specials, defined=(), bos=None, metaspace=False):
    """Spaces as marks, what is unknown as bytes."""
    space = pre_tokenizers.Metaspace(prepend_scheme="never", split=True)
    bytes_ = [f"<0x{b:02X}>" for b in range(256)]
    vocabulary, merges = trained(400, space, [], [*first, *bytes_])
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    if metaspace:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.add_special_tokens([AddedToken(s, normalized=False) for s in specials])
    tokenizer.add_tokens([AddedToken(s, normalized=False) for s in defined])
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))])
    return tokenizer


def kinds():
    chatml = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    llama3 = ["<|begin_of_text|>", "<|im_start|>", "<|im_end|>"]
    scaling = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 32}
    yield ("llama", torch.float32, LlamaConfig(**SIZES, vocab_size=300, rope_parameters=scaling, eos_token_id=[292], bos_token_id=290),
           byte_level("{1,3}", llama3, bos="<|begin_of_text|>", ignore_merges=True),
           dict(bos_token="<|begin_of_text|>", eos_token="<|im_end|>", chat_template=CHATML))
    yield ("mistral", torch.bfloat16, MistralConfig(**SIZES, vocab_size=400, sliding_window=8, eos_token_id=2, bos_token_id=1),
           marked(["<unk>", "<s>", "</s>"], ["<unk>", "<s>", "</s>"], bos="<s>", metaspace=True),
           dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>", chat_template=INST))
    yield ("qwen2", torch.float16, Qwen2Config(**SIZES, vocab_size=320, use_sliding_window=True, sliding_window=6, max_window_layers=1,
                                               tie_word_embeddings=True, eos_token_id=290, bos_token_id=290),
           byte_level("", chatml, ["<think>"]), dict(eos_token="<|im_end|>", chat_template=CHATML))
    yield ("qwen3", torch.bfloat16, Qwen3Config(**SIZES, vocab_size=320, head_dim=8, eos_token_id=292, bos_token_id=290),
           byte_level("", chatml, ["<think>"]), dict(eos_token="<|im_end|>", chat_template=CHATML))
    ropes = {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1_000_000.0},
             "sliding_attention": {"rope_type": "default", "rope_theta": 100.0}}
    gemma = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    yield ("gemma3", torch.bfloat16,
           Gemma3TextConfig(**SIZES, vocab_size=403, head_dim=8, query_pre_attn_scalar=16, sliding_window=6, rope_parameters=ropes,
                            layer_types=["sliding_attention", "full_attention"], eos_token_id=[1, 5], bos_token_id=2),
           # One more than the model knows, as the real ones have.
           marked(gemma, gemma, ["\n\n", "\n\n\n", "<think>", "<beyond>"], bos="<bos>"),
           dict(bos_token="<bos>", eos_token="<eos>", unk_token="<unk>", chat_template=TURNS))


@torch.inference_mode()
def case(kind, dtype, config, tokenizer, options):
    folder = HERE / f"folder-{kind}"
    shutil.rmtree(folder, ignore_errors=True)
    config._attn_implementation = "eager"
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config)
    for name, weight in model.named_parameters():
        if weight.dim() == 1:
            weight.copy_(weight + 0.2 * torch.randn_like(weight))
    model.to(dtype).save_pretrained(folder, max_shard_size="8KB" if kind == "qwen3" else "1GB")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **options).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    logits = model(torch.tensor([IDS])).logits[0]
    library = Tokenizer.from_file(str(folder / "tokenizer.json"))
    texts = [{"text": t, "ids": library.encode(t).ids, "bare": library.encode(t, add_special_tokens=False).ids} for t in TEXTS]
    rendered = AutoTokenizer.from_pretrained(folder).apply_chat_template(CHAT, add_generation_prompt=True, tokenize=False)
    return {"folder": folder.name, "ids": IDS, "logits": [[round(float(v), 5) for v in row] for row in logits], "texts": texts,
            "chat": {"messages": CHAT, "ids": library.encode(rendered, add_special_tokens=False).ids}}


def main():
    rows = ",\n".join(json.dumps(case(*kind), ensure_ascii=False) for kind in kinds())
    (HERE / "folders.json").write_text('{"cases": [\n' + rows + "\n]}\n")


if __name__ == "__main__":
    main()
