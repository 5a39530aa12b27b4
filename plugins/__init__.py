"""The built-in catalogue: one line per variant. It reaches the zoo by the entry point that any plugin uses.

Targets are texts, so that listing them imports none of the modules beside this file.
"""

from __future__ import annotations

from zoo import Variant, hookimpl

AINSLIE = "Ainslie et al. 2023, arXiv:2305.13245"
ARORA = "Arora et al. 2023, arXiv:2312.04927"
BA = "Ba et al. 2016, arXiv:1607.06450"
BACHLECHNER = "Bachlechner et al. 2020, arXiv:2003.04887"
BAHDANAU = "Bahdanau et al. 2014, arXiv:1409.0473"
BENGIO = "Bengio et al. 2003, JMLR 3:1137-1155"
CHEN = "Chen et al. 2023, arXiv:2306.15595"
CHO = "Cho et al. 2014, arXiv:1406.1078"
DAO = "Dao et al. 2022, arXiv:2205.14135"
DAUPHIN = "Dauphin et al. 2016, arXiv:1612.08083"
DEEPSEEK_V2 = "DeepSeek-AI 2024, arXiv:2405.04434"
DEEPSEEK_V3 = "DeepSeek-AI 2024, arXiv:2412.19437"
DEVLIN = "Devlin et al. 2018, arXiv:1810.04805"
DING = "Ding et al. 2021, arXiv:2105.13290"
ELMAN = "Elman 1990, Cognitive Science 14(2):179-211"
FEDUS = "Fedus et al. 2021, arXiv:2101.03961"
GEHRING = "Gehring et al. 2017, arXiv:1705.03122"
GRATTAFIORI = "Grattafiori et al. 2024, arXiv:2407.21783"
GRAVES = "Graves et al. 2014, arXiv:1410.5401"
GREFENSTETTE = "Grefenstette et al. 2015, arXiv:1506.02516"
GU = "Gu and Dao 2023, arXiv:2312.00752"
HAVIV = "Haviv et al. 2022, arXiv:2203.16634"
HENDRYCKS = "Hendrycks and Gimpel 2016, arXiv:1606.08415"
HOCHREITER = "Hochreiter and Schmidhuber 1997, Neural Computation 9(8):1735-1780"
JIANG = "Jiang et al. 2024, arXiv:2401.04088"
KATHAROPOULOS = "Katharopoulos et al. 2020, arXiv:2006.16236"
KNESER = "Kneser and Ney 1995, ICASSP 1:181-184"
LE_SCAO = "Le Scao et al. 2022, arXiv:2211.05100"
LIU_2018 = "Liu et al. 2018, arXiv:1801.10198"
LIU_2021 = "Liu et al. 2021, arXiv:2111.09883"
LOSHCHILOV_2016 = "Loshchilov and Hutter 2016, arXiv:1608.03983"
LOSHCHILOV_2017 = "Loshchilov and Hutter 2017, arXiv:1711.05101"
NGUYEN = "Nguyen and Salazar 2019, arXiv:1910.05895"
OPENAI = "OpenAI 2025, arXiv:2508.10925"
PENG = "Peng et al. 2023, arXiv:2309.00071"
POLYAK = "Polyak 1964, USSR Computational Mathematics and Mathematical Physics 4(5):1-17"
PRESS_2016 = "Press and Wolf 2016, arXiv:1608.05859"
PRESS_2021 = "Press et al. 2021, arXiv:2108.12409"
RABE = "Rabe and Staats 2021, arXiv:2112.05682"
RAFFEL = "Raffel et al. 2019, arXiv:1910.10683"
RAMACHANDRAN = "Ramachandran et al. 2017, arXiv:1710.05941"
SENNRICH = "Sennrich et al. 2015, arXiv:1508.07909"
SHAZEER_2019 = "Shazeer 2019, arXiv:1911.02150"
SHAZEER_2020 = "Shazeer 2020, arXiv:2002.05202"
SO = "So et al. 2021, arXiv:2109.08668"
SU = "Su et al. 2021, arXiv:2104.09864"
SUTSKEVER = "Sutskever et al. 2014, arXiv:1409.3215"
TOUVRON = "Touvron et al. 2021, arXiv:2103.17239"
VASWANI = "Vaswani et al. 2017, arXiv:1706.03762"
VINYALS = "Vinyals et al. 2015, arXiv:1511.06391"
WANG_2021 = "Wang and Komatsuzaki 2021, GPT-J-6B"
WANG_2022 = "Wang et al. 2022, arXiv:2203.00555"
XIONG = "Xiong et al. 2020, arXiv:2002.04745"
XUE = "Xue et al. 2021, arXiv:2105.13626"
ZHANG = "Zhang and Sennrich 2019, arXiv:1910.07467"
ZHU = "Zhu et al. 2025, arXiv:2503.10622"


