"""What has broken in systems of this kind: each public report has a test that states the right value.

`HELD` says which tests hold an entry, `LEFT` why one has no test. The entries without a home elsewhere are tested here.
"""

from __future__ import annotations

import ast
import copy
import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from click.testing import CliRunner
from safetensors import safe_open
from support.contexts import keep
from support.models import ARCHITECTURES, POSITIONS, SIZES, built, ids
from support.tasks import settings
from torch.testing import assert_close

from zoo import SpecError, build
from zoo.cli import main
from zoo.compare.comparison import read_comparison
from zoo.declare.library import open_library
from zoo.declare.spec import Node
from zoo.model import weights
from zoo.model.builder import build_on_meta, make
from zoo.model.stack import count_positions
from zoo.parts import Shape
from zoo.record.folder import Run
from zoo.tasks import Data, Example, Splits
from zoo.train import loop
from zoo_plugins.task import SequenceToSequence
from zoo_plugins.tokenizer import Byte

HERE = Path(__file__).parent
REPORTS = HERE.parents[1] / "shared" / "reference" / "pitfalls.md"

HELD = {
    "MASK-1": "test_kernel::test_a_row_that_sees_nothing_is_exactly_zero_with_finite_gradients "
    "test_contracts::test_pairs_of_variants",
    "MASK-2": "test_kernel::test_a_later_token_changes_no_earlier_output_by_a_bit "
    "test_attention::test_self_attention_is_torchs",
    "MASK-3": "test_pitfalls::test_padding_of_the_source_reaches_cross_attention",
    "MASK-4": "test_pitfalls::test_a_column_of_pads_changes_nothing_in_either_mode",
    "MASK-6": "test_kernel::test_a_masked_key_has_no_weight_at_any_scale",
    "POS-1": "test_pitfalls::test_positions_count_real_tokens",
    "POS-2": "test_position::TestRope::test_the_two_layouts "
    "test_position::TestRope::test_permuted_weights_give_the_same_scores",
    "POS-3": "test_position::TestRope::test_angles_stay_float32",
    "POS-4": "test_attention::test_cross_attention_is_torchs",
    "POS-5": "test_position::TestRope::test_angles_stay_float32",
    "POS-6": "test_pitfalls::test_impossible_sizes_are_faults_that_name_them "
    "test_position::TestRope::test_an_odd_width_is_refused",
    "POS-7": "test_position::TestRope::test_an_odd_width_is_refused "
    "test_position::TestRope::test_scores_depend_on_distance_alone_and_norms_stay",
    "POS-8": "test_position::TestAlibi::test_slopes_for_any_number_of_heads",
    "POS-9": "test_position::TestAlibi::test_bias_is_symmetric_and_falls_with_distance "
    "test_pitfalls::test_alibi_in_an_encoder_favours_neither_side",
    "POS-10": "test_pitfalls::test_more_tokens_than_positions_are_refused_with_both_numbers",
    "POS-11": "test_position::TestSinusoidal::test_formula_at_odd_and_even_widths",
    "CACHE-1": "test_generate::test_a_cache_changes_no_token test_contracts::test_pairs_of_variants",
    "CACHE-2": "test_kernel::test_one_new_query_sees_all_cached_keys "
    "test_kernel::test_kernels_equal_torch_on_the_causal_mask_of_a_cache",
    "CACHE-3": "test_attention::test_a_source_is_projected_once test_generate::test_a_source_leaves_nothing_behind",
    "GQA-1": "test_kernel::test_neighbouring_query_heads_share_a_key_head "
    "test_attention::test_shared_key_heads_equal_multi_head_with_repeated_weights",
    "GQA-2": "test_attention::test_key_heads_must_divide_heads "
    "test_pitfalls::test_impossible_sizes_are_faults_that_name_them",
    "NORM-1": "test_norm::test_half_does_not_overflow",
    "NORM-2": "test_comparison::test_post_norm_without_a_warm_up_is_warned_of",
    "NORM-3": "test_norm::test_extreme_rows",
    "FFN-1": "test_ffn::test_ratio_is_rounded_up_to_a_multiple_of_8 "
    "test_ffn::test_explicit_widths_win_and_are_not_rounded",
    "FFN-2": "test_ffn::test_exact_gelu_and_its_approximation_are_two_names",
    "INIT-1": "test_pitfalls::test_no_two_weights_start_equal",
    "INIT-2": "test_folder::test_a_tied_weight_is_stored_once_and_stays_tied test_pitfalls::test_a_tied_model_stays_tied",
    "INIT-3": "test_pitfalls::test_the_row_of_the_pad_does_not_matter",
    "INIT-4": "test_pitfalls::test_a_table_starts_at_its_standard_deviation",
    "LOSS-1": "test_loop::test_accumulated_batches_weigh_by_their_targets "
    "test_loop::test_accumulation_changes_nothing_but_memory",
    "LOSS-2": "test_pitfalls::test_targets_are_shifted_once",
    "LOSS-3": "test_task::test_end_and_padding_may_share_an_id test_pitfalls::test_a_trained_model_stops",
    "LOSS-4": "test_loop::test_a_batch_without_targets_adds_nothing "
    "test_metrics::test_a_batch_without_targets_adds_nothing_and_no_nan",
    "LOSS-5": "test_task::test_masked_places_follow_their_rates "
    "test_task::test_every_masked_row_has_a_target_and_padding_never_is_one",
    "METRIC-1": "test_metrics::test_perplexity_is_of_all_tokens_whatever_the_batch_size",
    "METRIC-2": "test_pitfalls::test_a_class_does_not_depend_on_padding",
    "METRIC-3": "test_metrics::test_perplexity_averages_before_it_raises",
    "METRIC-4": "test_pitfalls::test_a_tied_table_counts_once",
    "TRAIN-1": "test_attention::test_dropout_is_for_training_alone test_loop::test_evaluation_leaves_no_trace "
    "test_generate::test_generation_drops_nothing",
    "TRAIN-2": "test_loop::test_the_schedule_counts_steps_not_batches",
    "TRAIN-3": "test_loop::test_only_matrices_decay_and_nothing_is_missed",
    "TRAIN-4": "test_schedule::test_cosine_starts_above_zero_and_ends_at_its_floor "
    "test_schedule::test_every_step_learns_and_none_exceeds_the_peak",
    "TRAIN-5": "test_loop::test_the_whole_gradient_is_clipped_once",
    "REPRO-1": "test_loop::test_a_run_resumed_is_the_run_that_never_stopped "
    "test_pool::test_a_killed_run_loses_no_more_than_its_interval",
    "REPRO-2": "test_task::test_the_global_generator_is_neither_read_nor_moved "
    "test_loop::test_the_same_data_for_every_variant",
    "REPRO-3": "test_task::test_same_generator_same_data_and_a_stream_that_moves_on",
    "CKPT-1": "test_folder::test_killed_while_it_overwrites test_loop::test_a_crash_while_saving_leaves_the_file_before",
    "CKPT-2": "test_folder::test_a_state_holds_tensors_and_plain_facts",
    "CKPT-3": "test_loop::test_a_compiled_model_has_the_names_of_a_plain_one",
    "GEN-1": "test_generate::test_rows_end_each_at_its_own_step",
    "GEN-2": "test_generate::test_the_edges_of_sampling test_generate::test_top_p_keeps_the_fewest_that_reach_it "
    "test_generate::test_top_p_of_one_keeps_every_token",
    "GEN-3": "test_generate::test_top_k_beyond_the_vocabulary",
    "TOK-1": "test_tokenizer::test_streaming_never_shows_half_a_character",
    "TOK-2": "test_tokenizer::test_vocabulary_is_what_was_trained "
    "test_pitfalls::test_a_model_is_sized_from_the_trained_tokenizer",
    "TOK-3": "test_tokenizer::test_round_trip_is_exact",
    "TOK-5": "test_tokenizer::test_char_without_unknown_names_the_character "
    "test_tokenizer::test_char_has_a_token_for_the_unknown_and_then_no_bytes",
    "TOK-6": "test_tokenizer::test_another_process_trains_the_same_and_forks_quietly",
    "TOK-7": "test_tokenizer::test_another_process_trains_the_same_and_forks_quietly",
    "CFG-1": "test_yaml::test_scalars_of_yaml_1_2",
    "CFG-2": "test_pitfalls::test_a_misspelt_key_ends_the_command",
    "CFG-3": "test_yaml::test_repeated_keys_and_tags_are_reported_together "
    "test_yaml::test_a_merged_value_may_be_overridden_before_or_after",
    "CFG-4": "test_yaml::test_scalars_of_yaml_1_2 test_pitfalls::test_words_are_not_booleans",
    "CFG-5": "test_yaml::test_scalars_of_yaml_1_2 test_yaml::test_what_is_written_reads_back",
    "PLUG-1": "test_registry::test_a_broken_plugin_harms_only_itself "
    "test_registry::test_strict_makes_every_broken_plugin_fatal "
    "test_catalogue::test_a_broken_plugin_is_one_line_on_stderr",
    "PLUG-2": "test_registry::test_equal_names_clash_only_where_they_are_used",
    "PLUG-3": "test_registry::test_a_broken_plugin_harms_only_itself",
    "PLUG-4": "test_registry::test_the_cause_chain_of_a_broken_plugin_is_kept",
    "PLUG-5": "test_registry::test_one_plugin_found_twice_is_loaded_once",
    "SWEEP-1": "test_loop::test_the_best_is_the_finite_best "
    "test_report::test_a_diverged_run_neither_ranks_nor_enters_a_mean",
    "SWEEP-2": "test_pool::test_one_failure_is_a_row_and_the_rest_go_on",
    "SWEEP-3": "test_pool::test_one_failure_is_a_row_and_the_rest_go_on test_pool::test_exit_codes",
    "SWEEP-4": "test_pitfalls::test_fewer_rows_than_a_batch_still_train "
    "test_task::test_too_little_text_is_refused_with_the_numbers",
    "SWEEP-5": "test_pool::test_one_failure_is_a_row_and_the_rest_go_on",
    "SWEEP-6": "test_pool::test_one_failure_is_a_row_and_the_rest_go_on",
    "SWEEP-7": "test_pitfalls::test_the_first_step_is_not_timed",
    "REPORT-1": "test_report::test_names_are_printed_as_written "
    "test_report::test_names_that_are_all_numbers_stay_texts",
    "REPORT-2": "test_report::test_finite_scores_ascend_and_all_else_comes_last",
    "REPORT-3": "test_report::test_markdown_keeps_its_columns_and_shows_names_as_written "
    "test_report::test_a_message_of_many_lines_stays_on_one",
    "REPORT-4": "test_report::test_json_is_strict_and_keeps_texts "
    "test_folder::test_json_is_strict_and_words_stay_as_they_are",
    "REPORT-5": "test_report::test_json_is_strict_and_keeps_texts "
    "test_folder::test_json_is_strict_and_words_stay_as_they_are",
    "REPORT-6": "test_report::test_csv_is_safe_in_a_spreadsheet_and_reads_back",
}
LEFT = {
    "MASK-5": "documents are not packed into one row: a window of running text is read as one text",
    "CACHE-4": "only training compiles",
    "GEN-4": "there is no beam search",
    "GEN-5": "there is no repetition penalty",
    "TOK-4": "a run keeps its tokenizer beside its weights, and nothing takes another",
}


