//! What tensors are called: this program asks by GGUF's names.

/// The name in a folder of a model of this type of the tensor that GGUF calls `gguf`.
pub(super) fn here(gguf: &str, model_type: &str) -> Option<String> {
    let fixed = match gguf {
        "token_embd.weight" => Some("model.embed_tokens.weight"),
        "output_norm.weight" => Some("model.norm.weight"),
        "output.weight" => Some("lm_head.weight"),
        _ => None,
    };
    if let Some(name) = fixed {
        return Some(name.to_owned());
    }
    let (layer, rest) = gguf.strip_prefix("blk.")?.split_once('.')?;
    let (part, kind) = rest.split_once('.')?;
    // Gemma norms what goes into a block and what comes out of it; in the others the second norm goes into the second block.
    let both_ends = model_type.starts_with("gemma3");
    let part = match part {
        "attn_norm" => "input_layernorm",
        "attn_q" => "self_attn.q_proj",
        "attn_k" => "self_attn.k_proj",
        "attn_v" => "self_attn.v_proj",
        "attn_output" => "self_attn.o_proj",
        "attn_q_norm" => "self_attn.q_norm",
        "attn_k_norm" => "self_attn.k_norm",
        "post_attention_norm" if both_ends => "post_attention_layernorm",
        "ffn_norm" if both_ends => "pre_feedforward_layernorm",
        "post_ffw_norm" if both_ends => "post_feedforward_layernorm",
        "ffn_norm" => "post_attention_layernorm",
        "ffn_gate" => "mlp.gate_proj",
        "ffn_up" => "mlp.up_proj",
        "ffn_down" => "mlp.down_proj",
        _ => return None,
    };
    Some(format!("model.layers.{layer}.{part}.{kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tensors() {
        for (gguf, model_type, name) in [
            ("output.weight", "llama", Some("lm_head.weight")),
            (
                "blk.12.attn_q.bias",
                "qwen2",
                Some("model.layers.12.self_attn.q_proj.bias"),
            ),
            (
                "blk.0.ffn_norm.weight",
                "llama",
                Some("model.layers.0.post_attention_layernorm.weight"),
            ),
            (
                "blk.0.ffn_norm.weight",
                "gemma3_text",
                Some("model.layers.0.pre_feedforward_layernorm.weight"),
            ),
            ("blk.0.post_ffw_norm.weight", "llama", None),
            ("rope_freqs.weight", "llama", None),
            ("blk.0", "llama", None),
        ] {
            assert_eq!(here(gguf, model_type).as_deref(), name, "{gguf}");
        }
    }
}