def offer(slot: str, *rows: tuple, module: str = "") -> list[Variant]:
    """Variants of one slot from rows of name, target, summary, paper and, where the name settles some, options.

    They stand in the module of the slot's name unless another is given.
    """
    return [Variant(slot, name, f"zoo_plugins.{module or slot}:{target}", *rest) for name, target, *rest in rows]


# fmt: off
POSITIONS = offer(
    "position",
    ("none", "NoPosition", "No positions: a decoder learns order from its causal mask alone.", HAVIV),
    ("sinusoidal", "Sinusoidal", "Adds sines and cosines of geometrically growing wavelengths to the input.", VASWANI),
    ("learned", "Learned", "Adds a trained vector per position to the input; knows none beyond max_len.", GEHRING),
    ("rope", "Rope", "Rotates queries and keys by their positions, so that scores see only distances.", SU),
    ("rope-linear", "linear", "Rope at positions divided by a factor, for texts longer than in training.", CHEN),
    ("rope-ntk", "ntk", "Rope on a larger base: fast pairs turn as before, the slowest by a factor less.", PENG),
    ("rope-yarn", "yarn", "Rope with slow pairs divided by a factor, and sharper scores: YaRN.", PENG),
    ("rope-llama3", "llama3", "Rope with slow pairs divided by a factor, as in LLaMA 3.1.", GRATTAFIORI),
    ("alibi", "Alibi", "Lowers each score in proportion to the distance, by a fixed slope per head.", PRESS_2021),
    ("t5-bias", "T5Bias", "Adds to each score a trained number per head and bucket of distances.", RAFFEL),
)

NORMS = offer(
    "norm",
    ("layernorm", "LayerNorm", "Centres each vector and scales it to unit variance; then a gain and a bias.", BA),
    ("rmsnorm", "RMSNorm", "Divides each vector by its root mean square, without centring; then a gain.", ZHANG),
    ("scalenorm", "ScaleNorm", "Scales every vector to one trained length.", NGUYEN),
    ("dyt", "DynamicTanh", "Squashes each number by a tanh of trained steepness, without statistics.", ZHU),
    ("none", "NoNorm", "Leaves every vector as it is."),
)

RESIDUALS = offer(
    "residual",
    ("pre-norm", "PreNorm", "x + f(norm(x)), and one norm at the end: nothing stands in the residual path.", XIONG),
    ("post-norm", "PostNorm", "norm(x + f(x)): the original layout; deep stacks of it need a warm-up.", VASWANI),
    ("sandwich-norm", "SandwichNorm", "x + norm(f(norm(x))): a norm on both sides of each step.", DING),
    ("output-norm", "OutputNorm", "x + norm(f(x)): a norm on what each step adds.", LIU_2021),
    ("parallel", "Parallel", "x + f(norm(x)) + g(norm(x)): attention and FFN read the same input.", WANG_2021),
    ("rezero", "ReZero", "x + w f(norm(x)), w = 0 at first, one per layer; published with norm none.", BACHLECHNER),
    ("layerscale", "LayerScale", "x + w f(norm(x)), w a trained vector per step, small at first.", TOUVRON),
    ("deepnorm", "DeepNorm", "norm(a x + f(x)), a > 1, f small at first: post-norm for deep stacks.", WANG_2022),
)