def named_in(path: Path) -> set[str]:
    """Every test in a file, as `file::test` or `file::Class::test`."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        owner = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {f"{path.stem}::{owner}{f.name}" for f in inside if isinstance(f, ast.FunctionDef)}
    return {name for name in found if name.split("::")[-1].startswith("test_")}


def test_every_test_in_the_table_is_there():
    there = set().union(*map(named_in, HERE.rglob("test_*.py")))
    assert {name for names in HELD.values() for name in names.split()} <= there
    assert not HELD.keys() & LEFT.keys()


@pytest.mark.skipif(not REPORTS.exists(), reason="the list of reports is not beside this checkout")
def test_every_report_is_in_the_table():
    others, _, _ = REPORTS.read_text("utf-8").partition("\n## SECOND ROUND")  # what follows was tried on this zoo
    found = re.findall(r"^- \*\*([A-Z]+-\d+)\*\* \((\w)\)", others, re.M)
    assert {entry for entry, _ in found} == HELD.keys() | LEFT.keys()
    assert not {entry for entry, severity in found if severity == "H"} & LEFT.keys()


# masks and positions


@pytest.mark.parametrize("position", POSITIONS)
def test_padding_of_the_source_reaches_cross_attention(position):  # MASK-3
    model, target = built(architecture="encoder-decoder", position=position), ids([7, 8, 9])
    alone, padded, real = ids([5, 6]), ids([5, 6, 11, 12]), keep("11..")
    right = model(alone, target)
    assert_close(model(padded, target, source_keep=real), right, atol=1e-6, rtol=0)
    assert not torch.allclose(model(padded, target), right, atol=1e-3)
    cache = model.start(padded, real, room=3)
    steps = [model.step(cache, token) for token in ids([model.shape.bos, 7, 8]).split(1, 1)]
    assert_close(torch.cat(steps, 1), right, atol=1e-6, rtol=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_column_of_pads_changes_nothing_in_either_mode(architecture):  # MASK-4
    """Three columns hold no token of any row: shape and values are the same while training and in eval mode."""
    model = built(architecture=architecture, position="rope")
    source, target = ids([5, 6, 7, 0, 0, 0], [8, 9, 0, 0, 0, 0]), ids([9, 4, 0, 0], [8, 7, 0, 0])
    given = {"source_keep": keep("111...", "11...."), "target_keep": keep("11..", "11..")}
    calm, busy = model(source, target, **given), model.train()(source, target, **given)
    assert calm.shape == busy.shape == (2, 4, 17) and torch.equal(calm, busy) and calm.isfinite().all()


@pytest.mark.parametrize("architecture", ["decoder-only", "encoder-only"])
@pytest.mark.parametrize("position", POSITIONS)
def test_positions_count_real_tokens(position, architecture):  # POS-1
    model = built(architecture=architecture, position=position)
    assert count_positions(ids([0] * 5), keep("..111"))[0, 2:].tolist() == [0, 1, 2]
    padded = model.read(ids([0, 0, 7, 8, 9]), keep=keep("..111"))
    assert_close(padded[:, 2:], model.read(ids([7, 8, 9])), atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "parts, sizes, said",
    [
        ({"position": "rope"}, {"d_model": 520, "n_heads": 8}, "position 'rope': .*65 .*d_model 520, n_heads 8"),
        ({}, {"d_model": 10, "n_heads": 3}, "n_heads 3 does not divide d_model 10"),
        ({"attention": {"name": "gqa", "kv_heads": 2}}, {"d_model": 33, "n_heads": 33}, "kv_heads 2 .* n_heads 33"),
    ],
)
def test_impossible_sizes_are_faults_that_name_them(parts, sizes, said):  # POS-6, GQA-2
    with pytest.raises(SpecError, match=said):
        build(parts, shape={**SIZES, **sizes})


def test_alibi_in_an_encoder_favours_neither_side():  # POS-9
    model, row = built(architecture="encoder-only", position="alibi"), ids([5, 6, 7, 8, 9])
    assert_close(model.read(row.flip(1)), model.read(row).flip(1))


@pytest.mark.parametrize("training", [False, True])
def test_more_tokens_than_positions_are_refused_with_both_numbers(training):  # POS-10
    model, said = built(position="learned").train(training), "17 tokens.*16"
    long = torch.full((1, 17), 5)
    for pass_ in (lambda: model.read(long), lambda: model(None, long), lambda: model(long[:, :9], long[:, :8])):
        with pytest.raises(ValueError, match=said):
            pass_()
    assert model.read(long[:, :16]).shape == (1, 16, 17)
    for begin in (lambda: model.generate(None, 9, prefix=long[:, :8]), lambda: model.start(None, room=18)):
        with pytest.raises(ValueError, match=said):
            begin()
    assert model.generate(None, 8, prefix=long[:, :8], stop=()).shape == (1, 8)


# weights


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_no_two_weights_start_equal(architecture):  # INIT-1
    model = build({"architecture": architecture}, shape={**SIZES, "n_layers": 3})
    matrices = {name: p for name, p in model.named_parameters() if p.ndim == 2}
    for (a, p), (b, q) in itertools.combinations(matrices.items(), 2):
        assert p.shape != q.shape or not torch.equal(p, q), (a, b)


def test_a_tied_model_stays_tied(tmp_path):  # INIT-2
    model = build({}, shape=SIZES)
    size = sum(p.numel() for p in model.parameters())
    weights.write_model(model, tmp_path / "w")
    with safe_open(tmp_path / "w", "pt") as file:
        assert sum(file.get_tensor(name).numel() for name in file.keys()) == size  # noqa: SIM118
    again = build({}, shape=SIZES, seed=1)
    weights.read_model(again, tmp_path / "w")
    for twin in (model, again, copy.deepcopy(model), copy.deepcopy(model).to(torch.bfloat16)):
        assert twin.head.table.weight is twin.decoder.embedding.table.weight
        in_optimizer = [p for group in loop.group_parameters(twin) for p in group["params"]]
        assert len(in_optimizer) == len(set(in_optimizer)) == len(list(twin.parameters()))
    assert torch.equal(again.head.table.weight, model.head.table.weight)


def test_the_row_of_the_pad_does_not_matter():  # INIT-3
    model, row, real = built(position="learned"), ids([0, 5, 6, 7, 0]), keep(".111.")
    before = model.read(row, keep=real)[real]
    with torch.no_grad():
        model.decoder.embedding.table.weight[0] = 50.0
    after = model.read(row, keep=real)[real]
    assert torch.equal(after[:, 1:], before[:, 1:])  # a tied head gives the pad itself another logit


def test_a_table_starts_at_its_standard_deviation():  # INIT-4
    """0.4 width^-0.5, the row of the pad like any other."""
    table = build({}, shape={**SIZES, "d_model": 64, "vocab_size": 2000}).head.table.weight
    assert table.std().item() == pytest.approx(0.4 * 64**-0.5, rel=0.02)
    assert (table.std(1) > 0.02).all()


def test_a_tied_table_counts_once():  # METRIC-4
    library = open_library()

    def parameters(head: str) -> int:
        reader = library.reader()
        model = build_on_meta(reader.model(Node({"head": head})), Shape(**SIZES), library.registry)
        return sum(p.numel() for p in model.parameters())

    assert parameters("untied") - parameters("tied") == SIZES["vocab_size"] * SIZES["d_model"]


# learning


def learned(task, model, folder, **changes):
    run = Run(folder)
    run.folder.mkdir(exist_ok=True)
    return loop.train(model, task, settings(**changes), seed=0, folder=run)


class Pairs(Data):
    has_source = True

    def __init__(self, *rows):
        self.rows = [Example(*row) for row in rows]

    def read(self):
        return Splits(self.rows, self.rows, self.rows)


def test_targets_are_shifted_once():  # LOSS-2
    """A row that counts upwards: after training the logits at t say target t, the successor of the token before."""
    model, row = build({"position": "rope"}, shape=SIZES), torch.arange(4, 16)[None]
    text = torch.cat([ids([model.shape.bos]), row], 1)
    by_hand = F.cross_entropy(model.read(text)[0, :-1], text[0, 1:])
    assert_close(F.cross_entropy(model(None, row)[0], row[0]), by_hand)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(60):
        loss = F.cross_entropy(model(None, row)[0], row[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.05 and torch.equal(model(None, row).argmax(-1), row)


def test_a_trained_model_stops(tmp_path):  # LOSS-3
    """The end of sequence is also the pad: the first one is a target, those after it are not."""
    shape = {**SIZES, "eos": 0, "max_len": 24, "vocab_size": 260}
    task = SequenceToSequence(Shape(**shape), Pairs(("a", "xyz"), ("b", "w"), ("c", "zzzzzz")), Byte())
    task.prepare()
    model = build({"position": "learned"}, shape=shape)
    learned(task, model, tmp_path, steps=60, batch_size=8, lr=2e-2)
    batch = next(task.batches("test", 3))
    said = model.generate(batch.source, 12, source_keep=batch.source_keep)
    assert [task.decode(row) for row in said] == ["xyz", "w", "zzzzzz"]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_class_does_not_depend_on_padding(architecture):  # METRIC-2
    model, label = built(architecture=architecture, position="rope"), ids([9])
    alone = model(ids([5, 6, 7]), label)
    for row, real in ((ids([5, 6, 7, 0, 0]), "111.."), (ids([0, 0, 5, 6, 7]), "..111")):
        assert_close(model(row, label, source_keep=keep(real)), alone, atol=1e-6, rtol=0)


def test_fewer_rows_than_a_batch_still_train(tmp_path):  # SWEEP-4
    task = SequenceToSequence(Shape(**SIZES), Pairs(("a", "x"), ("b", "y"), ("c", "z")), Byte())
    task.prepare()
    assert task.batch(8, torch.Generator().manual_seed(0)).target.shape == (8, 2)
    found = learned(task, build({}, shape={**SIZES, "vocab_size": 260}), tmp_path, steps=2, batch_size=8)
    assert found["train"]["steps"] == 2 and found["train"]["tokens"] == 32
    assert 1 < found["metrics"]["test"]["loss"] < math.log(260) + 0.4


def test_the_first_step_is_not_timed(tmp_path, monkeypatch):  # SWEEP-7
    """It takes 100 seconds, the others one each."""
    task = SequenceToSequence(Shape(**SIZES), Pairs(("a", "x"), ("b", "y"), ("c", "z")), Byte())
    task.prepare()
    took, tally = iter([100.0, 1.0, 1.0]), loop.Training.tally
    monkeypatch.setattr(loop.Training, "tally", lambda run, *told: tally(run, *told[:-1], next(took)))
    found = learned(task, build({}, shape={**SIZES, "vocab_size": 260}), tmp_path, steps=3, batch_size=8)
    assert found["train"]["tokens_per_second"] == 16.0


# what the user wrote

FILE = """
shapes: {small: {d_model: 24, n_heads: 4, n_layers: 1, max_len: 8, dropuot: 0.1}}
models: {mine: {position: rope, attention: {name: mha, num_head: 8}}}
"""


def test_a_misspelt_key_ends_the_command(tmp_path):  # CFG-2
    (tmp_path / "bad.yaml").write_text(FILE)
    result = CliRunner().invoke(main, ["validate", str(tmp_path / "bad.yaml")])
    assert result.exit_code == 2
    place, other = result.stderr.strip().splitlines()
    assert place.endswith("bad.yaml:2:68: shape has no option 'dropuot'; did you mean 'dropout'?")
    assert "bad.yaml:3:56: attention 'mha' has no option 'num_head'" in other


def test_words_are_not_booleans(tmp_path):  # CFG-4
    """`no`, `off` and `on` are texts; where a truth value belongs the fault says how it is written."""
    (tmp_path / "words.yaml").write_text("models: {on: {norm: off, attention: {name: mha, bias: no}}}")
    result = CliRunner().invoke(main, ["validate", str(tmp_path / "words.yaml")])
    assert result.exit_code == 2 and "False" not in result.stderr
    assert "no norm is called 'off'" in result.stderr
    assert "attention 'mha'.bias is 'no'; it should be true or false" in result.stderr


SMALL = """
comparisons:
  small:
    model: {}
    shape: {d_model: 8, n_heads: 2, n_layers: 1, max_len: 8}
    task:
      name: language-modeling
      tokenizer: {name: bpe, vocab_size: 5000}
      data: {name: text, files: [FOLDER/text.txt], documents: line}
    train: {steps: 1}
"""


def test_a_model_is_sized_from_the_trained_tokenizer(tmp_path):  # TOK-2
    (tmp_path / "text.txt").write_text("".join(f"line {i} of a small text\n" for i in range(200)))
    (tmp_path / "small.yaml").write_text(SMALL.replace("FOLDER", str(tmp_path)))
    run = read_comparison(open_library(tmp_path / "small.yaml"), "small").rows[0].runs[0]
    task = run.make_task()
    task.prepare()
    model = run.make_model(task)
    assert model.head.table.num_embeddings == task.tokenizer.vocab_size == task.vocab_size < 600
    weights.write_model(model, tmp_path / "w")
    other = make(run.model, replace(run.shape, vocab_size=task.vocab_size + 1))
    with pytest.raises(RuntimeError, match="size mismatch"):
        weights.read_model(other, tmp_path / "w")
