"""Offers a position that the zoo offers too, and a norm whose module is missing."""

import zoo


@zoo.hookimpl
def zoo_variants():
    return [
        zoo.Variant("position", "rope", "zoo_clash:rope", "Another one of the same name."),
        zoo.Variant("norm", "late", "zoo_clash_norms:Late", "Its module fails when it is used."),
    ]


def rope(shape):
    raise NotImplementedError
