"""Has a hook that is not one."""

import zoo


@zoo.hookimpl
def zoo_variant():
    return [zoo.Variant("norm", "misspelt-norm", "zoo_misspelt:Norm", "Never seen.")]