FFNS = offer(
    "ffn",
    ("relu", "Plain", "down(max(0, up(x))): the original step.", VASWANI, {"activation": "relu"}),
    ("gelu", "Plain", "down(gelu(up(x))), gelu(z) = z P(Z < z), Z normal.", HENDRYCKS, {"activation": "gelu"}),
    ("gelu-tanh", "Plain", "As gelu, by GPT-2's tanh approximation.", HENDRYCKS, {"activation": "gelu-tanh"}),
    ("swish", "Plain", "down(z sigmoid(z)), z = up(x), also called SiLU.", RAMACHANDRAN, {"activation": "swish"}),
    ("relu2", "Plain", "down(max(0, up(x))^2): the squared ReLU, found by search.", SO, {"activation": "relu2"}),
    ("glu", "Gated", "down(sigmoid(gate(x)) * up(x)): a gate per hidden unit.", DAUPHIN, {"activation": "sigmoid"}),
    ("bilinear", "Gated", "down(gate(x) * up(x)): a gate that is linear.", SHAZEER_2020, {"activation": "identity"}),
    ("reglu", "Gated", "down(relu(gate(x)) * up(x)).", SHAZEER_2020, {"activation": "relu"}),
    ("geglu", "Gated", "down(gelu(gate(x)) * up(x)), as in ModernBERT.", SHAZEER_2020, {"activation": "gelu"}),
    ("geglu-tanh", "Gated", "As geglu, by the tanh approximation, as in Gemma and T5 v1.1.", SHAZEER_2020,
     {"activation": "gelu-tanh"}),
    ("swiglu", "Gated", "down(swish(gate(x)) * up(x)), as in LLaMA.", SHAZEER_2020, {"activation": "swish"}),
    ("swiglu-clamped", "Clamped", "As swiglu, with bounded hidden values: the experts of gpt-oss.", OPENAI),
    ("none", "nothing", "No feed-forward step: the layer only attends."),
)

MIXTURES = offer(
    "ffn",
    ("moe", "Mixture", "Each token takes a few experts, by a softmax over these (Mixtral).", JIANG,
     {"router": "top-softmax"}),
    ("moe-softmax", "Mixture", "As moe, by a softmax over all experts (Switch, DeepSeek-V2).", FEDUS,
     {"router": "softmax"}),
    ("moe-sigmoid", "Mixture", "As moe, by sigmoids made to add up to 1 (DeepSeek-V3).", DEEPSEEK_V3,
     {"router": "sigmoid"}),
    module="mixture",
)

ATTENTIONS = offer(
    "attention",
    ("mha", "MultiHead", "Every query head has keys and values of its own.", VASWANI, {"kv_heads": None}),
    ("mqa", "MultiHead", "All query heads share one head of keys and values.", SHAZEER_2019, {"kv_heads": 1}),
    ("gqa", "MultiHead", "Groups of query heads share a head of keys and values: a smaller cache.", AINSLIE),
    ("flash", "MultiHead", "Short for mha on the kernel flash.", DAO, {"kv_heads": None, "kernel": "flash"}),
    ("naive", "MultiHead", "Short for mha on the kernel naive.", VASWANI, {"kv_heads": None, "kernel": "naive"}),
    ("none", "nothing", "No attention: each token is treated alone."),
)

RECURRENT = offer(
    "attention",
    ("rnn", "Recurrent", "One hidden vector, made anew from itself and each token.", ELMAN, {"cell": "rnn"}),
    ("lstm", "Recurrent", "A hidden vector and a memory, with gates between the two.", HOCHREITER, {"cell": "lstm"}),
    ("gru", "Recurrent", "A hidden vector that gates renew in part at each token.", CHO, {"cell": "gru"}),
    module="recurrent",
)

LINEAR = offer(
    "attention",
    ("linear", "LinearAttention", "Products of positive features, no softmax: one sum is all it keeps.", KATHAROPOULOS),
    module="linear",
)

STATE_SPACES = offer(
    "attention",
    ("mamba", "Mamba", "A state space whose input decides what is kept; stands with ffn none.", GU),
    module="statespace",
)

LATENT = offer(
    "attention",
    ("mla", "Latent", "Keys and values come from one narrow vector per token, all that is cached.", DEEPSEEK_V2),
    module="latent",
)

KERNELS = offer(
    "kernel",
    ("naive", "Naive", "softmax(q k^T) v as it is written: the oracle that every kernel is held to.", VASWANI),
    ("flash", "Flash", "PyTorch's fused scaled_dot_product_attention: the scores are never stored.", DAO),
    ("tiled", "Tiled", "Blocks and an online softmax in plain PyTorch: memory linear in the length.", RABE),
    ("additive", "Additive", "Scores by a small network, w tanh(q + k), in place of a product.", BAHDANAU),
    ("auto", "auto", "The fastest kernel that can carry what the attention and the position need."),
)

