"""A value of the wrong kind, anywhere in a file: a line with its place and exit code 2, never a traceback.

A small file that uses every section and every form of a value is changed in one place after another.
"""

import re

import pytest
from click.testing import CliRunner
from support.files import HYBRID, write

from zoo.cli import main
from zoo.declare.yaml import dump, load

FILE = """
    plugins: {files: [hybrid.py], disable: [nobody], require: [transformer-zoo]}
    defaults: {norm: rmsnorm, tokenizer: {name: bpe, vocab_size: 512}}
    shapes:
      small: {d_model: 16, n_heads: 2, n_layers: 1, max_len: 32, dropout: 0.1, d_embed: null, pad: 0}
      wide: {like: small, d_ff: 32}
    models:
      base:
        architecture: {name: encoder-decoder, decoder_layers: 1}
        position: {encoder: [t5-bias], decoder: {first: [t5-bias], repeat: [none]}}
        attention: {name: gqa, kv_heads: 1, kernel: {name: tiled, block: 8}}
        cross: mha
        ffn: {name: both, one: {name: gelu, ratio: 2.0}, other: relu}
        share: 1
      near: {like: base, attention: {bias: [q, v]}, head: {bias: true}}
    comparisons:
      varied:
        models: [{attention: {bias: true}, position: {name: far, reach: 2, marks: [1]}}]
        vary: {norm: [layernorm], train.lr: [0.1], shape: [small]}
        task: {name: language-modeling, data: {name: python-source, limit_kb: 200}, tokenizer: byte, length: 8}
        train: {steps: 3, schedule: {name: linear, floor: 0.1}, optimizer: {betas: [0.9, 0.9]}, clip: null, device: cpu}
        baseline: layernorm, lr=0.1, small
        seeds: [0, 1]
        references: [{name: n-gram, order: 2}]
      written:
        rows:
          one: {model: base, task: {name: copy, symbols: 5}, shape: {like: small, d_ff: 8}, train: {tokens: 100}}
        seeds: 2
    """
VALUES = """
    null 3 -1 0 true x '' [] {} [[]] [null] [x,x] {name:3} {name:null} {name:[x]} {name:{}} {x:{y:1}} {null:1} {3:4} -0.5
    1e400 .nan .inf -.inf 123456789012345678901234567890 {first:[x]} {encoder:3} {repeat:[]} {like:small} {like:[]} !!set
    *nothing a.b ../x {a:1,a:2} "\\u0000" [.inf] {first:[],repeat:{}}
    """.split()
KEYS = "null 3 '' [1] .nan true x.y like name first encoder {} * 1e400".split()


def paths(value, path=()):
    """The way to every value in a document."""
    yield path
    for key, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from paths(child, (*path, key))


def with_value(value, path, new):
    if not path:
        return new
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    out = {key: with_value(child, path[1:], new) if key == path[0] else child for key, child in pairs}
    return out if isinstance(value, dict) else list(out.values())


def with_key(value, path, new):
    """The document with the last key of the path renamed."""
    *above, last = path
    node = value
    for step in above:
        node = node[step]
    return with_value(value, above, {new if key == last else key: child for key, child in node.items()})


DOCUMENT = load(FILE).value


def changes() -> list[tuple]:
    """Every change: how it is made, where, and what is put there."""
    whole = list(paths(DOCUMENT))
    keys = [path for path in whole if path and isinstance(path[-1], str)]
    return [(with_value, p, junk) for p in whole for junk in VALUES] + [
        (with_key, p, junk) for p in keys for junk in KEYS
    ]


def spoiled(change, path, junk) -> str:
    return re.sub("'@'|@", lambda _: yaml_of(junk), dump(change(DOCUMENT, path, "@")))


def yaml_of(junk: str) -> str:
    """A value as it stands in the lists above, with the spaces that YAML needs."""
    return re.sub(r"(?<=[\w\]}])([:,])(?=[\w\[{])", r"\1 ", junk)


def check(folder, text):
    path = write(folder, text)
    result = CliRunner().invoke(main, ["validate", str(path)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    lines = result.stderr.splitlines()
    assert result.exit_code == (2 if lines else 0)
    for line in lines:
        assert re.match(rf"{re.escape(str(path))}:\d+:\d+: \S", line)
    return lines


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hybrid.py").write_text(HYBRID)
    return tmp_path


def test_the_file_itself_is_right(folder):
    assert check(folder, FILE) == []


def check_all(folder, made):
    for change, path, junk in made:
        text = spoiled(change, path, junk)
        try:
            check(folder, text)
        except Exception as error:
            error.add_note(f"{change.__name__} {path}: {junk}\n{text}")
            raise


def test_wrong_values_here_and_there(folder):
    check_all(folder, changes()[::151])  # prime, so that places and values both change


@pytest.mark.exhaustive
@pytest.mark.parametrize("share", range(16))
def test_wrong_values_all_over_the_file(folder, share):
    check_all(folder, changes()[3 * share :: 48])
