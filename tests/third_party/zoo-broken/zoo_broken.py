"""Imports what is not there."""

import zoo_nowhere

import zoo


@zoo.hookimpl
def zoo_variants():
    return [zoo.Variant("norm", "broken-norm", zoo_nowhere.Norm, "Never seen.")]