EMBEDDINGS = offer(
    "embedding",
    ("plain", "unnormed", "One trained vector per token, as it is.", "", {"scale": False}),
    ("scaled", "unnormed", "One vector per token, times sqrt(d_model).", VASWANI, {"scale": True}),
    ("normed", "Tokens", "One vector per token, normalised before the first layer.", LE_SCAO, {"normed": True}),
)

HEADS = offer(
    "head",
    ("tied", "Logits", "Logits are products with the vectors of the input embedding.", PRESS_2016),
    ("transform", "Transformed", "A dense layer, an activation and a norm, then the tied logits.", DEVLIN),
    ("untied", "untied", "Logits come from a projection of their own."),
)

ARCHITECTURES = offer(
    "architecture",
    ("encoder-only", "EncoderOnly", "One bidirectional stack; target tokens are predicted independently.", DEVLIN),
    ("decoder-only", "DecoderOnly", "One causal stack that reads source and target as one text.", LIU_2018),
    ("encoder-decoder", "EncoderDecoder", "One stack reads the source, a causal one writes the target.", VASWANI),
)

TASKS = offer(
    "task",
    ("language-modeling", "LanguageModeling", "Predict each token of a text from those before it.", BENGIO),
    ("masked-language-modeling", "MaskedLanguageModeling", "Recover the tokens that were hidden in a text.", DEVLIN),
    ("classification", "Classification", "Name the label of a text, as one token."),
    ("sequence-to-sequence", "SequenceToSequence", "Write one text given another.", SUTSKEVER),
)

GENERATED_TASKS = offer(
    "task",
    ("copy", "Copy", "Repeat random symbols: attention by place alone.", GRAVES),
    ("reverse", "Reverse", "Write random symbols backwards.", GREFENSTETTE),
    ("sort", "Sort", "Write random symbols in order: attention by content alone.", VINYALS),
    ("associative-recall", "AssociativeRecall", "Given pairs of key and value, answer each key with its value.", ARORA),
    module="generated",
)

DATA = offer(
    "data",
    ("python-docs", "PythonDocs", "English prose of the language reference that every Python ships, about 380 kB."),
    ("python-source", "PythonSource", "The source of Python's standard library, as installed here."),
    ("text", "Text", "Text files by name or pattern, plain or .gz."),
    ("table", "Table", "Named columns of a .tsv, .csv or .jsonl file."),
)

TOKENIZERS = offer(
    "tokenizer",
    ("byte", "Byte", "One token per UTF-8 byte: nothing is unknown, but texts are long.", XUE),
    ("char", "Char", "One token per character of the training text."),
    ("bpe", "Bpe", "Merges the most frequent neighbours until the vocabulary is full.", SENNRICH),
    ("pretrained", "Pretrained", "A tokenizer that others trained, from a tokenizer.json."),
)

OPTIMIZERS = offer(
    "optimizer",
    ("adamw", "adamw", "Adam with the weight decay apart from the gradient.", LOSHCHILOV_2017),
    ("sgd", "sgd", "Steps down the gradient itself, with momentum.", POLYAK),
)

SCHEDULES = offer(
    "schedule",
    ("cosine", "cosine", "A warm-up, then half a cosine down to a share of the peak.", LOSHCHILOV_2016),
    ("linear", "linear", "A warm-up, then a straight line down to a share of the peak.", DEVLIN),
    ("constant", "constant", "A warm-up, then the peak to the end."),
    ("inverse-sqrt", "inverse_sqrt", "A warm-up, then the peak over the square root of the step.", VASWANI),
)

METRICS = offer(
    "metric",
    ("loss", "Loss", "Mean nats of a target."),
    ("perplexity", "Perplexity", "The exponential of the loss."),
    ("bpb", "BitsPerByte", "Bits for each byte of the text, whatever the tokenizer."),
    ("accuracy", "Accuracy", "The share of tokens that are predicted right."),
    ("exact", "Exact", "The share of rows in which every token is predicted right."),
)

REFERENCES = offer(
    "reference",
    ("n-gram", "NGram", "Interpolated Kneser-Ney counts of the same tokens.", KNESER),
)

FAMILIES = offer(
    "family",
    *((name, "Table", summary, "", {"table": name}) for name, summary in (
        ("albert", "ALBERT: one layer used over and over, a narrow embedding."),
        ("bart", "BART: the Transformer of 2017 with learned positions and a norm on the embedding."),
        ("bert", "BERT as it recovers hidden tokens."),
        ("bloom", "BLOOM: ALiBi, a norm on the embedding, query, key and value head by head."),
        ("camembert", "CamemBERT: RoBERTa for French."),
        ("cohere", "Command-R: attention and FFN behind one norm, scaled logits."),
        ("deepseek-v2", "DeepSeek-V2: keys and values from a latent, experts that some or all tokens take."),
        ("deepseek-v3", "DeepSeek-V3: experts scored by sigmoids, with a correction in place of a loss."),
        ("distilbert", "DistilBERT: BERT with half of its layers and one kind of tokens."),
        ("electra", "ELECTRA's generator: BERT on a narrow embedding."),
        ("falcon", "Falcon 7B and RW: one matrix for query, key and value, rotary positions or ALiBi."),
        ("falcon-40b", "Falcon 40B and 180B: shared key heads, two norms for what stands side by side."),
        ("gemma", "Gemma: scaled input, gains of 1 + w, wide heads."),
        ("gemma2", "Gemma 2: norms on both sides of each step, capped scores, windows in every other layer."),
        ("gemma3", "Gemma 3's part that reads text: windows in five of six layers, rotary positions of two bases."),
        ("gpt-neo", "GPT-Neo: scores that are not scaled, a window in every other layer."),
        ("gpt-neox", "GPT-NeoX and Pythia: attention and FFN side by side, each behind its norm."),
        ("gpt2", "GPT-2: learned positions, one matrix for query, key and value."),
        ("gptj", "GPT-J: attention and FFN behind one norm, neighbouring rotary pairs."),
        ("gpt-oss", "gpt-oss: sinks, windows in every other layer, experts with bounded values."),
        ("llama", "LLaMA 1 to 3, and all that took over its names."),
        ("mamba", "Mamba: a state space in every layer, and no FFN."),
        ("marian", "Marian, which is the Transformer of 2017."),
        ("mbart", "mBART: BART with the norms in front."),
        ("mistral", "Mistral: LLaMA with a sliding window."),
        ("mixtral", "Mixtral: LLaMA with eight experts of which each token takes two."),
        ("modernbert", "ModernBERT: windows in two of three layers, rotary positions of two bases."),
        ("mpt", "MPT: ALiBi and no bias anywhere."),
        ("nemotron", "Nemotron: squared ReLU, layer norms with gains of 1 + w."),
        ("olmo", "OLMo: LLaMA with norms that have nothing to train."),
        ("olmo2", "OLMo 2: norms after the steps, queries and keys normalised."),
        ("opt", "OPT: learned positions from 2 on, ReLU; 350m with a narrow table."),
        ("pegasus", "Pegasus: the Transformer of 2017 with the norms in front."),
        ("phi", "Phi 1 to 2: attention and FFN behind one norm, biases everywhere."),
        ("qwen2", "Qwen 2 and 2.5: LLaMA with biases on query, key and value."),
        ("qwen3", "Qwen 3: LLaMA with queries and keys normalised per head."),
        ("qwen3-moe", "Qwen 3 with many narrow experts."),
        ("roberta", "RoBERTa: BERT with positions that begin after the id of the pad."),
        ("smollm3", "SmolLM3: LLaMA in which every fourth layer has no positions."),
        ("stablelm", "StableLM: layer norms, a quarter of each head rotated."),
        ("starcoder2", "StarCoder2: norms and biases of GPT-2, the rest of LLaMA."),
        ("t5", "T5: scores that are not scaled, distances told by one table per stack."),
        ("t5-v1.1", "T5 v1.1: a gated step, a head that reads states as they are."),
        ("xlm-roberta", "XLM-R: RoBERTa for a hundred languages."),
    )),
)
# fmt: on


@hookimpl
def zoo_variants() -> list[Variant]:
    return [
        *POSITIONS, *NORMS, *RESIDUALS, *FFNS, *MIXTURES, *ATTENTIONS, *RECURRENT, *LINEAR, *STATE_SPACES, *LATENT,
        *KERNELS, *EMBEDDINGS, *HEADS, *ARCHITECTURES,
        *TASKS, *GENERATED_TASKS, *DATA, *TOKENIZERS, *OPTIMIZERS, *SCHEDULES, *METRICS, *REFERENCES, *FAMILIES,
    ]  # fmt: skip
